package fabroapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"fabro-mcp/fabroapi/wire"
)

// runPath is the path of a run, or of something below it; every part is
// escaped.
func runPath(id string, rest ...string) string {
	var path strings.Builder
	path.WriteString("/runs/")
	path.WriteString(url.PathEscape(id))
	for _, part := range rest {
		path.WriteByte('/')
		path.WriteString(url.PathEscape(part))
	}
	return path.String()
}

// withQuery appends parameters to a path; empty ones are left out by callers.
func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// needID refuses an empty or dot-only id, which would address another resource.
func needID(what, id string) error {
	if strings.Trim(id, ".") == "" {
		return fmt.Errorf("%s must not be %q", what, id)
	}
	return nil
}

// ResolveRun finds the run that a selector means: an id, the unique beginning
// of one, or (newest first) a workflow's slug or part of its name.
func (c *Client) ResolveRun(ctx context.Context, selector string) (*wire.Run, error) {
	var run wire.Run
	if err := c.get(ctx, withQuery("/runs/resolve", url.Values{"selector": {selector}}), &run); err != nil {
		return nil, err
	}
	return c.checked(&run, "/runs/resolve")
}

// GetRun reads one run by its id.
func (c *Client) GetRun(ctx context.Context, id string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodGet, id, nil, true)
}

// checked refuses a run without an id: some other JSON object came back.
func (c *Client) checked(run *wire.Run, path string) (*wire.Run, error) {
	if run.ID == "" {
		return nil, &AnswerError{Target: c.Target(), Method: "", Path: path, Err: errors.New("it is no run: it has no id")}
	}
	return run, nil
}

// runCall makes a request about one run whose answer is a run.
func (c *Client) runCall(ctx context.Context, method, id string, body any, safe bool, rest ...string) (*wire.Run, error) {
	if err := needID("run id", id); err != nil {
		return nil, err
	}
	var run wire.Run
	path := runPath(id, rest...)
	if err := c.call(ctx, request{method: method, path: wire.APIPrefix + path, body: body, safe: safe}, &run); err != nil {
		return nil, err
	}
	return c.checked(&run, path)
}

// ListRunsOptions filter and page GET /runs. The zero value asks for the first
// page of what is not archived, newest first.
type ListRunsOptions struct {
	// Limit is 1 to 100; 0 leaves it to the server (20).
	Limit  int
	Offset int
	// IncludeArchived lists archived runs too.
	IncludeArchived bool
	// ParentID lists the children of one run.
	ParentID string
	// Columns are board columns (wire.Column…), not status kinds.
	Columns []string
	// Sort is created_at (the default), updated_at, status, elapsed, repo, title,
	// workflow, changes or size.
	Sort string
	// Ascending turns the order round.
	Ascending bool
}

func (o ListRunsOptions) query() url.Values {
	q := url.Values{}
	if o.Limit > 0 {
		q.Set("page[limit]", strconv.Itoa(o.Limit))
	}
	if o.Offset > 0 {
		q.Set("page[offset]", strconv.Itoa(o.Offset))
	}
	if o.IncludeArchived {
		q.Set("include_archived", "true")
	}
	if o.ParentID != "" {
		q.Set("parent_id", o.ParentID)
	}
	for _, column := range o.Columns {
		q.Add("status", column)
	}
	if o.Sort != "" {
		q.Set("sort", o.Sort)
	}
	if o.Ascending {
		q.Set("direction", "asc")
	}
	return q
}

// ListRuns reads one page of runs.
func (c *Client) ListRuns(ctx context.Context, opts ListRunsOptions) (*wire.List[wire.Run], error) {
	return getList[wire.Run](ctx, c, withQuery("/runs", opts.query()))
}

