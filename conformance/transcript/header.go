package transcript

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

// Parse reads a transcript. path is only used in messages. All errors are
// *Error and name line and column.
func Parse(path string, data []byte) (*Transcript, error) {
	archive := txtar.Parse(data)
	s := &scanner{path: path, src: archive.Comment}
	t := &Transcript{Path: path, source: data}
	if !utf8.Valid(archive.Comment) {
		for i := 0; i < len(s.src); {
			r, n := utf8.DecodeRune(s.src[i:])
			if r == utf8.RuneError && n <= 1 {
				return nil, s.errAt(i, "the script is not UTF-8; write such bytes as \"\\xff\" or hex:ff")
			}
			i += n
		}
	}
	for _, f := range archive.Files {
		if slices.ContainsFunc(t.Files, func(other File) bool { return other.Name == f.Name }) {
			return nil, s.errAt(len(s.src), "the file %q is in the archive twice", f.Name)
		}
		if f.Name == "" || strings.HasPrefix(f.Name, "/") || slices.Contains(strings.Split(f.Name, "/"), "..") || strings.ContainsAny(f.Name, "\\:") {
			return nil, s.errAt(len(s.src), "the file name %q leaves the transcript's directory; use a relative name with forward slashes", f.Name)
		}
		t.Files = append(t.Files, File{f.Name, f.Data})
	}
	if err := s.header(t); err != nil {
		return nil, err
	}
	p := &scriptParser{scanner: s, transcript: t}
	steps, closer, err := p.steps(0)
	if err != nil {
		return nil, err
	}
	if closer != "" {
		return nil, s.err("%q closes nothing", closer)
	}
	if len(steps) == 0 {
		return nil, s.err("the script is empty")
	}
	t.Steps = steps
	if err := p.check(steps, p.predefined()); err != nil {
		return nil, err
	}
	return t, nil
}

var headerLine = regexp.MustCompile(`^([a-z]+):(?:[ \t]|$)`)

// header reads "key: value" lines up to the first line that is a step.
func (s *scanner) header(t *Transcript) error {
	start := s.pos
	for !s.eof() {
		line := s.line()
		if line == "" || strings.HasPrefix(line, "#") {
			s.skipLine()
			continue
		}
		s.blanks()
		m := headerLine.FindStringSubmatch(line)
		if m == nil {
			break
		}
		keyAt := s.pos
		s.pos += len(m[1]) + 1
		s.blanks()
		if err := s.headerField(t, m[1], keyAt, s.line()); err != nil {
			return err
		}
		s.skipLine()
	}
	switch {
	case t.Title == "":
		return s.errAt(start, "the header has no title: line")
	case t.Revisions == nil:
		return s.errAt(start, "the header has no revisions: line; write revisions: all, a revision, or a range")
	}
	return nil
}

func (s *scanner) headerField(t *Transcript, key string, keyAt int, value string) error {
	if value == "" {
		return s.errAt(keyAt, "%s: has no value", key)
	}
	switch key {
	case "title":
		if t.Title != "" {
			return s.errAt(keyAt, "a second title")
		}
		t.Title = value
	case "requirement":
		t.Requirements = append(t.Requirements, strings.Fields(value)...)
	case "revisions":
		revs, err := ParseRevisions(value)
		if err != nil {
			return s.err("%v", err)
		}
		if t.Revisions != nil {
			return s.errAt(keyAt, "a second revisions line")
		}
		t.Revisions = revs
	case "needs":
		kind, name, _ := strings.Cut(value, " ")
		name = strings.TrimSpace(name)
		if !slices.Contains(needKinds, NeedKind(kind)) || name == "" {
			known := make([]string, len(needKinds))
			for i, k := range needKinds {
				known[i] = string(k)
			}
			return s.err("needs: is followed by a kind and a name; kinds: %s", strings.Join(known, ", "))
		}
		if NeedKind(kind) == NeedRevision && !slices.Contains(Revisions, name) {
			return s.err("unknown revision %q", name)
		}
		t.Needs = append(t.Needs, Need{NeedKind(kind), name})
	case "timeout":
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 || d > maxTimeout {
			return s.err("%q is no timeout between 1ms and %v", value, maxTimeout)
		}
		t.Timeout = d
	case "tags":
		t.Tags = append(t.Tags, strings.Fields(value)...)
	default:
		return s.errAt(keyAt, "unknown header %q; known: title, requirement, revisions, needs, timeout, tags", key)
	}
	return nil
}

const maxTimeout = 10 * time.Minute
