package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/runs"
	"fabro-mcp/internal/embedded/store"
)

// columns are the status kinds behind each column of the board.
var columns = map[string][]string{
	wire.ColumnPending:      {wire.StatusSubmitted, wire.StatusPending},
	wire.ColumnRunnable:     {wire.StatusRunnable},
	wire.ColumnInitializing: {wire.StatusStarting},
	wire.ColumnRunning:      {wire.StatusRunning, wire.StatusPaused},
	wire.ColumnBlocked:      {wire.StatusBlocked},
	wire.ColumnSucceeded:    {wire.StatusSucceeded},
	wire.ColumnFailed:       {wire.StatusFailed, wire.StatusDead},
	wire.ColumnRemoving:     {wire.StatusRemoving},
}

// sorts are the orders a list can have. Nothing is known about changes and size of a local run: those orders are that of creation.
var sorts = map[string]store.Sort{
	"": store.SortCreated, "created_at": store.SortCreated, "updated_at": store.SortUpdated, "status": store.SortStatus, "elapsed": store.SortElapsed,
	"repo": store.SortRepo, "title": store.SortTitle, "workflow": store.SortWorkflow, "changes": store.SortCreated, "size": store.SortCreated,
}

func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) error {
	q := store.Query{}
	query := r.URL.Query()
	limit, err := number(r, "page[limit]", wire.DefaultPageLimit, 1, wire.MaxPageLimit)
	if err != nil {
		return err
	}
	offset, err := number(r, "page[offset]", 0, 0, 1<<40)
	if err != nil {
		return err
	}
	archived, err := boolean(r, "include_archived")
	if err != nil {
		return err
	}
	q.Limit, q.Offset, q.Parent = int(limit), int(offset), query.Get("parent_id")
	wantArchived := false
	for _, column := range query["status"] {
		if column == wire.ColumnArchived {
			wantArchived = true
			continue
		}
		kinds, ok := columns[column]
		if !ok {
			return bad("Unknown status column %q.", column)
		}
		q.Kinds = append(q.Kinds, kinds...)
	}
	// Archived is a column of its own: an archived run shows in no other.
	switch {
	case wantArchived && len(q.Kinds) == 0:
		q.Archived = wire.Ptr(true)
	case wantArchived:
		q.ArchivedOrKinds = true
	case !archived:
		q.Archived = wire.Ptr(false)
	}
	if len(query["status"]) == 0 {
		q.ExcludeKinds = []string{wire.StatusRemoving}
	}
	sort, ok := sorts[query.Get("sort")]
	if !ok {
		return bad("Unknown sort %q.", query.Get("sort"))
	}
	q.Sort = sort
	switch query.Get("direction") {
	case "asc":
		q.Ascending = true
	case "", "desc":
	default:
		return bad("direction must be asc or desc, not %q.", query.Get("direction"))
	}
	page, total, err := s.m.List(r.Context(), q)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, wire.List[wire.Run]{Data: page, Meta: wire.ListMeta{HasMore: q.Offset+len(page) < total, Total: &total}})
}

// manifest reads the manifest in a body, and the body as it came.
func manifest(w http.ResponseWriter, r *http.Request) (*wire.RunManifest, []byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		return nil, nil, err
	}
	m := &wire.RunManifest{}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, nil, bad("%v", err)
	}
	if m.Cwd == "" {
		return nil, nil, bad("missing field `cwd`")
	}
	return m, body, nil
}

func (s *Server) createRun(w http.ResponseWriter, r *http.Request) error {
	m, body, err := manifest(w, r)
	if err != nil {
		return err
	}
	c := runs.Creation{Manifest: m, ManifestJSON: body, UserAgent: r.UserAgent()}
	c.Actor, _ = actor(r)
	if text := r.Header.Get(AgentHeader); text != "" {
		if err := json.Unmarshal([]byte(text), &c.AgentCommand); err != nil {
			return bad("%s must be a JSON array of strings: %v", AgentHeader, err)
		}
		if len(c.AgentCommand) == 0 || slices.Contains(c.AgentCommand[:1], "") {
			return bad("%s must name a program.", AgentHeader)
		}
	}
	run, err := s.m.Create(r.Context(), c)
	if err != nil {
		return err
	}
	return respond(w, http.StatusCreated, run)
}

func (s *Server) resolveRun(w http.ResponseWriter, r *http.Request) error {
	run, err := s.m.Resolve(r.Context(), r.URL.Query().Get("selector"))
	return ok(w, run, err)
}

// onRun is a handler for an operation on the run in the path that answers with the run.
func onRun(w http.ResponseWriter, r *http.Request, do func(id string, who *wire.Actor) (*wire.Run, error)) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	who, _ := actor(r)
	run, err := do(id, who)
	return ok(w, run, err)
}

func (s *Server) getRun(w http.ResponseWriter, r *http.Request) error {
	return onRun(w, r, func(id string, _ *wire.Actor) (*wire.Run, error) { return s.m.Get(r.Context(), id) })
}

