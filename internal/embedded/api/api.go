// Package api answers the Fabro API for the embedded server.
//
// One table (routes.go) lists every operation; openapi.json is made from it. A handler decodes, calls package runs and
// writes the answer; an error of package runs that is a Refusal becomes the error envelope with its status, code and
// sentence, any other a 500. What a real Fabro server offers beyond that is refused by name (refusals.go), with Fabro's
// own refusal where there is one and 501 otherwise.
//
// The package may import fabroapi/wire, internal/workflow and the other packages of internal/embedded except daemon.
package api

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/runs"
)

// Limits of request bodies, in bytes.
const (
	maxManifest = 64 << 20
	maxBody     = 1 << 20
)

// Config is what the API needs to know.
type Config struct {
	Manager    *runs.Manager
	Token      string // bearer token of all operations but health
	Version    string
	StorageDir string
	ServerURL  string // "unix:///path" or "http://127.0.0.1:port"
	Started    time.Time
	// Refused is called when a request came with another token; nil: nothing is done.
	Refused func()
	// Stop asks the daemon to stop; it returns at once.
	Stop   func()
	Logger *slog.Logger
}

// Server answers requests; it is an http.Handler.
type Server struct {
	cfg Config
	m   *runs.Manager
	log *slog.Logger
	mux *http.ServeMux
}

// New returns a server for cfg.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, m: cfg.Manager, log: cfg.Logger, mux: http.NewServeMux()}
	for _, r := range s.routes() {
		h := s.handle(r.do)
		if !r.open {
			h = s.authenticated(h)
		}
		s.mux.Handle(r.method+" "+r.path, h)
	}
	s.mux.Handle("/", s.handle(func(w http.ResponseWriter, r *http.Request) error {
		return &runs.Refusal{Status: http.StatusNotFound, Detail: fmt.Sprintf("The embedded server has no operation %s %s.", r.Method, r.URL.Path)}
	}))
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// handler does one operation. What it returns is written as an error envelope, unless it has begun to answer.
type handler func(w http.ResponseWriter, r *http.Request) error

// handle gives a request its id and turns errors and panics into answers.
func (s *Server) handle(do handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := uuid.NewString()
		w.Header().Set("x-request-id", id)
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				s.log.Error("panic in a request", "method", r.Method, "path", r.URL.Path, "panic", p)
				s.refuse(w, r, id, fmt.Errorf("internal error: %v", p))
			}
		}()
		if err := do(w, r); err != nil {
			s.refuse(w, r, id, err)
		}
	})
}

func (s *Server) authenticated(next http.Handler) http.Handler {
	want := []byte("Bearer " + s.cfg.Token)
	refuse := s.handle(func(w http.ResponseWriter, r *http.Request) error {
		return &runs.Refusal{Status: http.StatusUnauthorized, Code: wire.CodeUnauthorized, Detail: "Authentication required."}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			if s.cfg.Refused != nil {
				s.cfg.Refused()
			}
			refuse.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, id string, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // nobody is there to read it
	}
	entry := entryOf(err)
	if entry.Status == "500" {
		s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err, "request_id", id)
	}
	entry.RequestID = id
	status, _ := strconv.Atoi(entry.Status)
	respond(w, status, wire.ErrorEnvelope{Errors: []wire.ErrorEntry{entry}, RequestID: id})
}

// entryOf is an error as an entry of the envelope.
func entryOf(err error) wire.ErrorEntry {
	var ref *runs.Refusal
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &ref):
	case errors.As(err, &tooLong):
		ref = &runs.Refusal{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("The request body is larger than %d bytes.", tooLong.Limit)}
	default:
		ref = &runs.Refusal{Status: http.StatusInternalServerError, Detail: err.Error()}
	}
	return wire.ErrorEntry{Status: strconv.Itoa(ref.Status), Title: http.StatusText(ref.Status), Detail: ref.Detail, Code: ref.Code}
}

func respond(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return write(w, status, "application/json", b.Bytes())
}

// write answers with a body whose length is known, so that a reader can tell one that was cut short.
func write(w http.ResponseWriter, status int, mediaType string, body []byte) error {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
	return nil
}

func ok(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, v)
}

func bad(format string, args ...any) error {
	return &runs.Refusal{Status: http.StatusBadRequest, Detail: fmt.Sprintf(format, args...)}
}

// runID is the id in the path in its normal form.
func runID(r *http.Request) (string, error) {
	id, err := ulid.ParseStrict(r.PathValue("id"))
	if err != nil {
		return "", bad("Invalid run ID.")
	}
	return id.String(), nil
}

func stageID(r *http.Request) (string, error) {
	id := r.PathValue("stageId")
	if _, _, err := wire.ParseStageID(id); err != nil {
		return "", bad("Invalid stage ID.")
	}
	return id, nil
}

// runAndStage are the ids of a path that names a stage of a run, which need not exist.
func runAndStage(r *http.Request) (run, stage string, err error) {
	if run, err = runID(r); err != nil {
		return "", "", err
	}
	stage, err = stageID(r)
	return run, stage, err
}

// decode reads a JSON body. An empty body leaves v as it is when that is allowed.
func decode(w http.ResponseWriter, r *http.Request, v any, emptyAllowed bool) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) == 0 && emptyAllowed {
		return nil
	}
	if err := json.Unmarshal(body, v); err != nil {
		return bad("%v", err)
	}
	return nil
}

// number reads an integer parameter. Values outside low..high are moved to the nearest of the two.
func number(r *http.Request, name string, absent, low, high int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, bad("Invalid %s: %q is not a whole number.", name, text)
	}
	return min(max(n, low), high), nil
}

func boolean(r *http.Request, name string) (bool, error) {
	switch text := strings.ToLower(r.URL.Query().Get(name)); text {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	default:
		return false, bad("Invalid %s: %q is neither true nor false.", name, text)
	}
}

// RunHeader names the run on whose behalf a request is made: a client that runs inside a stage sends FABRO_RUN_ID in it.
const RunHeader = "X-Fabro-Run-Id"

// AgentHeader carries the agent command of a new run as a JSON array.
const AgentHeader = "X-Fabro-Agent-Command"

// actor says who makes a request: the owner of the token, or the run inside which the client runs.
func actor(r *http.Request) (a *wire.Actor, worker string) {
	if id, err := ulid.ParseStrict(r.Header.Get(RunHeader)); err == nil {
		return wire.Worker(id.String()), id.String()
	}
	return wire.DevUser(), ""
}
