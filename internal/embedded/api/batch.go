package api

import (
	"context"
	"net/http"

	"github.com/oklog/ulid/v2"

	"fabro-mcp/fabroapi/wire"
)

// maxBatch is how many runs one request may name.
const maxBatch = 250

type batchRequest struct {
	RunIDs []string `json:"run_ids"`
	Force  bool     `json:"force"`
}

type batchResult struct {
	RunID   string           `json:"run_id"`
	OK      bool             `json:"ok"`
	Outcome string           `json:"outcome"`
	Run     *wire.Run        `json:"run,omitempty"`
	Error   *wire.ErrorEntry `json:"error,omitempty"`
}

type batchSummary struct {
	Requested int `json:"requested"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
}

// batch does one thing to each of the runs in a request; what fails for one is reported beside what succeeds for others.
func (s *Server) batch(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, id string, req *batchRequest) (outcome string, run *wire.Run, err error)) error {
	var req batchRequest
	if err := decode(w, r, &req, false); err != nil {
		return err
	}
	if n := len(req.RunIDs); n < 1 || n > maxBatch {
		return bad("run_ids must name 1 to %d runs, not %d.", maxBatch, n)
	}
	seen := map[string]bool{}
	for i, text := range req.RunIDs {
		id, err := ulid.ParseStrict(text)
		if err != nil {
			return bad("Invalid run ID.")
		}
		req.RunIDs[i] = id.String()
		if seen[id.String()] {
			return bad("run_ids names %s twice.", id)
		}
		seen[id.String()] = true
	}
	results, sum := []batchResult{}, batchSummary{Requested: len(req.RunIDs)}
	for _, id := range req.RunIDs {
		res := batchResult{RunID: id}
		var err error
		res.Outcome, res.Run, err = do(r.Context(), id, &req)
		if err != nil {
			entry := entryOf(err)
			res.Error = &entry
			switch {
			case entry.Status == "404":
				res.Outcome = "not_found"
			case entry.Status == "409":
				res.Outcome = "conflict"
			default:
				res.Outcome = "error"
			}
			sum.Failed++
		} else {
			res.OK = true
			sum.Succeeded++
		}
		results = append(results, res)
	}
	return respond(w, http.StatusOK, map[string]any{"results": results, "summary": sum})
}

func (s *Server) batchArchive(archive bool) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		who, _ := actor(r)
		return s.batch(w, r, func(ctx context.Context, id string, _ *batchRequest) (string, *wire.Run, error) {
			run, already, err := s.m.Archive(ctx, id, archive, who)
			switch {
			case archive && already:
				return "already_archived", run, err
			case archive:
				return "archived", run, err
			case already:
				return "not_archived", run, err
			}
			return "unarchived", run, err
		})
	}
}

func (s *Server) batchDelete(w http.ResponseWriter, r *http.Request) error {
	who, _ := actor(r)
	return s.batch(w, r, func(ctx context.Context, id string, req *batchRequest) (string, *wire.Run, error) {
		err := s.m.Delete(ctx, id, req.Force, who)
		if err != nil && isStatus(err, http.StatusNotFound) {
			return "already_absent", nil, nil
		}
		return "deleted", nil, err
	})
}
