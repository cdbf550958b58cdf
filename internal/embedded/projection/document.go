package projection

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"fabro-mcp/fabroapi/wire"
)

// Document is the complete state of a run. Its zero value is ready for the first event.
type Document struct {
	State
	spec        wire.RunSpec
	conclusion  *wire.Conclusion
	checkpoints []wire.CheckpointRecord
	stages      []*stage
	byID        map[string]*stage
}

// stage is one visit of a node, or one branch of a parallel node.
type stage struct {
	id, node, label string
	visit           int
	resumedFrom     *string
	groupID         *string
	branchIndex     *int
	retries         int
	p               wire.StageProjection
}

// Apply takes the next event, its properties complete, into the document.
func (d *Document) Apply(e *wire.EventEnvelope) error {
	if _, err := d.State.Apply(e); err != nil {
		return err
	}
	if h, ok := documentReducers[e.Event]; ok {
		return h(d, e)
	}
	if h, ok := stageReducers[e.Event]; ok && e.StageID != "" {
		return h(d.stage(e), e)
	}
	return nil
}

// Projection is the document as GET /runs/{id}/state shows it.
func (d *Document) Projection() *wire.RunProjection {
	run := &d.State.Run
	p := &wire.RunProjection{
		Title: run.Title, ParentID: run.ParentID, Spec: d.spec, WebURL: run.Links.Web, Start: d.State.Start, Status: d.Status(),
		Approval: run.Lifecycle.Approval, ArchivedAt: run.Lifecycle.ArchivedAt, StatusUpdatedAt: d.StatusUpdatedAt,
		PendingControl: run.Lifecycle.PendingControl, Checkpoints: d.checkpoints, Conclusion: d.conclusion, Sandbox: run.Sandbox,
		SupersededBy: run.SupersededBy, RetriedFrom: run.RetriedFrom, PendingInterviews: d.PendingInterviews(),
		Stages: map[string]wire.StageProjection{},
	}
	if run.Timestamps.LastEventAt != nil {
		p.LastEventAt = *run.Timestamps.LastEventAt
	}
	if p.Checkpoints == nil {
		p.Checkpoints = []wire.CheckpointRecord{}
	}
	for _, s := range d.stages {
		p.Stages[s.id] = s.p
	}
	return p
}

// Stages lists the stages in the order they began.
func (d *Document) Stages() []wire.RunStage {
	list := make([]wire.RunStage, 0, len(d.stages))
	for _, s := range d.stages {
		r := wire.RunStage{ID: s.id, Name: s.label, Handler: s.p.Handler, Status: s.p.State, NodeID: s.node, Visit: s.visit, GraphVisit: s.p.GraphVisit,
			ResumedFromStageID: s.resumedFrom, ParallelGroupID: s.groupID, ParallelBranchIndex: s.branchIndex, ProviderUsed: s.p.ProviderUsed,
			StartedAt: s.p.StartedAt, Billing: s.p.Usage}
		if r.Handler == "" {
			r.Handler = "agent"
		}
		if s.p.Timing != nil {
			r.WallTimeMS = &s.p.Timing.WallTimeMS
		}
		list = append(list, r)
	}
	return list
}

// Stage returns the state of one stage.
func (d *Document) Stage(id string) (wire.StageProjection, bool) {
	s, ok := d.byID[id]
	if !ok {
		return wire.StageProjection{}, false
	}
	return s.p, true
}

// Checkpoint returns the latest checkpoint, or nil.
func (d *Document) Checkpoint() *wire.Checkpoint {
	if len(d.checkpoints) == 0 {
		return nil
	}
	return &d.checkpoints[len(d.checkpoints)-1].Checkpoint
}

// Checkpoints returns all checkpoints, oldest first.
func (d *Document) Checkpoints() []wire.CheckpointRecord { return d.checkpoints }

// Spec is what the run was created from.
func (d *Document) Spec() *wire.RunSpec { return &d.spec }

// stage returns the stage an event belongs to, made when it is new.
func (d *Document) stage(e *wire.EventEnvelope) *stage {
	if s, ok := d.byID[e.StageID]; ok {
		return s
	}
	s := &stage{id: e.StageID, node: e.NodeID, label: e.NodeLabel, visit: 1}
	if node, visit, err := wire.ParseStageID(e.StageID); err == nil {
		s.visit = visit
		if s.node == "" {
			s.node = node
		}
	}
	if s.label == "" {
		s.label = s.node
	}
	s.p = wire.StageProjection{FirstEventSeq: e.Seq, AgentControl: "running", State: wire.StagePending}
	if e.ParallelGroupID != "" {
		s.groupID = wire.Ptr(e.ParallelGroupID)
	}
	if e.ParallelBranchID != "" {
		s.p.ParallelBranchID = wire.Ptr(e.ParallelBranchID)
		if at := strings.LastIndexByte(e.ParallelBranchID, ':'); at >= 0 {
			if n, err := strconv.Atoi(e.ParallelBranchID[at+1:]); err == nil {
				s.branchIndex = &n
			}
		}
	}
	if d.byID == nil {
		d.byID = map[string]*stage{}
	}
	d.byID[s.id] = s
	d.stages = append(d.stages, s)
	return s
}

