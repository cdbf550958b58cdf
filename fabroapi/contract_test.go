package fabroapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// TestRequestsFitTheAPI lets every method of the client talk to a server that
// knows the API by its description only: each request must be described there
// (path, parameters, body), and each method must understand samples of the
// described answer, one as full and one as empty as it may be.
func TestRequestsFitTheAPI(t *testing.T) {
	api := needOpenAPI(t)
	for _, full := range []bool{true, false} {
		for _, m := range methods() {
			t.Run(fmt.Sprintf("%s/full=%v", m.name, full), func(t *testing.T) {
				var mu sync.Mutex
				requests := 0
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					requests++
					operation, err := api.Operation(r.Method, r.URL.EscapedPath())
					if err != nil {
						t.Error(err)
						return
					}
					if err := api.checkRequest(operation, r); err != nil {
						t.Errorf("%s %s: %v", r.Method, r.URL, err)
					}
					api.serveSample(w, operation, full)
				}))
				defer server.Close()
				client := newClient(t, server.URL, fabroapi.Options{})
				defer client.Close()
				err := m.call(t.Context(), client)
				if m.name == "AttachAll" && err == fabroapi.ErrStreamEnded {
					err = nil
				}
				if err != nil || requests == 0 {
					t.Errorf("%v after %d requests", err, requests)
				}
			})
		}
	}
}

