package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/engine"
	"fabro-mcp/internal/embedded/store"
)

// blobScheme begins a reference to a blob in an event.
const blobScheme = "blob://sha256/"

// StageExists reports whether a run has a stage of this id.
func (m *Manager) StageExists(ctx context.Context, id, stage string) (bool, error) {
	num, err := m.number(ctx, id)
	if err != nil {
		return false, err
	}
	recs, err := m.store.StageEvents(ctx, num, stage, 1, 1)
	return len(recs) > 0, err
}

// StageLog reads a part of what a stage's command wrote: from the live file, else from the blob or the text in the
// event. It returns nil when there is no such stage.
func (m *Manager) StageLog(ctx context.Context, id, stage string, offset, limit int64) (*wire.CommandLog, error) {
	num, err := m.number(ctx, id)
	if err != nil {
		return nil, err
	}
	log := &wire.CommandLog{Offset: offset}
	var output *string
	ended, known := false, false
	for since := int64(1); ; {
		recs, err := m.store.StageEvents(ctx, num, stage, since, readPage)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			known = true
			since = recs[i].Seq + 1
			switch recs[i].Name {
			case wire.EventStageStarted, "command.started":
				ended, output, log.LiveStreaming = false, nil, true
			case wire.EventStageCompleted, wire.EventStageFailed:
				ended = true
			case "command.completed":
				var e struct {
					Properties struct {
						Output        string `json:"output"`
						LiveStreaming bool   `json:"live_streaming"`
					} `json:"properties"`
				}
				if err := json.Unmarshal(recs[i].Body, &e); err != nil {
					return nil, err
				}
				ended, output, log.LiveStreaming = true, &e.Properties.Output, e.Properties.LiveStreaming
			}
		}
		if len(recs) < readPage {
			break
		}
	}
	if !known {
		return nil, nil
	}
	if !ended {
		// A run that was cut off leaves stages without an end.
		run, err := m.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		ended = run.Lifecycle.Status.Terminal()
	}
	if output != nil && strings.HasPrefix(*output, blobScheme) {
		log.CASRef = output
	}
	if err := m.readOutput(ctx, log, engine.StageLogPath(m.RunDir(id), stage), output, limit); err != nil {
		return nil, err
	}
	if log.Bytes == nil {
		log.Bytes = []byte{}
	}
	log.NextOffset = log.Offset + int64(len(log.Bytes))
	log.EOF = ended && log.NextOffset >= log.TotalBytes
	return log, nil
}

func (m *Manager) readOutput(ctx context.Context, log *wire.CommandLog, path string, output *string, limit int64) error {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		log.TotalBytes = info.Size()
		log.Offset = min(log.Offset, log.TotalBytes)
		log.Bytes, err = io.ReadAll(io.NewSectionReader(f, log.Offset, limit))
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) || output == nil {
		if errors.Is(err, fs.ErrNotExist) {
			log.Offset = 0
			return nil
		}
		return err
	}
	text := []byte(*output)
	if log.CASRef != nil {
		raw, err := m.store.Blob(ctx, strings.TrimPrefix(*output, blobScheme))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		var s string
		if json.Unmarshal(raw, &s) == nil {
			raw = []byte(s)
		}
		text = raw
	}
	log.TotalBytes = int64(len(text))
	log.Offset = min(log.Offset, log.TotalBytes)
	log.Bytes = text[log.Offset:min(log.Offset+limit, log.TotalBytes)]
	return nil
}

// RunLog is a run's log for a person: one line an event, in the order of what happened.
func (m *Manager) RunLog(ctx context.Context, id string) ([]byte, error) {
	num, err := m.number(ctx, id)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = m.each(ctx, num, func(e *wire.EventEnvelope) error {
		fmt.Fprintf(&b, "%s %-22s", e.TS.Format("2006-01-02T15:04:05.000Z"), e.Event)
		if e.StageID != "" {
			fmt.Fprintf(&b, " %s", e.StageID)
		}
		if note := logNote(e); note != "" {
			fmt.Fprintf(&b, " %s", note)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// logNote is what a person wants to know of an event beside its name.
func logNote(e *wire.EventEnvelope) string {
	var p struct {
		Title    string          `json:"title"`
		Status   string          `json:"status"`
		Notes    string          `json:"notes"`
		Question string          `json:"question"`
		Answer   string          `json:"answer"`
		ToNode   string          `json:"to_node"`
		Reason   string          `json:"reason"`
		Message  string          `json:"message"`
		Script   string          `json:"script"`
		ExitCode *int            `json:"exit_code"`
		Failure  json.RawMessage `json:"failure"`
	}
	if json.Unmarshal(e.Properties, &p) != nil {
		return ""
	}
	var notes []string
	add := func(format string, v string) {
		if v != "" {
			line, _, more := strings.Cut(v, "\n")
			if more {
				line += " …"
			}
			notes = append(notes, fmt.Sprintf(format, line))
		}
	}
	add("%s", p.Title)
	add("%s", p.Status)
	add("→ %s", p.ToNode)
	add("(%s)", p.Reason)
	add("%s", p.Question)
	add("answer: %s", p.Answer)
	add("$ %s", p.Script)
	if p.ExitCode != nil {
		add("exit code %s", fmt.Sprint(*p.ExitCode))
	}
	add("%s", p.Notes)
	add("%s", p.Message)
	var f struct {
		Message string                   `json:"message"`
		Detail  struct{ Message string } `json:"detail"`
	}
	if len(p.Failure) > 0 && json.Unmarshal(p.Failure, &f) == nil {
		add("%s", f.Message+f.Detail.Message)
	}
	return strings.Join(notes, " ")
}
