package tools

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"fabro-mcp/protocol"
	"fabro-mcp/tools/args"
	"fabro-mcp/tools/plain"
)

// Limits of the audit log.
const (
	maxAuditFile    = 4 << 20 // bytes; then it becomes audit.jsonl.1
	keptAudits      = 3       // older files kept
	maxAuditText    = 200     // bytes of one string argument
	maxAuditOutcome = 300
)

// auditEntry is one line of audit.jsonl: one call that changed something, or was
// meant to.
type auditEntry struct {
	Time       string          `json:"time"`
	Tool       string          `json:"tool"`
	Client     string          `json:"client"`
	Arguments  json.RawMessage `json:"arguments"`
	Outcome    string          `json:"outcome"` // ok, or what went wrong
	DurationMS int64           `json:"duration_ms"`
	Runs       []string        `json:"runs,omitempty"`
}

// auditLog appends to <state>/audit.jsonl. Several processes may share it.
type auditLog struct {
	path string // "" keeps nothing
	mu   sync.Mutex
}

func newAuditLog(dir string) *auditLog {
	if dir == "" {
		return &auditLog{}
	}
	return &auditLog{path: filepath.Join(dir, "audit.jsonl")}
}

// record writes one entry, and tells the host where it wants to know. A log that
// cannot be written is reported to the server's own log and stops no call.
func (a *auditLog) record(r *request, arguments json.RawMessage, began time.Time, out *reply, err error) {
	entry := auditEntry{
		Time: began.UTC().Format(time.RFC3339Nano), Tool: r.tool.name, Client: clientName(r),
		Arguments: redact(arguments), Outcome: "ok", DurationMS: r.now().Sub(began).Milliseconds(),
	}
	switch {
	case err != nil:
		entry.Outcome = "failed: " + plain.Line(err.Error(), maxAuditOutcome)
	case out != nil && out.outcome != "":
		entry.Outcome = out.outcome
	}
	if out != nil {
		if created, ok := out.structured.(createResult); ok {
			for _, run := range created.Runs {
				entry.Runs = append(entry.Runs, run.RunID)
			}
		}
	}
	r.call.Log(protocol.LevelInfo, "fabro.audit", entry)
	if a.path == "" {
		return
	}
	if err := a.append(entry); err != nil {
		r.log.Warn("audit log cannot be written", "path", a.path, "error", err)
	}
}

func clientName(r *request) string {
	c := r.call.Client()
	return plain.Line(strings.TrimSpace(c.Name+" "+c.Version), 100)
}

func (a *auditLog) append(entry auditEntry) error {
	line, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(a.path), 0o700); err != nil {
		return err
	}
	lock := flock.New(a.path + ".lock")
	if err := lock.Lock(); err != nil {
		return err
	}
	defer lock.Unlock()
	if info, err := os.Stat(a.path); err == nil && info.Size()+int64(len(line)) > maxAuditFile {
		if err := a.rotate(); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(a.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

func (a *auditLog) rotate() error {
	for i := keptAudits; i > 0; i-- {
		from := a.path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", a.path, i-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", a.path, i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// read gives the newest entries first, until keep says stop.
func (a *auditLog) read(each func(auditEntry) (more bool)) error {
	if a.path == "" {
		return nil
	}
	for i := 0; i <= keptAudits; i++ {
		name := a.path
		if i > 0 {
			name = fmt.Sprintf("%s.%d", a.path, i)
		}
		entries, err := readAudit(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for j := len(entries) - 1; j >= 0; j-- {
			if !each(entries[j]) {
				return nil
			}
		}
	}
	return nil
}

func readAudit(name string) ([]auditEntry, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var entries []auditEntry
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxAuditFile)
	for lines.Scan() {
		var entry auditEntry
		if json.Unmarshal(lines.Bytes(), &entry) == nil { // a torn line says nothing
			entries = append(entries, entry)
		}
	}
	return entries, lines.Err()
}

// secretName matches names of arguments whose values are not written down.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)secret|token|passw|api[-_]?key|credential|authorization|private[-_]?key|cookie`)
})

// secretValue matches what looks like a credential wherever it stands.
var secretValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(sk-[a-z0-9_-]{16,}|gh[pousr]_[a-z0-9]{20,}|github_pat_[a-z0-9_]{20,}|xox[a-z]-[a-z0-9-]{10,}|AKIA[A-Z0-9]{16}|eyJ[a-z0-9_-]{10,}\.[a-z0-9_-]{10,}\.[a-z0-9_-]*|fabro_[a-z]+_[a-z0-9]{16,}|Bearer\s+\S{8,})`)
})

const redacted = "[redacted]"

// redact makes arguments fit for the log: no secrets, no long texts. Names and
// shape stay.
func redact(arguments json.RawMessage) json.RawMessage {
	out, err := json.Marshal(redactValue(arguments))
	if err != nil {
		return json.RawMessage(`"unreadable"`)
	}
	return out
}

func redactValue(value json.RawMessage) any {
	switch args.Kind(value) {
	case "object":
		members, err := args.Members(value)
		if err != nil {
			return redacted
		}
		out := make(map[string]any, len(members))
		for _, m := range members {
			if secretName().MatchString(m.Name) {
				out[m.Name] = redacted
				continue
			}
			out[m.Name] = redactValue(m.Value)
		}
		return out
	case "array":
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return redacted
		}
		out := make([]any, len(items))
		for i, item := range items {
			out[i] = redactValue(item)
		}
		return out
	case "string":
		text, err := args.String("", value)
		if err != nil {
			return redacted
		}
		return plain.Clip(secretValue().ReplaceAllString(text, redacted), maxAuditText)
	}
	return value
}
