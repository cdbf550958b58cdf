// Package projection derives what is shown about a run from the run's events.
//
// There are two reducers. State is the small one: status, questions, timestamps, the Run of lists. It is kept in memory
// while a run lives, is the derived row of the store afterwards, and it is what refuses an illegal event before it is
// stored. Document is the complete one, RunProjection with all stages and checkpoints, and is built from the whole log
// when somebody asks.
//
// Both follow Fabro's reducer. The package may import fabroapi/wire only.
package projection

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"fabro-mcp/fabroapi/wire"
)

// Interview is an open question, in the order the questions were asked.
type Interview struct {
	Question  wire.Question `json:"question"`
	StartedAt time.Time     `json:"started_at"`
	StageID   string        `json:"stage_id,omitempty"`
}

// State is the small state of a run. Values are never changed in place by Apply: a State may be copied by assignment and both copies used.
type State struct {
	// Run is the run as lists show it; ChildrenCount and Lifecycle.QueuePosition are for the caller to fill in.
	Run             wire.Run          `json:"run"`
	StatusUpdatedAt time.Time         `json:"status_updated_at"`
	Interviews      []Interview       `json:"interviews,omitempty"`
	Start           *wire.StartRecord `json:"start,omitempty"`
	Checkpoints     int               `json:"checkpoints,omitempty"`
	LastSeq         int64             `json:"last_seq"`
	ManifestBlob    string            `json:"manifest_blob,omitempty"`
	SpecBlob        string            `json:"spec_blob,omitempty"`
	DryRun          bool              `json:"dry_run,omitempty"`
	Steers          int               `json:"steers,omitempty"` // messages that wait for an agent
}

// Status is the run's status.
func (s *State) Status() wire.RunStatus { return s.Run.Lifecycle.Status }

// Interview returns the open question with this id.
func (s *State) Interview(id string) (Interview, bool) {
	for _, q := range s.Interviews {
		if q.Question.ID == id {
			return q, true
		}
	}
	return Interview{}, false
}

// created are the properties of run.created.
type created struct {
	Title             string              `json:"title"`
	Settings          json.RawMessage     `json:"settings"`
	Graph             json.RawMessage     `json:"graph"`
	WorkflowSource    *string             `json:"workflow_source"`
	Labels            map[string]string   `json:"labels"`
	SourceDirectory   *string             `json:"source_directory"`
	WorkflowSlug      *string             `json:"workflow_slug"`
	WorkflowVersionID *string             `json:"workflow_version_id"`
	Automation        json.RawMessage     `json:"automation"`
	Provenance        wire.Provenance     `json:"provenance"`
	ManifestBlob      *string             `json:"manifest_blob"`
	SpecBlob          *string             `json:"spec_blob"`
	Git               *wire.ManifestGit   `json:"git"`
	ForkSourceRef     *wire.ForkSourceRef `json:"fork_source_ref"`
	RetriedFrom       *string             `json:"retried_from"`
	ParentID          *string             `json:"parent_id"`
	WebURL            *string             `json:"web_url"`
}

// summary is what the run of a list shows of the settings and the graph.
type summary struct {
	Workflow struct {
		Name *string `json:"name"`
	} `json:"workflow"`
	Run struct {
		Goal *struct {
			Value string `json:"value"`
		} `json:"goal"`
		Model struct {
			Provider *string `json:"provider"`
			Name     *string `json:"name"`
		} `json:"model"`
		Execution struct {
			Mode string `json:"mode"`
		} `json:"execution"`
		Environment struct {
			Provider string `json:"provider"`
		} `json:"environment"`
	} `json:"run"`
}

type graphSummary struct {
	Name  string                     `json:"name"`
	Nodes map[string]json.RawMessage `json:"nodes"`
	Edges []json.RawMessage          `json:"edges"`
	Attrs map[string]struct {
		String *string `json:"String"`
	} `json:"attrs"`
}

