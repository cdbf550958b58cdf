package projection

import (
	"encoding/json"

	"fabro-mcp/fabroapi/wire"
)

// stageReducers is what events do to the stage named in their envelope.
var stageReducers = map[string]func(*stage, *wire.EventEnvelope) error{
	wire.EventStageStarted: func(s *stage, e *wire.EventEnvelope) error {
		var p struct {
			HandlerType        string  `json:"handler_type"`
			Attempt            int     `json:"attempt"`
			GraphVisit         *int    `json:"graph_visit"`
			ResumedFromStageID *string `json:"resumed_from_stage_id"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.begin(e)
		s.p.Handler = p.HandlerType
		if e.NodeLabel != "" {
			s.label = e.NodeLabel
		}
		if p.GraphVisit != nil {
			s.p.GraphVisit = p.GraphVisit
		}
		if p.ResumedFromStageID != nil {
			s.resumedFrom = p.ResumedFromStageID
		}
		s.retries = max(s.retries, p.Attempt-1)
		return nil
	},
	"stage.retrying": func(s *stage, e *wire.EventEnvelope) error {
		s.p.State = wire.StageRetrying
		return nil
	},
	"stage.prompt": func(s *stage, e *wire.EventEnvelope) error {
		var p struct {
			Text            string  `json:"text"`
			Mode            string  `json:"mode"`
			Provider        *string `json:"provider"`
			Model           *string `json:"model"`
			ReasoningEffort *string `json:"reasoning_effort"`
			Speed           *string `json:"speed"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.p.Prompt = &p.Text
		if p.Mode != "" {
			s.p.ProviderUsed = &wire.StageModelUsage{Mode: p.Mode, Provider: p.Provider, Model: p.Model, ReasoningEffort: p.ReasoningEffort, Speed: p.Speed}
		}
		return nil
	},
	"prompt.completed": func(s *stage, e *wire.EventEnvelope) error {
		var p struct {
			Response string `json:"response"`
		}
		err := properties(e, &p)
		s.p.Response = &p.Response
		return err
	},
	"command.started": func(s *stage, e *wire.EventEnvelope) error {
		s.p.ScriptInvocation = e.Properties
		return nil
	},
	"command.completed": func(s *stage, e *wire.EventEnvelope) error {
		var p struct {
			Output        *string `json:"output"`
			OutputBytes   *int64  `json:"output_bytes"`
			Termination   *string `json:"termination"`
			LiveStreaming *bool   `json:"live_streaming"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.p.ScriptTiming = e.Properties
		s.p.Output, s.p.OutputBytes, s.p.Termination, s.p.LiveStreaming = p.Output, p.OutputBytes, p.Termination, p.LiveStreaming
		return nil
	},
	wire.EventStageCompleted: func(s *stage, e *wire.EventEnvelope) error {
		var p struct {
			Status   string              `json:"status"`
			Timing   *wire.Timing        `json:"timing"`
			Notes    *string             `json:"notes"`
			Response *string             `json:"response"`
			Failure  *wire.FailureDetail `json:"failure"`
			Attempt  int                 `json:"attempt"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.p.State, s.p.Timing = p.Status, p.Timing
		if p.Response != nil {
			s.p.Response = p.Response
		}
		s.p.Completion = &wire.StageCompletion{Outcome: p.Status, Notes: p.Notes, Timestamp: e.TS}
		if p.Failure != nil {
			s.p.Completion.FailureReason = wire.Ptr(p.Failure.Message)
		}
		s.retries = max(s.retries, p.Attempt-1)
		return nil
	},
	wire.EventStageFailed: func(s *stage, e *wire.EventEnvelope) error {
		var p struct {
			Failure   *wire.FailureDetail `json:"failure"`
			WillRetry bool                `json:"will_retry"`
			Timing    *wire.Timing        `json:"timing"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.p.Timing = p.Timing
		s.p.Completion = &wire.StageCompletion{Outcome: wire.OutcomeFailed, Timestamp: e.TS}
		if p.Failure != nil {
			s.p.Completion.FailureReason = wire.Ptr(p.Failure.Message)
		}
		cancelled := p.Failure != nil && p.Failure.Category == wire.CategoryCanceled ||
			s.p.Termination != nil && *s.p.Termination == wire.TerminationCancelled
		switch {
		case p.WillRetry:
			s.p.State = wire.StageRetrying
		case cancelled:
			s.p.State = wire.StageCancelled
		default:
			s.p.State = wire.StageFailed
		}
		return nil
	},
	"parallel.branch.started": func(s *stage, e *wire.EventEnvelope) error {
		var p struct {
			Index              int     `json:"index"`
			GraphVisit         *int    `json:"graph_visit"`
			ResumedFromStageID *string `json:"resumed_from_stage_id"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.begin(e)
		s.branchIndex = &p.Index
		s.p.GraphVisit, s.resumedFrom = p.GraphVisit, p.ResumedFromStageID
		return nil
	},
	"parallel.branch.completed": func(s *stage, e *wire.EventEnvelope) error {
		var p struct {
			DurationMS int64  `json:"duration_ms"`
			Status     string `json:"status"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.p.State = p.Status
		if s.p.Timing == nil {
			s.p.Timing = &wire.Timing{WallTimeMS: p.DurationMS}
		}
		if s.p.Completion == nil {
			s.p.Completion = &wire.StageCompletion{Outcome: p.Status, Timestamp: e.TS}
		}
		return nil
	},
	"parallel.completed": func(s *stage, e *wire.EventEnvelope) error {
		var p struct {
			Results []wire.ParallelBranchResult `json:"results"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		for i := range p.Results {
			if p.Results[i].ContextUpdates == nil {
				p.Results[i].ContextUpdates = map[string]json.RawMessage{}
			}
		}
		s.p.ParallelResults = p.Results
		return nil
	},
}

// begin starts an attempt. A second start of the same stage is another attempt: what the one before left is taken back.
func (s *stage) begin(e *wire.EventEnvelope) {
	at := e.TS
	s.p.StartedAt = &at
	s.p.State = wire.StageRunning
	s.p.Completion, s.p.Timing = nil, nil
}
