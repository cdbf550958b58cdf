package api

import (
	"net/http"
	"runtime"
	"strings"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/runs"
)

func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	return respond(w, http.StatusOK, wire.Health{Status: "ok"})
}

func (s *Server) systemInfo(w http.ResponseWriter, r *http.Request) error {
	counts, err := s.m.Counts(r.Context())
	return ok(w, wire.SystemInfo{Version: s.cfg.Version, ServerURL: s.cfg.ServerURL, Profile: wire.Ptr("embedded"), OS: runtime.GOOS, Arch: runtime.GOARCH,
		StorageEngine: "sqlite", StorageDir: s.cfg.StorageDir, UptimeSecs: int64(time.Since(s.cfg.Started).Seconds()), Runs: counts, SandboxProvider: "local"}, err)
}

func (s *Server) diskUsage(w http.ResponseWriter, r *http.Request) error {
	counts, err := s.m.Counts(r.Context())
	if err != nil {
		return err
	}
	size := s.m.Store().Size()
	return respond(w, http.StatusOK, map[string]any{"total_size_bytes": size, "total_reclaimable_bytes": 0, "runs": nil,
		"summary": []any{map[string]any{"type": "runs", "count": counts.Total, "active": counts.Active, "size_bytes": size, "reclaimable_bytes": nil}}})
}

func (s *Server) authConfig(w http.ResponseWriter, r *http.Request) error {
	return respond(w, http.StatusOK, map[string]any{"methods": []string{"dev-token"}})
}

func (s *Server) authMe(w http.ResponseWriter, r *http.Request) error {
	return respond(w, http.StatusOK, map[string]any{"provider": "dev-token", "demoMode": false, "user": map[string]any{"login": "dev", "name": "dev", "email": "",
		"avatarUrl": "", "userUrl": "", "idpIssuer": "fabro:dev", "idpSubject": "dev"}})
}

func (s *Server) user(w http.ResponseWriter, r *http.Request) error {
	return respond(w, http.StatusOK, map[string]string{"login": "dev"})
}

// environments are the two that every Fabro server knows. Here both are this machine.
func (s *Server) environments(w http.ResponseWriter, r *http.Request) error {
	var list []any
	for _, id := range []string{"default", "local"} {
		list = append(list, map[string]any{"id": id, "revision": strings.Repeat("0", 64), "provider": "local", "image": map[string]any{"docker": nil, "dockerfile": nil},
			"resources": map[string]any{"cpu": nil, "memory": nil, "disk": nil}, "network": map[string]any{"mode": "allow_all", "allow": []string{}},
			"lifecycle": map[string]any{"preserve": false, "stop_on_terminal": true, "auto_stop": nil}, "labels": map[string]string{}, "env": map[string]string{}})
	}
	return respond(w, http.StatusOK, map[string]any{"data": list, "meta": map[string]int{"total": len(list)}})
}

func (s *Server) stop(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Stop == nil {
		return &runs.Refusal{Status: http.StatusNotImplemented, Detail: "This server cannot be stopped over its API."}
	}
	w.WriteHeader(http.StatusAccepted)
	http.NewResponseController(w).Flush()
	s.cfg.Stop()
	return nil
}

func (s *Server) listVariables(w http.ResponseWriter, r *http.Request) error {
	list, err := s.m.Variables(r.Context())
	return ok(w, map[string]any{"data": list}, err)
}

// variableRequest is the body of the operations that write a variable.
type variableRequest struct {
	Name        string  `json:"name"`
	Value       *string `json:"value"`
	Description *string `json:"description"`
}

func (s *Server) createVariable(w http.ResponseWriter, r *http.Request) error {
	var req variableRequest
	if err := decode(w, r, &req, false); err != nil {
		return err
	}
	if req.Value == nil {
		return bad("missing field `value`")
	}
	v, err := s.m.CreateVariable(r.Context(), req.Name, *req.Value, req.Description)
	return ok(w, v, err)
}

func (s *Server) getVariable(w http.ResponseWriter, r *http.Request) error {
	v, err := s.m.Variable(r.Context(), r.PathValue("name"))
	return ok(w, v, err)
}

func (s *Server) updateVariable(w http.ResponseWriter, r *http.Request) error {
	var req variableRequest
	if err := decode(w, r, &req, false); err != nil {
		return err
	}
	if req.Value == nil {
		return bad("missing field `value`")
	}
	v, err := s.m.UpdateVariable(r.Context(), r.PathValue("name"), *req.Value, req.Description)
	return ok(w, v, err)
}

func (s *Server) deleteVariable(w http.ResponseWriter, r *http.Request) error {
	if err := s.m.DeleteVariable(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