func (a *openAPI) checkRequest(operation string, r *http.Request) error {
	query := r.URL.Query()
	list, _ := a.At(operation, "parameters")
	parameters, _ := list.([]any)
	var known []string
	for i := range parameters {
		found, pointer := a.At(fmt.Sprintf("%s/parameters/%d", operation, i))
		parameter := found.(map[string]any)
		name := parameter["name"].(string)
		if parameter["in"] != "query" {
			continue
		}
		known = append(known, name)
		if !query.Has(name) {
			if parameter["required"] == true {
				return fmt.Errorf("parameter %s is missing", name)
			}
			continue
		}
		schema, at := a.At(pointer, "schema")
		for _, text := range query[name] {
			var value any = text
			switch schema.(map[string]any)["type"] {
			case "integer":
				value = json.Number(text)
			case "boolean":
				value = text == "true"
			case "array":
				_, at = a.At(pointer, "schema", "items")
			}
			if err := a.Validate(at, value); err != nil {
				return fmt.Errorf("parameter %s: %w", name, err)
			}
		}
	}
	for name := range query {
		if !slices.Contains(known, name) {
			return fmt.Errorf("parameter %s is not described", name)
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	_, schema := a.At(operation, "requestBody", "content", "application/json", "schema")
	required, _ := a.At(operation, "requestBody", "required")
	switch {
	case len(body) == 0 && required == true:
		return fmt.Errorf("the body is missing")
	case len(body) == 0:
		return nil
	case schema == "":
		return fmt.Errorf("a body that is not described: %s", body)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return a.Validate(schema, value)
}

func (a *openAPI) serveSample(w http.ResponseWriter, operation string, full bool) {
	status, media, schema := a.response(operation)
	var code int
	fmt.Sscan(status, &code)
	switch {
	case schema == "":
		w.WriteHeader(code)
	case strings.HasPrefix(media, "text/event-stream"):
		w.Header().Set("Content-Type", media)
		event, _ := json.Marshal(a.sample("/components/schemas/EventEnvelope", full))
		fmt.Fprintf(w, "data: %s\n\n", event)
	case media == "application/json":
		sample := a.sample(schema, full)
		if list, ok := sample.(map[string]any); ok {
			if meta, ok := list["meta"].(map[string]any); ok && meta["has_more"] != nil {
				meta["has_more"] = false
			}
			// A run in a sample has ended, so that what waits for it ends too.
			if life, ok := list["lifecycle"].(map[string]any); ok {
				life["status"] = map[string]any{"kind": "succeeded", "reason": "completed"}
			}
		}
		writeJSON(w, code, sample)
	default:
		w.Header().Set("Content-Type", media)
		w.WriteHeader(code)
		io.WriteString(w, "text")
	}
}

// unnamed are described members that the types leave out on purpose: details of
// agent stages that nothing here reads (the raw state has them), and what only
// the installer sees.
var unnamed = map[string][]string{
	"RunProjection": {"live_inference_ms", "live_tool_ms", "tool_batch", "todos", "subagents", "skills", "permission_level",
		"agent_tools", "mcp_servers", "context_window", "inference", "acp_started_at"},
	"ErrorResponse": {"leftover_env_keys", "removed_env_keys"},
}

// TestTypesFitTheAPI reads samples of each described type into ours and writes
// them again: what comes out must fit the description, and no described member
// may be lost.
func TestTypesFitTheAPI(t *testing.T) {
	api := needOpenAPI(t)
	types := []struct {
		schema string
		fresh  func() any
	}{
		{"Run", func() any { return new(wire.Run) }},
		{"RunProjection", func() any { return new(wire.RunProjection) }},
		{"RunManifest", func() any { return new(wire.RunManifest) }},
		{"PaginatedRunList", func() any { return new(wire.List[wire.Run]) }},
		{"ApiQuestion", func() any { return new(wire.Question) }},
		{"EventEnvelope", func() any { return new(wire.EventEnvelope) }},
		{"RunEventDetailResponse", func() any { return new(wire.EventDetail) }},
		{"RunStage", func() any { return new(wire.RunStage) }},
		{"CommandLogResponse", func() any { return new(wire.CommandLog) }},
		{"RunArtifactListResponse", func() any { return new(wire.ArtifactList) }},
		{"ArtifactEntry", func() any { return new(wire.StageArtifact) }},
		{"ValidateResponse", func() any { return new(wire.ValidateResponse) }},
		{"PreflightResponse", func() any { return new(wire.PreflightResponse) }},
		{"RunPairStatusResponse", func() any { return new(wire.PairStatus) }},
		{"PairRecord", func() any { return new(wire.PairRecord) }},
		{"PairMessageRecord", func() any { return new(wire.PairMessage) }},
		{"PairTranscriptUserMessage", func() any { return new(wire.PairEntry) }},
		{"PairTranscriptSystemMessage", func() any { return new(wire.PairEntry) }},
		{"PairTranscriptAssistantMessage", func() any { return new(wire.PairEntry) }},
		{"PairTranscriptToolCall", func() any { return new(wire.PairEntry) }},
		{"PairTranscriptError", func() any { return new(wire.PairEntry) }},
		{"PairTranscriptWarning", func() any { return new(wire.PairEntry) }},
		{"PairTranscriptResponse", func() any { return new(wire.PairTranscript) }},
		{"ErrorResponse", func() any { return new(wire.ErrorEnvelope) }},
		{"DeleteRunResponse", func() any { return new(wire.DeleteRunResponse) }},
		{"SystemInfoResponse", func() any { return new(wire.SystemInfo) }},
		{"HealthResponse", func() any { return new(wire.Health) }},
		{"PrincipalUser", func() any { return new(wire.Actor) }},
		{"PrincipalWorker", func() any { return new(wire.Actor) }},
		{"PrincipalWebhook", func() any { return new(wire.Actor) }},
		{"PrincipalSlack", func() any { return new(wire.Actor) }},
		{"PrincipalAgent", func() any { return new(wire.Actor) }},
		{"PrincipalSystem", func() any { return new(wire.Actor) }},
		{"RunStatusPending", func() any { return new(wire.RunStatus) }},
		{"RunStatusBlocked", func() any { return new(wire.RunStatus) }},
		{"RunStatusPaused", func() any { return new(wire.RunStatus) }},
		{"RunStatusFailed", func() any { return new(wire.RunStatus) }},
		{"RunStatusRunning", func() any { return new(wire.RunStatus) }},
		{"SubmitAnswerYesRequest", func() any { return new(wire.SubmitAnswer) }},
		{"SubmitAnswerSelectedRequest", func() any { return new(wire.SubmitAnswer) }},
		{"SubmitAnswerMultiSelectedRequest", func() any { return new(wire.SubmitAnswer) }},
		{"SubmitAnswerTextRequest", func() any { return new(wire.SubmitAnswer) }},
		{"StartRunRequest", func() any { return new(wire.StartRunRequest) }},
		{"DenyRunRequest", func() any { return new(wire.DenyRunRequest) }},
		{"SteerRunRequest", func() any { return new(wire.SteerRunRequest) }},
		{"UpdateRunParentRequest", func() any { return new(wire.UpdateRunParentRequest) }},
		{"UpdateRunRequest", func() any { return new(wire.UpdateRunRequest) }},
		{"PairStartRequest", func() any { return new(wire.PairStartRequest) }},
		{"PairMessageRequest", func() any { return new(wire.PairMessageRequest) }},
	}
	for _, test := range types {
		for _, full := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/full=%v", test.schema, full), func(t *testing.T) {
				pointer := "/components/schemas/" + test.schema
				sample := api.sample(pointer, full)
				if err := api.Validate(pointer, sample); err != nil {
					t.Fatalf("the sample itself does not fit: %v", err)
				}
				text, err := json.Marshal(sample)
				if err != nil {
					t.Fatal(err)
				}
				typed := test.fresh()
				if err := json.Unmarshal(text, typed); err != nil {
					t.Fatalf("cannot read %s: %v", text, err)
				}
				again, err := json.Marshal(typed)
				if err != nil {
					t.Fatal(err)
				}
				value, err := jsonschema.UnmarshalJSON(bytes.NewReader(again))
				if err != nil {
					t.Fatal(err)
				}
				if err := api.Validate(pointer, value); err != nil {
					t.Errorf("what comes out does not fit: %v\n%s", err, again)
				}
				for _, lost := range missing("", sample, value, append(unnamed[test.schema], "member_of_a_newer_server")) {
					t.Errorf("lost: %s", lost)
				}
			})
		}
	}
}

// missing lists the members of want that got does not have, except null ones
// and those allowed.
func missing(path string, want, got any, allowed []string) []string {
	var out []string
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for name, value := range want {
			here := path + "." + name
			if other, ok := object[name]; ok {
				out = append(out, missing(here, value, other, allowed)...)
			} else if value != nil && !slices.Contains(allowed, name) {
				out = append(out, here)
			}
		}
	case []any:
		list, _ := got.([]any)
		for i, value := range want {
			if i < len(list) {
				out = append(out, missing(fmt.Sprintf("%s[%d]", path, i), value, list[i], allowed)...)
			} else {
				out = append(out, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	return out
}
