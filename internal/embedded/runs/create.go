package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/oklog/ulid/v2"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/engine"
	"fabro-mcp/internal/embedded/store"
	"fabro-mcp/internal/workflow"
)

// Creation is a request for a new run.
type Creation struct {
	Manifest *wire.RunManifest
	// ManifestJSON is the manifest as it came; it is kept as it is.
	ManifestJSON []byte
	// AgentCommand stands in for a language model in this run.
	AgentCommand []string
	Actor        *wire.Actor
	UserAgent    string
	// RetriedFrom is the run this one repeats, or "".
	RetriedFrom string
	// Title overrides the manifest's.
	Title string
}

// properties of run.created, in the order of the wire.
type createdProperties struct {
	Title           string            `json:"title,omitempty"`
	Settings        json.RawMessage   `json:"settings"`
	Graph           *workflow.Graph   `json:"graph"`
	WorkflowSource  string            `json:"workflow_source"`
	Labels          map[string]string `json:"labels,omitempty"`
	SourceDirectory string            `json:"source_directory,omitempty"`
	WorkflowSlug    string            `json:"workflow_slug,omitempty"`
	Provenance      wire.Provenance   `json:"provenance"`
	ManifestBlob    string            `json:"manifest_blob"`
	SpecBlob        string            `json:"spec_blob"`
	Git             *wire.ManifestGit `json:"git,omitempty"`
	RetriedFrom     string            `json:"retried_from,omitempty"`
	ParentID        string            `json:"parent_id,omitempty"`
}

// Create makes a run; it is submitted then and waits to be started.
func (m *Manager) Create(ctx context.Context, c Creation) (*wire.Run, error) {
	r, err := m.create(ctx, c)
	if err != nil {
		return nil, err
	}
	defer m.release(r)
	return r.view(ctx)
}

func (m *Manager) create(ctx context.Context, c Creation) (*run, error) {
	vars, err := m.variables(ctx)
	if err != nil {
		return nil, err
	}
	compiled, diagnostics, err := compile(c.Manifest, vars, true)
	if err != nil {
		return nil, err
	}
	if err := firstError(diagnostics); err != nil {
		return nil, err
	}
	if len(c.AgentCommand) == 0 && len(m.cfg.AgentCommand) == 0 && !dryRun(compiled) {
		if stages := engine.NeedsAgentBelow(compiled); len(stages) > 0 {
			return nil, needsAgent(stages)
		}
	}
	title := titleOf(compiled.Goal)
	if c.Title != "" {
		title = c.Title
	} else if t := c.Manifest.Title; t != nil && strings.TrimSpace(*t) != "" {
		if title, err = cleanTitle(*t); err != nil {
			return nil, err
		}
	}
	now := m.cfg.Now()
	id := ulid.MustNew(ulid.Timestamp(now), ulid.DefaultEntropy())
	p := createdProperties{Title: title, Graph: compiled.Graph, WorkflowSource: c.Manifest.Workflows[c.Manifest.Target.Path].Source, Labels: compiled.Settings.Metadata,
		SourceDirectory: c.Manifest.Cwd, WorkflowSlug: compiled.Slug, Git: c.Manifest.Git, RetriedFrom: c.RetriedFrom,
		Provenance: wire.Provenance{Server: &wire.ServerProvenance{Version: m.cfg.Version}, Client: client(c.UserAgent), Subject: *c.Actor}}
	if parent := c.Manifest.ParentID; parent != nil && *parent != "" {
		if p.ParentID, err = m.checkParent(ctx, id.String(), *parent); err != nil {
			return nil, err
		}
	}
	if p.Settings, err = settingsJSON(compiled); err != nil {
		return nil, err
	}
	p.ManifestBlob = store.Hash(c.ManifestJSON)
	specBlob, err := marshal(map[string]any{"run_id": id.String(), "settings": p.Settings, "graph": p.Graph, "graph_source": p.WorkflowSource, "source_directory": p.SourceDirectory})
	if err != nil {
		return nil, err
	}
	p.SpecBlob = store.Hash(specBlob)

	r := &run{m: m, id: id.String(), ready: make(chan struct{}), changed: make(chan struct{}), mailboxes: map[string]*mailbox{},
		private: private{AgentCommand: c.AgentCommand}}
	close(r.ready)
	events := []event{
		// The time of the first event is the time in the id.
		{name: "run.created", actor: c.Actor, properties: p, at: ulid.Time(id.Time()).UTC()},
		{name: "run.submitted", properties: map[string]string{"definition_blob": p.ManifestBlob}},
	}
	recs, _, _, _, err := encode(r.id, &r.state, now, events)
	if err != nil {
		return nil, err
	}
	row, err := r.row(&r.state, true)
	if err != nil {
		return nil, err
	}
	if row.Private, err = json.Marshal(r.private); err != nil {
		return nil, err
	}
	if err := m.store.Create(row, recs, c.ManifestJSON, specBlob); err != nil {
		return nil, fmt.Errorf("write the new run: %w", err)
	}
	r.num, r.bytes = row.Num, row.Bytes
	m.adopt(r)
	m.publish(r, recs)
	return r, nil
}

