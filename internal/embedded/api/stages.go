package api

import (
	"io"
	"net/http"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/projection"
	"fabro-mcp/internal/embedded/runs"
)

// errNoStage is the answer for a stage that a run does not have.
var errNoStage = &runs.Refusal{Status: http.StatusNotFound, Detail: "Stage not found."}

// knownStage are the run and the stage that a path names, which exist both.
func (s *Server) knownStage(r *http.Request) (run, stage string, err error) {
	if run, stage, err = runAndStage(r); err != nil {
		return "", "", err
	}
	known, err := s.m.StageExists(r.Context(), run, stage)
	if err == nil && !known {
		err = errNoStage
	}
	return run, stage, err
}

// onDocument is a handler for an operation that shows something of a run's complete state.
func (s *Server) onDocument(w http.ResponseWriter, r *http.Request, show func(d *projection.Document) (any, error)) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	d, err := s.m.Document(r.Context(), id)
	if err != nil {
		return err
	}
	v, err := show(d)
	return ok(w, v, err)
}

func (s *Server) state(w http.ResponseWriter, r *http.Request) error {
	return s.onDocument(w, r, func(d *projection.Document) (any, error) { return d.Projection(), nil })
}

func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) error {
	return s.onDocument(w, r, func(d *projection.Document) (any, error) { return d.Checkpoint(), nil })
}

func (s *Server) runSettings(w http.ResponseWriter, r *http.Request) error {
	return s.onDocument(w, r, func(d *projection.Document) (any, error) { return d.Spec().Settings, nil })
}

func (s *Server) stages(w http.ResponseWriter, r *http.Request) error {
	return s.onDocument(w, r, func(d *projection.Document) (any, error) { return wire.List[wire.RunStage]{Data: d.Stages()}, nil })
}

// timelineEntry is one checkpoint of a run.
type timelineEntry struct {
	Ordinal       int     `json:"ordinal"`
	NodeName      string  `json:"node_name"`
	Visit         int     `json:"visit"`
	CheckpointSeq int64   `json:"checkpoint_seq"`
	RunCommitSHA  *string `json:"run_commit_sha,omitempty"`
}

func (s *Server) timeline(w http.ResponseWriter, r *http.Request) error {
	return s.onDocument(w, r, func(d *projection.Document) (any, error) {
		list := []timelineEntry{}
		for i, c := range d.Checkpoints() {
			list = append(list, timelineEntry{Ordinal: i + 1, NodeName: c.Checkpoint.CurrentNode, Visit: max(1, c.Checkpoint.NodeVisits[c.Checkpoint.CurrentNode]),
				CheckpointSeq: c.Seq})
		}
		return list, nil
	})
}

// billing has nothing to charge for, but knows the stages and their time.
func (s *Server) billing(w http.ResponseWriter, r *http.Request) error {
	return s.onDocument(w, r, func(d *projection.Document) (any, error) {
		type stageRef struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		}
		type stageBilling struct {
			Stage     stageRef    `json:"stage"`
			Model     any         `json:"model"`
			Billing   wire.Usage  `json:"billing"`
			Timing    wire.Timing `json:"timing"`
			StartedAt any         `json:"started_at"`
			State     string      `json:"state"`
		}
		list, total := []stageBilling{}, wire.Timing{}
		for _, st := range d.Stages() {
			p, _ := d.Stage(st.ID)
			b := stageBilling{Stage: stageRef{st.ID, st.Name}, Billing: p.Usage, StartedAt: p.StartedAt, State: p.State}
			if p.Timing != nil {
				b.Timing = *p.Timing
				total.WallTimeMS += b.Timing.WallTimeMS
				total.InferenceTimeMS += b.Timing.InferenceTimeMS
				total.ToolTimeMS += b.Timing.ToolTimeMS
				total.ActiveTimeMS += b.Timing.ActiveTimeMS
			}
			list = append(list, b)
		}
		return map[string]any{"stages": list, "by_model": []any{}, "totals": struct {
			Timing wire.Timing `json:"timing"`
			wire.Usage
		}{Timing: total}}, nil
	})
}

func (s *Server) graphSource(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	d, err := s.m.Document(r.Context(), id)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/vnd.graphviz")
	if src := d.Spec().GraphSource; src != nil {
		io.WriteString(w, *src)
	}
	return nil
}

// runLog is a run's log for a person, made from its events.
func (s *Server) runLog(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	text, err := s.m.RunLog(r.Context(), id)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, "text/plain; charset=utf-8", text)
}

func (s *Server) stageLog(w http.ResponseWriter, r *http.Request) error {
	id, stage, err := runAndStage(r)
	if err != nil {
		return err
	}
	if r.URL.Query().Get("limit") == "0" {
		return bad("limit must be at least 1.")
	}
	limit, err := number(r, "limit", wire.DefaultLogLimit, 1, wire.MaxLogLimit)
	if err != nil {
		return err
	}
	offset, err := number(r, "offset", 0, 0, 1<<62)
	if err != nil {
		return err
	}
	log, err := s.m.StageLog(r.Context(), id, stage, offset, limit)
	if err == nil && log == nil {
		err = errNoStage
	}
	return ok(w, log, err)
}

func (s *Server) contextWindow(w http.ResponseWriter, r *http.Request) error {
	stage, err := stageID(r)
	if err != nil {
		return err
	}
	return s.onDocument(w, r, func(d *projection.Document) (any, error) {
		p, known := d.Stage(stage)
		if !known {
			return nil, errNoStage
		}
		reason := "not_agent_stage"
		if p.Handler == "agent" || p.Handler == "prompt" {
			reason = "not_observed"
		}
		return map[string]any{"stage_id": stage, "available": false, "unavailable_reason": reason, "provider": nil, "model": nil,
			"context_window_tokens": nil, "input_tokens": nil, "usage_percent": nil, "count_method": nil, "staleness": "unavailable", "generated_at": nil,
			"event_seq": nil, "breakdown": []any{}, "warnings": []any{}}, nil
	})
}

// noData is an empty list without a page description.
var noData = map[string]any{"data": []any{}}

func (s *Server) artifacts(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	_, err = s.m.Get(r.Context(), id)
	return ok(w, noData, err)
}

func (s *Server) stageArtifacts(w http.ResponseWriter, r *http.Request) error {
	_, _, err := s.knownStage(r)
	return ok(w, noData, err)
}

// files has no changes to show: a local run works in the person's own directory, and nothing says which changes there are the run's.
func (s *Server) files(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	scope := r.URL.Query().Get("scope")
	switch scope {
	case "":
		scope = "committed"
	case "committed", "uncommitted", "all":
	default:
		return bad("scope must be committed, uncommitted or all, not %q.", scope)
	}
	_, err = s.m.Get(r.Context(), id)
	return ok(w, map[string]any{"data": []any{}, "meta": map[string]any{"source": "sandbox", "scope": scope, "stats": map[string]int{"additions": 0, "deletions": 0},
		"truncated": false, "total_changed": 0, "degraded": true, "degraded_reason": "provider_unsupported"}}, err)
}

func (s *Server) readBlob(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	content, err := s.m.Blob(r.Context(), id, r.PathValue("blobHash"))
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, "application/octet-stream", content)
}

func (s *Server) writeBlob(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		return err
	}
	hash, err := s.m.PutBlob(r.Context(), id, content)
	return ok(w, map[string]string{"hash": hash}, err)
}
