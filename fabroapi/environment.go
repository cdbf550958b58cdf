package fabroapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// Environment is where a process finds Fabro's files. The zero value asks the
// operating system; tests hand in their own. Nothing is cached.
type Environment struct {
	// Getenv looks up a variable; nil means os.Getenv.
	Getenv func(string) string
	// HomeDir is the home directory to fall back to when HOME is unset; empty
	// means the operating system's answer.
	HomeDir string
}

// Get returns a variable, or "".
func (e Environment) Get(name string) string {
	if e.Getenv != nil {
		return e.Getenv(name)
	}
	return os.Getenv(name)
}

// Home is Fabro's own directory: FABRO_HOME, else .fabro in the home directory,
// else .fabro.
func (e Environment) Home() string {
	if dir := e.Get("FABRO_HOME"); dir != "" {
		return dir
	}
	if home := e.userHome(); home != "" {
		return filepath.Join(home, ".fabro")
	}
	return ".fabro"
}

func (e Environment) userHome() string {
	if home := e.Get("HOME"); home != "" {
		return home
	}
	if e.HomeDir != "" || e.Getenv != nil {
		return e.HomeDir
	}
	if home, err := os.UserHomeDir(); err == nil {
		return home
	}
	// A host may start us without HOME; the system still knows whose process it is.
	if who, err := user.Current(); err == nil {
		return who.HomeDir
	}
	return ""
}

// SettingsPath is the user's settings file: FABRO_CONFIG, else settings.toml in
// Home. It need not exist.
func (e Environment) SettingsPath() string {
	if path := e.Get("FABRO_CONFIG"); path != "" {
		return path
	}
	return filepath.Join(e.Home(), "settings.toml")
}

// StorageDir is where a local server keeps its data: the flag, else
// FABRO_STORAGE_DIR, else [server.storage] root of the settings file, else
// storage in Home. A settings file that cannot be read counts as absent here;
// Connect reports it.
func (e Environment) StorageDir(flag string) string {
	if flag != "" {
		return flag
	}
	if dir := e.Get("FABRO_STORAGE_DIR"); dir != "" {
		return dir
	}
	if settings, err := readClientSettings(e.SettingsPath()); err == nil && settings.Server.Storage.Root != "" {
		return settings.Server.Storage.Root
	}
	return filepath.Join(e.Home(), "storage")
}

// AuthFile is the auth store: FABRO_AUTH_FILE, else auth.json in Home.
func (e Environment) AuthFile() string {
	if path := e.Get("FABRO_AUTH_FILE"); path != "" {
		return path
	}
	return filepath.Join(e.Home(), "auth.json")
}

// ProxyDisabled reports whether FABRO_HTTP_PROXY_POLICY switches proxies off.
func (e Environment) ProxyDisabled() (bool, error) {
	switch value := e.Get("FABRO_HTTP_PROXY_POLICY"); value {
	case "", "system":
		return false, nil
	case "disabled":
		return true, nil
	default:
		return false, fmt.Errorf("invalid FABRO_HTTP_PROXY_POLICY value `%s`; expected `system` or `disabled`", value)
	}
}

// AgentCommand is the argv of FABRO_AGENT_COMMAND, or nil: a JSON array of
// strings, or words split as a shell splits them (quotes and backslashes, no
// expansion).
func (e Environment) AgentCommand() ([]string, error) {
	text := strings.TrimSpace(e.Get("FABRO_AGENT_COMMAND"))
	if text == "" {
		return nil, nil
	}
	var argv []string
	if strings.HasPrefix(text, "[") {
		if err := json.Unmarshal([]byte(text), &argv); err != nil {
			return nil, fmt.Errorf("FABRO_AGENT_COMMAND is not a JSON array of strings: %w", err)
		}
	} else {
		var err error
		if argv, err = splitWords(text); err != nil {
			return nil, fmt.Errorf("FABRO_AGENT_COMMAND: %w", err)
		}
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("FABRO_AGENT_COMMAND names no program")
	}
	return argv, nil
}

// splitWords splits as a POSIX shell does, without expanding anything.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		case '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return nil, errors.New("a single quote is not closed")
			}
			word.WriteString(text[i+1 : i+1+end])
			i += 1 + end
			inWord = true
		case '"':
			for i++; ; i++ {
				if i >= len(text) {
					return nil, errors.New("a double quote is not closed")
				}
				if text[i] == '"' {
					break
				}
				if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("\"\\$`", text[i+1]) >= 0 {
					i++
				}
				word.WriteByte(text[i])
			}
			inWord = true
		case '\\':
			if i+1 >= len(text) {
				return nil, errors.New("a backslash ends the text")
			}
			i++
			word.WriteByte(text[i])
			inWord = true
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