// needsAgent refuses a run whose stages nobody could do.
func needsAgent(stages []string) error {
	shown := stages
	more := ""
	if len(shown) > 8 {
		shown, more = shown[:8], fmt.Sprintf(" and %d more", len(stages)-8)
	}
	return &Refusal{Status: http.StatusBadRequest, Detail: fmt.Sprintf("The embedded server has no language model, and this workflow needs one for: %s%s. "+
		"Either simulate it (dry_run), or name a program that does the work (FABRO_AGENT_COMMAND, or [agent] command in embedded.toml), "+
		"or use a Fabro server (--server).", strings.Join(shown, ", "), more)}
}

// client takes "name/version" apart.
func client(userAgent string) *wire.ClientProvenance {
	if userAgent == "" {
		return nil
	}
	c := &wire.ClientProvenance{UserAgent: userAgent}
	product, _, _ := strings.Cut(userAgent, " ")
	c.Name, c.Version, _ = strings.Cut(product, "/")
	return c
}

// checkParent says whether run id may become a child of parent.
func (m *Manager) checkParent(ctx context.Context, id, parent string) (string, error) {
	p, err := ulid.ParseStrict(parent)
	if err != nil {
		return "", badRequest("invalid parent run ID: %v", err)
	}
	if p.String() == id {
		return "", errOwnParent
	}
	seen := map[string]bool{}
	for at := p.String(); at != "" && !seen[at]; {
		if at == id {
			return "", errParentCycle
		}
		seen[at] = true
		row, err := m.store.Run(ctx, at)
		if errors.Is(err, store.ErrNotFound) {
			if at == p.String() {
				return "", errNoParent
			}
			break // an ancestor that was deleted
		}
		if err != nil {
			return "", err
		}
		at = row.Parent
	}
	return p.String(), nil
}

// Retry makes a new run of what an ended one was made of, and starts it.
func (m *Manager) Retry(ctx context.Context, id string, actor *wire.Actor, userAgent string) (*wire.Run, error) {
	old, err := m.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	old.mu.Lock()
	state, agent := old.state, old.private.AgentCommand
	old.mu.Unlock()
	m.release(old)
	if !state.Status().Terminal() {
		return nil, conflict("run %s must be terminal (succeeded, failed, or dead) to retry; current status is %s", id, state.Status())
	}
	text, err := m.store.Blob(ctx, state.ManifestBlob)
	if err != nil {
		return nil, fmt.Errorf("manifest of run %s: %w", id, err)
	}
	manifest, err := m.manifest(ctx, &state)
	if err != nil {
		return nil, err
	}
	if parent := manifest.ParentID; parent != nil {
		if _, err := m.store.Run(ctx, *parent); errors.Is(err, store.ErrNotFound) {
			manifest.ParentID = nil // the parent was deleted since
		}
	}
	r, err := m.create(ctx, Creation{Manifest: manifest, ManifestJSON: text, AgentCommand: agent, Actor: actor, UserAgent: userAgent, RetriedFrom: id, Title: state.Run.Title})
	if err != nil {
		return nil, err
	}
	defer m.release(r)
	if err := m.start(r, false, actor, ""); err != nil {
		return nil, err
	}
	return r.view(ctx)
}
