package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/plural"
	"fabro-mcp/protocol"
	"fabro-mcp/tools/plain"
)

// How long a client may keep what it read.
const (
	liveTTL  = 2 * time.Second // of what is still going on
	endedTTL = time.Minute     // of a run that has ended: it may still be archived or retried
)

// Limits of resources.
const (
	recentRuns     = 50
	resourceEvents = 200       // the newest events of a run
	maxLogResource = 256 << 10 // bytes of the end of a log
)

const (
	mimeJSON = "application/json"
	mimeText = "text/plain"
	mimeDOT  = "text/vnd.graphviz"
)

// resources shows the server, its workflows and its runs as resources.
type resources struct {
	host *host
}

// Parts of a run, and what they hold.
var runParts = []struct{ name, title, mime, description string }{
	{"state", "State of a run", mimeJSON, "The complete state of a run: settings, graph, stages, checkpoints, open questions"},
	{"events", "Events of a run", mimeJSON, "The newest events of a run, newest first"},
	{"questions", "Questions of a run", mimeJSON, "The open questions of a run"},
	{"graph", "Graph of a run", mimeDOT, "The source of the graph that a run executes"},
	{"artifacts", "Artifacts of a run", mimeJSON, "The files that a run kept"},
}

func (r *resources) ListResources(context.Context, *protocol.Exchange) ([]protocol.Resource, error) {
	return []protocol.Resource{
		{URI: "fabro://runs", Name: "runs", Title: "Recent runs", Description: "The newest runs that are not archived", MIMEType: mimeJSON},
		{URI: "fabro://server", Name: "server", Title: "Fabro server", Description: "Which server this is, its version and how many runs it has", MIMEType: mimeJSON},
		{URI: "fabro://workflows", Name: "workflows", Title: "Workflows", Description: "The workflows that can be run by name, of the project and of the user", MIMEType: mimeJSON},
	}, nil
}

func (r *resources) ListTemplates(context.Context, *protocol.Exchange) ([]protocol.ResourceTemplate, error) {
	out := []protocol.ResourceTemplate{
		{URITemplate: "fabro://runs/{run_id}", Name: "run", Title: "Run", Description: "One run, in short", MIMEType: mimeJSON},
	}
	for _, part := range runParts {
		out = append(out, protocol.ResourceTemplate{
			URITemplate: "fabro://runs/{run_id}/" + part.name, Name: "run_" + part.name, Title: part.title, Description: part.description, MIMEType: part.mime,
		})
	}
	return append(out,
		protocol.ResourceTemplate{URITemplate: "fabro://runs/{run_id}/logs/{stage_id}", Name: "run_log", Title: "Log of a stage", Description: "The end of what a command stage wrote; stage_id is node@visit", MIMEType: mimeText},
		protocol.ResourceTemplate{URITemplate: "fabro://workflows/{name}", Name: "workflow", Title: "Workflow", Description: "The graph and settings of one workflow", MIMEType: mimeJSON},
	), nil
}

// address is a parsed resource uri.
type address struct {
	kind string // server, workflows, workflow, runs, run, log, or a part of a run
	id   string // run id or workflow name
	sub  string // stage id
}

// parseURI reads a uri of ours; ok is false for anything else.
func parseURI(uri string) (address, bool) {
	rest, ours := strings.CutPrefix(uri, "fabro://")
	if !ours || len(uri) > 2048 || strings.ContainsAny(uri, "?#\x00") {
		return address{}, false
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		plainText, err := url.PathUnescape(s)
		if err != nil || plainText == "" || plainText == "." || plainText == ".." || strings.ContainsAny(plainText, "/\\\x00") {
			return address{}, false
		}
		segments[i] = plainText
	}
	switch {
	case len(segments) == 1 && (segments[0] == "server" || segments[0] == "workflows" || segments[0] == "runs"):
		return address{kind: segments[0]}, true
	case len(segments) == 2 && segments[0] == "workflows":
		return address{kind: "workflow", id: segments[1]}, true
	case len(segments) < 2 || segments[0] != "runs":
		return address{}, false
	case len(segments) == 2:
		return address{kind: "run", id: segments[1]}, true
	case len(segments) == 4 && segments[2] == "logs":
		return address{kind: "log", id: segments[1], sub: segments[3]}, true
	case len(segments) == 3:
		for _, part := range runParts {
			if part.name == segments[2] {
				return address{kind: part.name, id: segments[1]}, true
			}
		}
	}
	return address{}, false
}

func (r *resources) ReadResource(ctx context.Context, uri string, _ *protocol.Exchange) (*protocol.ReadResult, error) {
	a, ok := parseURI(uri)
	if !ok {
		return nil, protocol.ErrResourceNotFound{URI: uri}
	}
	switch a.kind {
	case "workflows":
		list := r.host.listWorkflows("")
		if list == nil {
			list = []workflowEntry{}
		}
		return r.json(uri, map[string]any{"workflows": list}, liveTTL)
	case "workflow":
		return r.workflow(uri, a.id)
	}
	out, err := r.readRun(ctx, uri, a)
	if err != nil {
		return nil, r.host.readError(uri, err)
	}
	return out, nil
}

// readError gives a missing run the protocol's error, and others their sentence.
func (h *host) readError(uri string, err error) error {
	var missing protocol.ErrResourceNotFound
	switch {
	case errors.As(err, &missing), errors.Is(err, context.Canceled):
		return err
	case isGone(err):
		return protocol.ErrResourceNotFound{URI: uri}
	}
	return &protocol.Error{Code: protocol.CodeInternal, Message: h.sentence(err)}
}