func (s *State) create(e *wire.EventEnvelope) error {
	if s.LastSeq != 0 {
		return fmt.Errorf("run.created must be the first event")
	}
	var p created
	if err := json.Unmarshal(e.Properties, &p); err != nil {
		return fmt.Errorf("properties of run.created: %w", err)
	}
	var set summary
	if err := json.Unmarshal(p.Settings, &set); err != nil {
		return fmt.Errorf("settings of run.created: %w", err)
	}
	var g graphSummary
	if err := json.Unmarshal(p.Graph, &g); err != nil {
		return fmt.Errorf("graph of run.created: %w", err)
	}
	goal := ""
	if set.Run.Goal != nil {
		goal = set.Run.Goal.Value
	} else if a, ok := g.Attrs["goal"]; ok && a.String != nil {
		goal = *a.String
	}
	labels := p.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	s.Run = wire.Run{
		ID: e.RunID, ParentID: p.ParentID, Title: p.Title, Goal: goal,
		Workflow:        wire.RunWorkflow{Slug: p.WorkflowSlug, Name: set.Workflow.Name, NodeCount: len(g.Nodes), EdgeCount: len(g.Edges)},
		Automation:      null(p.Automation),
		Repository:      repository(p.Git),
		CreatedBy:       p.Provenance.Subject,
		Origin:          wire.RunOrigin{Kind: "api"},
		Labels:          labels,
		Lifecycle:       wire.RunLifecycle{Status: wire.RunStatus{Kind: wire.StatusSubmitted}},
		Sandbox:         &wire.RunSandbox{Kind: wire.SandboxPlanned, Plan: wire.RunSandboxPlan{Provider: "local"}},
		Models:          []wire.RunModel{},
		SourceDirectory: p.SourceDirectory,
		Timestamps:      wire.RunTimestamps{CreatedAt: e.TS},
		Size:            "XS",
		AskFabro:        wire.AskFabro{UnavailableReason: wire.Ptr("llm_unconfigured")},
		RetriedFrom:     p.RetriedFrom,
		Links:           wire.RunLinks{Web: p.WebURL},
	}
	if g.Name != "" {
		s.Run.Workflow.GraphName = &g.Name
	}
	if set.Run.Model.Name != nil {
		s.Run.Models = []wire.RunModel{{Provider: set.Run.Model.Provider, Name: *set.Run.Model.Name}}
	}
	if p.ManifestBlob != nil {
		s.ManifestBlob = *p.ManifestBlob
	}
	if p.SpecBlob != nil {
		s.SpecBlob = *p.SpecBlob
	}
	s.DryRun = set.Run.Execution.Mode == "dry_run"
	s.StatusUpdatedAt = e.TS
	return nil
}

func null(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// Apply takes the next event into the state. It reports whether anything but the time of the last event changed. After
// an error the state is unchanged and the event must not be stored.
func (s *State) Apply(e *wire.EventEnvelope) (changed bool, err error) {
	if e.Event != "run.created" && s.LastSeq == 0 {
		return false, fmt.Errorf("%s before run.created", e.Event)
	}
	if e.Seq != s.LastSeq+1 {
		return false, fmt.Errorf("event %d after %d", e.Seq, s.LastSeq)
	}
	next := *s
	changed, err = next.apply(e)
	if err != nil {
		return false, err
	}
	next.LastSeq = e.Seq
	at := e.TS
	next.Run.Timestamps.LastEventAt = &at
	*s = next
	return changed, nil
}

func (s *State) apply(e *wire.EventEnvelope) (changed bool, err error) {
	if h, ok := reducers[e.Event]; ok {
		return true, h(s, e)
	}
	return false, nil
}

// move changes the status when the transition table allows it.
func (s *State) move(to wire.RunStatus, at time.Time) error {
	from := s.Run.Lifecycle.Status
	if err := Transition(from, to); err != nil {
		return err
	}
	if from != to {
		s.Run.Lifecycle.Status = to
		s.StatusUpdatedAt = at
	}
	return nil
}

func (s *State) addInterview(q Interview) {
	s.Interviews = append(slices.Clone(s.Interviews), q)
	s.showQuestion()
}

func (s *State) removeInterview(id string) {
	s.Interviews = slices.DeleteFunc(slices.Clone(s.Interviews), func(q Interview) bool { return q.Question.ID == id })
	s.showQuestion()
}

func (s *State) showQuestion() {
	s.Run.CurrentQuestion = nil
	if len(s.Interviews) > 0 {
		s.Run.CurrentQuestion = &wire.RunQuestion{Text: s.Interviews[0].Question.Text}
	}
}

// PendingInterviews is the open questions as RunProjection shows them.
func (s *State) PendingInterviews() map[string]wire.PendingInterview {
	out := map[string]wire.PendingInterview{}
	for _, q := range s.Interviews {
		out[q.Question.ID] = wire.PendingInterview{Question: q.Question, StartedAt: q.StartedAt}
	}
	return out
}

// Elapsed is how long the run took, or 0 while it has not both started and ended.
func (s *State) Elapsed() time.Duration {
	t := s.Run.Timestamps
	if t.StartedAt == nil || t.CompletedAt == nil {
		return 0
	}
	return t.CompletedAt.Sub(*t.StartedAt)
}