// getList reads one page. An answer without the member data is no list.
func getList[T any](ctx context.Context, c *Client, path string) (*wire.List[T], error) {
	var page struct {
		Data *[]T          `json:"data"`
		Meta wire.ListMeta `json:"meta"`
	}
	if err := c.get(ctx, path, &page); err != nil {
		return nil, err
	}
	if page.Data == nil {
		label, _, _ := strings.Cut(path, "?")
		return nil, &AnswerError{Target: c.Target(), Method: http.MethodGet, Path: wire.APIPrefix + label, Err: errors.New("it is no list: it has no data")}
	}
	return &wire.List[T]{Data: *page.Data, Meta: page.Meta}, nil
}

// AgentCommandHeader carries the argv of an agent command, as a JSON array, to
// the embedded server with POST /runs. It is sent to no other server.
const AgentCommandHeader = "X-Fabro-Agent-Command"

// RunHeader carries the id of the run whose stage this process is part of, to
// the embedded server with every request: what the process does is then the
// run's doing.
const RunHeader = "X-Fabro-Run-Id"

// CreateRun creates a run from a manifest; its status is submitted, nothing runs
// before StartRun. The agent command of the manifest, if any, is passed on to
// the embedded server only.
func (c *Client) CreateRun(ctx context.Context, manifest *wire.RunManifest) (*wire.Run, error) {
	r := request{method: http.MethodPost, path: wire.APIPrefix + "/runs", body: manifest}
	if len(manifest.AgentCommand) > 0 && c.Embedded() {
		argv, err := json.Marshal(manifest.AgentCommand)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the agent command: %w", err)
		}
		r.header = http.Header{AgentCommandHeader: {asciiJSON(argv)}}
	}
	var run wire.Run
	if err := c.call(ctx, r, &run); err != nil {
		return nil, err
	}
	return c.checked(&run, "/runs")
}

// asciiJSON escapes what a header value cannot hold.
func asciiJSON(text []byte) string {
	var out strings.Builder
	for _, r := range string(text) {
		switch {
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case r > 0x7e:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// StartRun queues a submitted run, or with resume a failed one from its last
// checkpoint.
func (c *Client) StartRun(ctx context.Context, id string, resume bool) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodPost, id, wire.StartRunRequest{Resume: resume}, false, "start")
}

// ApproveRun lets a pending run go on.
func (c *Client) ApproveRun(ctx context.Context, id string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodPost, id, nil, false, "approve")
}

// DenyRun ends a pending run; reason may be empty.
func (c *Client) DenyRun(ctx context.Context, id, reason string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodPost, id, wire.DenyRunRequest{Reason: reason}, false, "deny")
}

// CancelRun cancels a run, at once or, when it executes, soon: the status of
// the answer tells.
func (c *Client) CancelRun(ctx context.Context, id string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodPost, id, nil, false, "cancel")
}

// PauseRun asks a run to stop at the next node boundary.
func (c *Client) PauseRun(ctx context.Context, id string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodPost, id, nil, false, "pause")
}

// UnpauseRun lets a paused run go on.
func (c *Client) UnpauseRun(ctx context.Context, id string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodPost, id, nil, false, "unpause")
}

// ArchiveRun hides an ended run from lists. Doing it twice is no error.
func (c *Client) ArchiveRun(ctx context.Context, id string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodPost, id, nil, true, "archive")
}

// UnarchiveRun brings an archived run back. Doing it twice is no error.
func (c *Client) UnarchiveRun(ctx context.Context, id string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodPost, id, nil, true, "unarchive")
}

// RetryRun creates and starts a new run from an ended one.
func (c *Client) RetryRun(ctx context.Context, id string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodPost, id, nil, false, "retry")
}

// DeleteRun removes a run; one that is active needs force. A run that is absent
// already counts as deleted. The response says whether a sandbox was kept.
func (c *Client) DeleteRun(ctx context.Context, id string, force bool) (*wire.DeleteRunResponse, error) {
	if err := needID("run id", id); err != nil {
		return nil, err
	}
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	out := wire.DeleteRunResponse{Deleted: true}
	err := c.call(ctx, request{method: http.MethodDelete, path: wire.APIPrefix + withQuery(runPath(id), query), safe: true}, &out)
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// SetRunTitle renames a run: one line of at most wire.MaxTitleLength characters.
func (c *Client) SetRunTitle(ctx context.Context, id, title string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodPatch, id, wire.UpdateRunRequest{Title: title}, true)
}