func (r *resources) readRun(ctx context.Context, uri string, a address) (*protocol.ReadResult, error) {
	client, err := r.host.client(ctx)
	if err != nil {
		return nil, err
	}
	switch a.kind {
	case "server":
		return r.server(ctx, uri, client)
	case "runs":
		page, err := client.ListRuns(ctx, fabroapi.ListRunsOptions{Limit: recentRuns})
		if err != nil {
			return nil, err
		}
		runs := []runSummary{}
		for i := range page.Data {
			runs = append(runs, summarize(&page.Data[i]))
		}
		return r.json(uri, map[string]any{"runs": runs, "has_more": page.Meta.HasMore}, liveTTL)
	}
	run, err := client.ResolveRun(ctx, a.id)
	var api *fabroapi.APIError
	if errors.As(err, &api) && api.Status == 400 {
		return nil, protocol.ErrResourceNotFound{URI: uri} // an ambiguous prefix names no resource
	}
	if err != nil {
		return nil, err
	}
	ttl := liveTTL
	if run.Lifecycle.Status.Terminal() {
		ttl = endedTTL
	}
	switch a.kind {
	case "run":
		return r.json(uri, summarize(run), ttl)
	case "state":
		state, err := client.RunStateRaw(ctx, run.ID)
		if err != nil {
			return nil, err
		}
		return r.json(uri, state, ttl)
	case "events":
		page, err := client.Events(ctx, run.ID, fabroapi.EventsOptions{Desc: true, Limit: resourceEvents})
		if err != nil {
			return nil, err
		}
		return r.json(uri, map[string]any{"run_id": run.ID, "events": emptyList(page.Data), "has_more": page.Meta.HasMore}, ttl)
	case "questions":
		questions, err := client.Questions(ctx, run.ID)
		if err != nil {
			return nil, err
		}
		return r.json(uri, map[string]any{"run_id": run.ID, "questions": emptyList(questions)}, liveTTL)
	case "artifacts":
		artifacts, err := client.Artifacts(ctx, run.ID)
		if err != nil {
			return nil, err
		}
		out := map[string]any{"run_id": run.ID, "artifacts": emptyList(artifacts)}
		if client.Embedded() {
			out["note"] = "The embedded server keeps no artifacts: a run leaves its files in its working directory."
		}
		return r.json(uri, out, ttl)
	case "graph":
		source, err := client.GraphSource(ctx, run.ID)
		if err != nil {
			return nil, err
		}
		return text(uri, mimeDOT, plain.Clean(source), endedTTL), nil
	}
	return r.log(ctx, uri, client, run, a.sub, ttl)
}

func emptyList[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// server says which server is used, without anything secret.
func (r *resources) server(ctx context.Context, uri string, client *fabroapi.Client) (*protocol.ReadResult, error) {
	info, err := client.SystemInfo(ctx)
	out := map[string]any{"target": client.Target().String(), "embedded": client.Embedded(), "mcp_server_version": r.host.cfg.Version, "read_only": r.host.cfg.ReadOnly}
	if err != nil {
		// Which server does not answer is worth knowing, too.
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out["problem"] = r.host.sentence(err)
		return r.json(uri, out, liveTTL)
	}
	out["info"] = info
	return r.json(uri, out, liveTTL)
}

// log is the end of what a stage wrote.
func (r *resources) log(ctx context.Context, uri string, client *fabroapi.Client, run *wire.Run, stage string, ttl time.Duration) (*protocol.ReadResult, error) {
	if _, _, err := wire.ParseStageID(stage); err != nil {
		return nil, protocol.ErrResourceNotFound{URI: uri}
	}
	data, before, err := logTail(ctx, client, run.ID, stage, maxLogResource)
	if err != nil {
		return nil, err
	}
	body := plain.Clean(string(data))
	if before > 0 {
		body = fmt.Sprintf("[not shown: the first %s]\n%s", plural.Count(before, "byte"), body)
	}
	return text(uri, mimeText, body, ttl), nil
}

func (r *resources) workflow(uri, name string) (*protocol.ReadResult, error) {
	for _, w := range r.host.listWorkflows("") {
		if w.Name != name {
			continue
		}
		config, graph, err := r.host.readWorkflow(w)
		if err != nil {
			return nil, &protocol.Error{Code: protocol.CodeInternal, Message: err.Error()}
		}
		return r.json(uri, map[string]any{"workflow": w, "config": config, "graph": graph}, liveTTL)
	}
	return nil, protocol.ErrResourceNotFound{URI: uri}
}

func (r *resources) json(uri string, v any, ttl time.Duration) (*protocol.ReadResult, error) {
	body, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return nil, err
	}
	return text(uri, mimeJSON, string(plain.CleanJSON(body)), ttl), nil
}

func text(uri, mime, body string, ttl time.Duration) *protocol.ReadResult {
	return &protocol.ReadResult{
		Contents: []protocol.ResourceContents{{URI: uri, MIMEType: mime, Text: body}},
		TTL:      ttl, Scope: protocol.ScopePrivate,
	}
}

// logTail reads the last bytes of a stage's log and says how many precede them.
func logTail(ctx context.Context, client *fabroapi.Client, runID, stage string, most int) (data []byte, before int64, err error) {
	head, err := client.StageLog(ctx, runID, stage, 0, most)
	if err != nil {
		return nil, 0, err
	}
	if head.TotalBytes <= int64(len(head.Bytes)) {
		return head.Bytes, 0, nil
	}
	before = head.TotalBytes - int64(most)
	tail, err := client.StageLog(ctx, runID, stage, before, most)
	if err != nil {
		return nil, 0, err
	}
	return tail.Bytes, before, nil
}
