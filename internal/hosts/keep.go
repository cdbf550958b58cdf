package hosts

import (
	"path/filepath"
	"slices"
	"strings"
)

// over is the entry with what the user added to the old one: the arguments behind
// the same subcommand (`mcp start`), such as --read-only, and an absolute path of
// the same program. The flags of e win over the same flags of the old entry. An
// entry of something else is replaced as a whole.
func (e Entry) over(old *Entry) Entry {
	if old == nil {
		return e
	}
	words := slices.IndexFunc(e.Args, func(a string) bool { return strings.HasPrefix(a, "-") })
	if words < 0 {
		words = len(e.Args)
	}
	if len(old.Args) < words || !slices.Equal(old.Args[:words], e.Args[:words]) {
		return e
	}
	out := Entry{Command: e.Command, Args: slices.Clone(e.Args)}
	if filepath.IsAbs(old.Command) && program(old.Command) == program(e.Command) {
		out.Command = old.Command
	}
	kept, dropped := split(old.Args[words:], e.Args[words:])
	if slices.Equal(dropped, e.Args[words:]) {
		out.Args = slices.Clone(old.Args) // nothing is new: the user's order stays
	} else {
		out.Args = append(out.Args, kept...)
	}
	return out
}

// split parts arguments into those that stay and the flags that set names too, each
// with its value. set holds pairs of a flag and its value; args may also have them
// as one word, which dropped takes apart.
func split(args, set []string) (kept, dropped []string) {
	var flags []string
	for i := 0; i < len(set); i += 2 {
		flags = append(flags, set[i])
	}
	for i := 0; i < len(args); i++ {
		flag, value, joined := strings.Cut(args[i], "=")
		switch {
		case !slices.Contains(flags, flag):
			kept = append(kept, args[i])
			continue
		case !joined && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			i++
			value = args[i]
		}
		dropped = append(dropped, flag, value)
	}
	return kept, dropped
}

// program is the name of a command without its directory, as one types it.
func program(command string) string {
	return strings.TrimSuffix(filepath.Base(command), ".exe")
}

// entryIn reads the entry of that name from a parsed file. It is nil where there is
// none that starts a program.
func entryIn(file map[string]any, name string) *Entry {
	servers, _ := file[serversKey].(map[string]any)
	own, _ := servers[name].(map[string]any)
	command, hasCommand := own["command"].(string)
	list, hasArgs := own["args"].([]any)
	if !hasCommand && !hasArgs {
		return nil
	}
	entry := Entry{Command: command, Args: []string{}}
	for _, a := range list {
		word, ok := a.(string)
		if !ok {
			return &Entry{Command: command, Args: []string{}} // no host takes it
		}
		entry.Args = append(entry.Args, word)
	}
	return &entry
}