// SteerRun sends a message to the agent of a running stage; interrupt makes it
// stop what it does and listen. Text has 1 to wire.MaxSteerLength characters.
func (c *Client) SteerRun(ctx context.Context, id, text string, interrupt bool) error {
	return c.post(ctx, id, wire.SteerRunRequest{Text: text, Interrupt: interrupt}, "steer")
}

// InterruptRun makes the agent of a running stage stop and wait.
func (c *Client) InterruptRun(ctx context.Context, id string) error {
	return c.post(ctx, id, nil, "interrupt")
}

// post makes a request about one run whose answer says nothing.
func (c *Client) post(ctx context.Context, id string, body any, rest ...string) error {
	if err := needID("run id", id); err != nil {
		return err
	}
	return c.call(ctx, request{method: http.MethodPost, path: wire.APIPrefix + runPath(id, rest...), body: body}, nil)
}

// LinkParent makes a run the child of another.
func (c *Client) LinkParent(ctx context.Context, id, parentID string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodPut, id, wire.UpdateRunParentRequest{ParentID: parentID}, true, "parent")
}

// UnlinkParent makes a run nobody's child.
func (c *Client) UnlinkParent(ctx context.Context, id string) (*wire.Run, error) {
	return c.runCall(ctx, http.MethodDelete, id, nil, true, "parent")
}

// RunState reads the complete state of a run.
func (c *Client) RunState(ctx context.Context, id string) (*wire.RunProjection, error) {
	var state wire.RunProjection
	if err := c.runGet(ctx, id, &state, "state"); err != nil {
		return nil, err
	}
	return &state, nil
}

// RunStateRaw reads the complete state of a run as the server wrote it.
func (c *Client) RunStateRaw(ctx context.Context, id string) (json.RawMessage, error) {
	var state json.RawMessage
	if err := c.runGet(ctx, id, &state, "state"); err != nil {
		return nil, err
	}
	return state, nil
}

// RunSettings reads the settings that a run was created with.
func (c *Client) RunSettings(ctx context.Context, id string) (json.RawMessage, error) {
	var settings json.RawMessage
	if err := c.runGet(ctx, id, &settings, "settings"); err != nil {
		return nil, err
	}
	return settings, nil
}

// runGet reads something below a run.
func (c *Client) runGet(ctx context.Context, id string, into any, rest ...string) error {
	if err := needID("run id", id); err != nil {
		return err
	}
	return c.get(ctx, runPath(id, rest...), into)
}

// Validate checks a manifest; the diagnostics are in the response.
func (c *Client) Validate(ctx context.Context, manifest *wire.RunManifest) (*wire.ValidateResponse, error) {
	var out wire.ValidateResponse
	if err := c.call(ctx, request{method: http.MethodPost, path: wire.APIPrefix + "/validate", body: manifest, safe: true}, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Preflight checks a manifest and what running it needs.
func (c *Client) Preflight(ctx context.Context, manifest *wire.RunManifest) (*wire.PreflightResponse, error) {
	var out wire.PreflightResponse
	if err := c.call(ctx, request{method: http.MethodPost, path: wire.APIPrefix + "/preflight", body: manifest, safe: true}, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Health asks whether the server can take requests; it needs no credential.
func (c *Client) Health(ctx context.Context) (*wire.Health, error) {
	var out wire.Health
	if err := c.call(ctx, request{method: http.MethodGet, path: "/health", safe: true}, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// SystemInfo reads the server's version and counters.
func (c *Client) SystemInfo(ctx context.Context) (*wire.SystemInfo, error) {
	var out wire.SystemInfo
	if err := c.get(ctx, "/system/info", &out); err != nil {
		return nil, err
	}
	return &out, nil
}