// documentReducers is what events do to the document beside the stages.
var documentReducers = map[string]func(*Document, *wire.EventEnvelope) error{
	"run.created": func(d *Document, e *wire.EventEnvelope) error {
		var p created
		if err := properties(e, &p); err != nil {
			return err
		}
		d.spec = wire.RunSpec{RunID: e.RunID, Settings: p.Settings, Graph: p.Graph, GraphSource: p.WorkflowSource, WorkflowSlug: p.WorkflowSlug,
			WorkflowVersionID: p.WorkflowVersionID, Automation: p.Automation, SourceDirectory: p.SourceDirectory, Labels: p.Labels, Provenance: p.Provenance,
			ManifestBlob: p.ManifestBlob, SpecBlob: p.SpecBlob, Git: p.Git, ForkSourceRef: p.ForkSourceRef}
		return nil
	},
	"run.submitted": func(d *Document, e *wire.EventEnvelope) error {
		var p struct {
			DefinitionBlob *string `json:"definition_blob"`
		}
		err := properties(e, &p)
		d.spec.DefinitionBlob = p.DefinitionBlob
		return err
	},
	"run.start_requested": func(d *Document, e *wire.EventEnvelope) error {
		if d.Status().Kind == wire.StatusSubmitted {
			d.conclusion = nil
		}
		return nil
	},
	"run.completed": func(d *Document, e *wire.EventEnvelope) error { return d.conclude(e) },
	"run.failed":    func(d *Document, e *wire.EventEnvelope) error { return d.conclude(e) },
	"checkpoint.completed": func(d *Document, e *wire.EventEnvelope) error {
		var p struct {
			wire.Checkpoint
			Diff        *string           `json:"diff"`
			DiffSummary *wire.DiffSummary `json:"diff_summary"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		c := p.Checkpoint
		c.Timestamp = e.TS
		if c.CompletedNodes == nil {
			c.CompletedNodes = []string{}
		}
		if c.NodeRetries == nil {
			c.NodeRetries = map[string]int{}
		}
		if c.ContextValues == nil {
			c.ContextValues = map[string]json.RawMessage{}
		}
		d.checkpoints = append(d.checkpoints, wire.CheckpointRecord{Seq: e.Seq, Checkpoint: c, Diff: wire.RunDiff{Patch: p.Diff, Summary: p.DiffSummary}})
		return nil
	},
}

func (d *Document) conclude(e *wire.EventEnvelope) error {
	var p struct {
		Status            string            `json:"status"`
		Failure           *wire.RunFailure  `json:"failure"`
		Timing            wire.Timing       `json:"timing"`
		FinalGitCommitSHA *string           `json:"final_git_commit_sha"`
		FinalPatch        *string           `json:"final_patch"`
		DiffSummary       *wire.DiffSummary `json:"diff_summary"`
		Billing           json.RawMessage   `json:"billing"`
	}
	if err := properties(e, &p); err != nil {
		return err
	}
	if p.Status == "" {
		p.Status = wire.OutcomeFailed
	}
	if e.Event == wire.EventRunFailed {
		d.closeStages(e, p.Failure)
	}
	c := &wire.Conclusion{Timestamp: e.TS, Status: p.Status, Timing: p.Timing, Failure: p.Failure, FinalGitCommitSHA: p.FinalGitCommitSHA,
		Stages: []wire.StageSummary{}, Billing: p.Billing, Diff: wire.RunDiff{Patch: p.FinalPatch, Summary: p.DiffSummary}}
	for _, s := range d.stages {
		sum := wire.StageSummary{StageID: s.id, StageLabel: s.label, Retries: s.retries}
		if s.p.Timing != nil {
			sum.Timing = *s.p.Timing
		}
		c.TotalRetries += s.retries
		c.Stages = append(c.Stages, sum)
	}
	d.conclusion = c
	return nil
}

// closeStages ends the stages that a failed run left open: cancelled when the run was, failed otherwise.
func (d *Document) closeStages(e *wire.EventEnvelope, failure *wire.RunFailure) {
	state := wire.StageFailed
	if failure != nil && failure.Reason == wire.FailedCancelled {
		state = wire.StageCancelled
	}
	open := []string{wire.StagePending, wire.StageRunning, wire.StageRetrying}
	for _, s := range d.stages {
		if !slices.Contains(open, s.p.State) {
			continue
		}
		s.p.State = state
		c := &wire.StageCompletion{Outcome: wire.OutcomeFailed, Timestamp: e.TS}
		if failure != nil {
			c.FailureReason = wire.Ptr(failure.Detail.Message)
		}
		s.p.Completion = c
	}
}
