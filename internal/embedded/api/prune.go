package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"fabro-mcp/internal/embedded/runs"
	"fabro-mcp/internal/embedded/store"
)

// BusyQuery is the query of the list of runs that shows those that keep a server from being idle.
const BusyQuery = "status=runnable&status=initializing&status=running&status=blocked"

// pruneRequest says which ended runs to remove. Without dry_run: false nothing is.
type pruneRequest struct {
	DryRun    *bool             `json:"dry_run"`
	Before    string            `json:"before"`
	Workflow  string            `json:"workflow"`
	Labels    map[string]string `json:"labels"`
	OlderThan string            `json:"older_than"`
}

type pruneEntry struct {
	RunID        string `json:"run_id"`
	DirName      string `json:"dir_name"`
	WorkflowName string `json:"workflow_name"`
	SizeBytes    int64  `json:"size_bytes"`
}

func (s *Server) pruneRuns(w http.ResponseWriter, r *http.Request) error {
	var req pruneRequest
	if err := decode(w, r, &req, true); err != nil {
		return err
	}
	var age time.Duration
	if req.OlderThan != "" {
		var err error
		if age, err = runs.ParseAge(req.OlderThan); err != nil {
			return bad("older_than: %v; send for example \"36h\" or \"30d\".", err)
		}
	}
	rows, err := s.m.Prunable(r.Context(), age)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(row store.Row) bool {
		return req.Before != "" && row.Created.Format(time.DateOnly) >= req.Before || req.Workflow != "" && !strings.Contains(row.Name, req.Workflow)
	})
	dryRun := req.DryRun == nil || *req.DryRun
	list := []pruneEntry{}
	var total, freed, deleted int64
	for i := range rows {
		row := &rows[i]
		run, err := s.m.Get(r.Context(), row.ID)
		if isStatus(err, http.StatusNotFound) || err == nil && !labelled(run.Labels, req.Labels) {
			continue
		}
		if err != nil {
			return err
		}
		list = append(list, pruneEntry{row.ID, row.ID, row.Name, row.Bytes})
		total += row.Bytes
		if dryRun {
			continue
		}
		who, _ := actor(r)
		if err := s.m.Delete(r.Context(), row.ID, false, who); err != nil {
			return err
		}
		deleted++
		freed += row.Bytes
	}
	answer := map[string]any{"dry_run": dryRun, "runs": nil, "total_count": len(list), "total_size_bytes": total}
	if dryRun {
		answer["runs"] = list
	} else {
		answer["deleted_count"], answer["freed_bytes"] = deleted, freed
	}
	return respond(w, http.StatusOK, answer)
}

func labelled(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}