func (s *Server) updateRun(w http.ResponseWriter, r *http.Request) error {
	return onRun(w, r, func(id string, who *wire.Actor) (*wire.Run, error) {
		var req wire.UpdateRunRequest
		if err := decode(w, r, &req, false); err != nil {
			return nil, err
		}
		return s.m.SetTitle(r.Context(), id, req.Title, who)
	})
}

func (s *Server) deleteRun(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	force, err := boolean(r, "force")
	if err != nil {
		return err
	}
	who, _ := actor(r)
	// A run that is not there any more counts as deleted.
	if err := s.m.Delete(r.Context(), id, force, who); err != nil && !isStatus(err, http.StatusNotFound) {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) startRun(w http.ResponseWriter, r *http.Request) error {
	return onRun(w, r, func(id string, who *wire.Actor) (*wire.Run, error) {
		var req wire.StartRunRequest
		if err := decode(w, r, &req, true); err != nil {
			return nil, err
		}
		_, worker := actor(r)
		return s.m.Start(r.Context(), id, req.Resume, who, worker)
	})
}

// errDenied is the answer to a run that would decide about its own child.
var errDenied = &runs.Refusal{Status: http.StatusForbidden, Detail: "Access denied."}

func (s *Server) approveRun(w http.ResponseWriter, r *http.Request) error {
	if _, worker := actor(r); worker != "" {
		return errDenied
	}
	return onRun(w, r, func(id string, who *wire.Actor) (*wire.Run, error) { return s.m.Approve(r.Context(), id, who) })
}

func (s *Server) denyRun(w http.ResponseWriter, r *http.Request) error {
	if _, worker := actor(r); worker != "" {
		return errDenied
	}
	return onRun(w, r, func(id string, who *wire.Actor) (*wire.Run, error) {
		var req wire.DenyRunRequest
		if err := decode(w, r, &req, true); err != nil {
			return nil, err
		}
		return s.m.Deny(r.Context(), id, strings.TrimSpace(req.Reason), who)
	})
}

func (s *Server) cancelRun(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	who, _ := actor(r)
	run, requested, err := s.m.Cancel(r.Context(), id, who)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if requested {
		status = http.StatusAccepted
	}
	return respond(w, status, run)
}

func (s *Server) pauseRun(w http.ResponseWriter, r *http.Request) error {
	return onRun(w, r, func(id string, who *wire.Actor) (*wire.Run, error) { return s.m.Pause(r.Context(), id, who) })
}

func (s *Server) unpauseRun(w http.ResponseWriter, r *http.Request) error {
	return onRun(w, r, func(id string, who *wire.Actor) (*wire.Run, error) { return s.m.Unpause(r.Context(), id, who) })
}

func (s *Server) archiveRun(archive bool) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return onRun(w, r, func(id string, who *wire.Actor) (*wire.Run, error) {
			run, _, err := s.m.Archive(r.Context(), id, archive, who)
			return run, err
		})
	}
}

func (s *Server) retryRun(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	who, _ := actor(r)
	run, err := s.m.Retry(r.Context(), id, who, r.UserAgent())
	if err != nil {
		return err
	}
	return respond(w, http.StatusCreated, run)
}

func (s *Server) linkParent(w http.ResponseWriter, r *http.Request) error {
	return onRun(w, r, func(id string, who *wire.Actor) (*wire.Run, error) {
		var req wire.UpdateRunParentRequest
		if err := decode(w, r, &req, false); err != nil {
			return nil, err
		}
		if req.ParentID == "" {
			return nil, bad("missing field `parent_id`")
		}
		return s.m.LinkParent(r.Context(), id, req.ParentID, who)
	})
}

func (s *Server) unlinkParent(w http.ResponseWriter, r *http.Request) error {
	return onRun(w, r, func(id string, who *wire.Actor) (*wire.Run, error) { return s.m.LinkParent(r.Context(), id, "", who) })
}

func (s *Server) questions(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	list, err := s.m.Questions(r.Context(), id)
	return ok(w, wire.List[wire.Question]{Data: list}, err)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	var a wire.SubmitAnswer
	if err := decode(w, r, &a, false); err != nil {
		return err
	}
	who, _ := actor(r)
	if err := s.m.Answer(r.Context(), id, r.PathValue("qid"), a, who); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) validate(w http.ResponseWriter, r *http.Request) error {
	m, _, err := manifest(w, r)
	if err != nil {
		return err
	}
	c, err := s.m.Check(r.Context(), m, false)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, wire.ValidateResponse{OK: c.OK, Workflow: c.Summary})
}

func (s *Server) preflight(w http.ResponseWriter, r *http.Request) error {
	m, _, err := manifest(w, r)
	if err != nil {
		return err
	}
	c, err := s.m.Check(r.Context(), m, true)
	if err != nil {
		return err
	}
	checks := s.m.Preflight(c, m)
	good := c.OK && !slices.ContainsFunc(checks, func(c wire.Check) bool { return c.Status == wire.CheckError })
	return respond(w, http.StatusOK, wire.PreflightResponse{OK: good, Workflow: c.Summary,
		Checks: wire.CheckReport{Title: "Run Preflight", Sections: []wire.CheckSection{{Checks: checks}}}})
}

func isStatus(err error, status int) bool {
	return err != nil && entryOf(err).Status == fmt.Sprint(status)
}
