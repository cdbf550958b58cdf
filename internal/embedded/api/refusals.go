package api

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/runs"
)

// empty is a list of something the embedded server has none of.
func empty(paged bool) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if paged {
			return respond(w, http.StatusOK, wire.List[struct{}]{Data: []struct{}{}})
		}
		return respond(w, http.StatusOK, noData)
	}
}

func emptyTotal(w http.ResponseWriter, r *http.Request) error {
	return respond(w, http.StatusOK, map[string]any{"data": []any{}, "meta": map[string]int{"total": 0}})
}

func coded(status int, code, detail string) error {
	return &runs.Refusal{Status: status, Code: code, Detail: detail}
}

// status is the status of the run in the path.
func (s *Server) status(r *http.Request) (*wire.Run, error) {
	id, err := runID(r)
	if err != nil {
		return nil, err
	}
	return s.m.Get(r.Context(), id)
}

func (s *Server) pairStatus(w http.ResponseWriter, r *http.Request) error {
	run, err := s.status(r)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, wire.PairStatus{RunID: run.ID, Targets: []wire.PairTarget{}})
}

// pairStart always refuses: no stage of the embedded server is a conversation.
func (s *Server) pairStart(w http.ResponseWriter, r *http.Request) error {
	run, err := s.status(r)
	if err != nil {
		return err
	}
	var req wire.PairStartRequest
	if err := decode(w, r, &req, false); err != nil {
		return err
	}
	if _, _, err := wire.ParseStageID(req.StageID); err != nil {
		return bad("Invalid stage ID.")
	}
	switch run.Lifecycle.Status.Kind {
	case wire.StatusRunning:
		return coded(http.StatusConflict, wire.CodePairTargetNotActive, "Requested pair target is not active.")
	case wire.StatusBlocked:
		return coded(http.StatusConflict, wire.CodeRunNotPairable, "Run is blocked on a question; answer it before pairing.")
	}
	return coded(http.StatusConflict, wire.CodeRunNotPairable, "Run is not currently pairable.")
}

func (s *Server) pairMissing(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.status(r); err != nil {
		return err
	}
	if _, err := ulid.ParseStrict(r.PathValue("pairId")); err != nil {
		return bad("Invalid pair_id.")
	}
	return coded(http.StatusNotFound, wire.CodePairNotFound, "Pair not found.")
}

// steer keeps Fabro's answers. In a running run without an agent that could be steered the text is buffered, which the
// log says, and dropped when the run ends.
func (s *Server) steer(w http.ResponseWriter, r *http.Request) error {
	run, err := s.status(r)
	if err != nil {
		return err
	}
	var req wire.SteerRunRequest
	if err := decode(w, r, &req, false); err != nil {
		return err
	}
	if strings.TrimSpace(req.Text) == "" {
		return bad("Steer text must not be empty.")
	}
	if n := utf8.RuneCountInString(req.Text); n > wire.MaxSteerLength {
		return bad("Steer text must be at most %d characters, not %d.", wire.MaxSteerLength, n)
	}
	if err := steerable(run, wire.CodeRunNotSteerable); err != nil {
		return err
	}
	if req.Interrupt {
		return coded(http.StatusConflict, wire.CodeNoActiveSteerableSession, "Run has no active steerable agent session.")
	}
	who, _ := actor(r)
	if err := s.m.Steer(r.Context(), run.ID, req.Text, who); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (s *Server) interrupt(w http.ResponseWriter, r *http.Request) error {
	run, err := s.status(r)
	if err != nil {
		return err
	}
	if err := steerable(run, wire.CodeRunNotInterruptible); err != nil {
		return err
	}
	return coded(http.StatusConflict, wire.CodeNoActiveSteerableSession, "Run has no active steerable agent session.")
}

func steerable(run *wire.Run, endedCode string) error {
	if run.Lifecycle.Archived {
		return runs.Archived(run.ID)
	}
	switch kind := run.Lifecycle.Status.Kind; {
	case kind == wire.StatusRunning:
		return nil
	case kind == wire.StatusBlocked:
		return coded(http.StatusConflict, wire.CodeUseAnswerEndpoint, "Run is blocked on a question; use the interview-answer endpoint instead.")
	case wire.Terminal(kind) || kind == wire.StatusRemoving:
		return coded(http.StatusConflict, endedCode, "Run is no longer steerable.")
	}
	return coded(http.StatusConflict, wire.CodeRunNotSteerable, "Run is not currently running.")
}

// fork refuses as Fabro does for every local run: its checkpoints have no commit to go back to.
func (s *Server) fork(verb string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		run, err := s.status(r)
		if err != nil {
			return err
		}
		d, err := s.m.Document(r.Context(), run.ID)
		if err != nil {
			return err
		}
		n := len(d.Checkpoints())
		if n == 0 {
			return bad("run %s has no checkpoint; cannot %s", run.ID, verb)
		}
		return bad("checkpoint @%d has no git_commit_sha; cannot %s", n, verb)
	}
}
