package projection

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"fabro-mcp/fabroapi/wire"
)

// reducers is what each event does to the small state; an event without an entry only moves the time of the last event.
var reducers = map[string]func(*State, *wire.EventEnvelope) error{
	"run.created":   (*State).create,
	"run.submitted": keep,
	"run.started": func(s *State, e *wire.EventEnvelope) error {
		var p struct {
			RunBranch *string `json:"run_branch"`
			BaseSHA   *string `json:"base_sha"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		at := e.TS
		s.Start = &wire.StartRecord{StartTime: at, RunBranch: p.RunBranch, BaseSHA: p.BaseSHA}
		s.Run.Timestamps.StartedAt = &at
		return nil
	},
	"run.start_requested": func(s *State, e *wire.EventEnvelope) error {
		var p struct {
			Resume bool `json:"resume"`
		}
		if err := properties(e, &p); err != nil || !p.Resume {
			return err
		}
		if err := s.move(wire.RunStatus{Kind: wire.StatusSubmitted}, e.TS); err != nil {
			return err
		}
		s.Run.Lifecycle.Error = nil
		s.Run.Timestamps.CompletedAt = nil
		s.Run.Timing = nil
		return nil
	},
	"run.pending": func(s *State, e *wire.EventEnvelope) error {
		var p struct {
			Reason string `json:"reason"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.Run.Lifecycle.Approval = &wire.RunApproval{State: wire.ApprovalPending, RequestedAt: e.TS}
		return s.move(wire.RunStatus{Kind: wire.StatusPending, Reason: p.Reason}, e.TS)
	},
	"run.approved": func(s *State, e *wire.EventEnvelope) error { return s.decide(e, wire.ApprovalApproved) },
	"run.denied":   func(s *State, e *wire.EventEnvelope) error { return s.decide(e, wire.ApprovalDenied) },
	"run.runnable": toKind(wire.StatusRunnable),
	"run.starting": toKind(wire.StatusStarting),
	"run.running":  toKind(wire.StatusRunning),
	"run.removing": toKind(wire.StatusRemoving),
	"run.blocked": func(s *State, e *wire.EventEnvelope) error {
		if s.Status().Kind == wire.StatusPaused {
			return s.move(wire.RunStatus{Kind: wire.StatusPaused, PriorBlock: wire.BlockedHumanInput}, e.TS)
		}
		return s.move(wire.RunStatus{Kind: wire.StatusBlocked, BlockedReason: wire.BlockedHumanInput}, e.TS)
	},
	"run.unblocked": func(s *State, e *wire.EventEnvelope) error {
		if s.Status().Kind == wire.StatusPaused {
			return s.move(wire.RunStatus{Kind: wire.StatusPaused}, e.TS)
		}
		return s.move(wire.RunStatus{Kind: wire.StatusRunning}, e.TS)
	},
	"run.cancel.requested":  control(wire.ControlCancel),
	"run.pause.requested":   control(wire.ControlPause),
	"run.unpause.requested": control(wire.ControlUnpause),
	"run.paused": func(s *State, e *wire.EventEnvelope) error {
		now := s.Status()
		s.Run.Lifecycle.PendingControl = nil
		prior := now.BlockedReason
		if now.Kind == wire.StatusPaused {
			prior = now.PriorBlock
		}
		return s.move(wire.RunStatus{Kind: wire.StatusPaused, PriorBlock: prior}, e.TS)
	},
	"run.unpaused": func(s *State, e *wire.EventEnvelope) error {
		s.Run.Lifecycle.PendingControl = nil
		if prior := s.Status().PriorBlock; prior != "" {
			return s.move(wire.RunStatus{Kind: wire.StatusBlocked, BlockedReason: prior}, e.TS)
		}
		return s.move(wire.RunStatus{Kind: wire.StatusRunning}, e.TS)
	},
	"run.completed": func(s *State, e *wire.EventEnvelope) error {
		var p struct {
			Reason string       `json:"reason"`
			Timing *wire.Timing `json:"timing"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.end(e.TS, p.Timing)
		return s.move(wire.RunStatus{Kind: wire.StatusSucceeded, Reason: p.Reason}, e.TS)
	},
	"run.failed": func(s *State, e *wire.EventEnvelope) error {
		var p struct {
			Failure wire.RunFailure `json:"failure"`
			Timing  *wire.Timing    `json:"timing"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.end(e.TS, p.Timing)
		s.Run.Lifecycle.Error = &wire.RunError{Message: p.Failure.Detail.Message}
		return s.move(wire.RunStatus{Kind: wire.StatusFailed, Reason: p.Failure.Reason}, e.TS)
	},
	"run.archived": func(s *State, e *wire.EventEnvelope) error {
		if !s.Status().Terminal() {
			return fmt.Errorf("only an ended run can be archived")
		}
		at := e.TS
		s.Run.Lifecycle.Archived, s.Run.Lifecycle.ArchivedAt = true, &at
		return nil
	},
	"run.unarchived": func(s *State, e *wire.EventEnvelope) error {
		s.Run.Lifecycle.Archived, s.Run.Lifecycle.ArchivedAt = false, nil
		return nil
	},
	"run.title.updated": func(s *State, e *wire.EventEnvelope) error {
		var p struct {
			Title string `json:"title"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.Run.Title = p.Title
		return nil
	},
	"run.parent.linked": func(s *State, e *wire.EventEnvelope) error {
		var p struct {
			ParentID string `json:"parent_id"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.Run.ParentID = &p.ParentID
		return nil
	},
	"run.parent.unlinked": func(s *State, e *wire.EventEnvelope) error {
		s.Run.ParentID = nil
		return nil
	},
	"run.superseded_by": func(s *State, e *wire.EventEnvelope) error {
		var p struct {
			NewRunID string `json:"new_run_id"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.Run.SupersededBy = &p.NewRunID
		return nil
	},
	"sandbox.initializing": func(s *State, e *wire.EventEnvelope) error {
		s.Run.Sandbox = &wire.RunSandbox{Kind: wire.SandboxInitializing, Plan: s.plan()}
		return nil
	},
	"sandbox.failed": func(s *State, e *wire.EventEnvelope) error {
		f := &wire.RunSandboxFailure{}
		if err := properties(e, f); err != nil {
			return err
		}
		if f.Causes == nil {
			f.Causes = []string{}
		}
		s.Run.Sandbox = &wire.RunSandbox{Kind: wire.SandboxFailed, Plan: s.plan(), Failure: f}
		return nil
	},
	"sandbox.initialized": func(s *State, e *wire.EventEnvelope) error {
		var p struct {
			Provider         string  `json:"provider"`
			Image            *string `json:"image"`
			Snapshot         *string `json:"snapshot"`
			ID               string  `json:"id"`
			WorkingDirectory string  `json:"working_directory"`
			RepoCloned       *bool   `json:"repo_cloned"`
			CloneOriginURL   *string `json:"clone_origin_url"`
			CloneBranch      *string `json:"clone_branch"`
		}
		if err := properties(e, &p); err != nil {
			return err
		}
		s.Run.Sandbox = &wire.RunSandbox{Kind: wire.SandboxReady, Plan: s.plan(), Instance: &wire.RunSandboxInstance{
			Provider: p.Provider, Image: p.Image, Snapshot: p.Snapshot, Runtime: wire.RunSandboxRuntime{ID: p.ID, WorkingDirectory: p.WorkingDirectory,
				RepoCloned: p.RepoCloned, CloneOriginURL: p.CloneOriginURL, CloneBranch: p.CloneBranch}}}
		return nil
	},
	wire.EventInterviewStarted: func(s *State, e *wire.EventEnvelope) error {
		q, err := question(e)
		if err != nil {
			return err
		}
		s.addInterview(Interview{Question: q, StartedAt: e.TS, StageID: e.StageID})
		return nil
	},
	wire.EventInterviewCompleted:   closeInterview,
	wire.EventInterviewTimeout:     closeInterview,
	wire.EventInterviewInterrupted: closeInterview,
	"agent.steer.buffered": func(s *State, e *wire.EventEnvelope) error {
		s.Steers++
		return nil
	},
	"agent.steer.dropped": func(s *State, e *wire.EventEnvelope) error {
		s.Steers = 0
		return nil
	},
	"checkpoint.completed": func(s *State, e *wire.EventEnvelope) error {
		s.Checkpoints++
		return nil
	},
}

func keep(*State, *wire.EventEnvelope) error { return nil }

func toKind(kind string) func(*State, *wire.EventEnvelope) error {
	return func(s *State, e *wire.EventEnvelope) error { return s.move(wire.RunStatus{Kind: kind}, e.TS) }
}

func control(action string) func(*State, *wire.EventEnvelope) error {
	return func(s *State, e *wire.EventEnvelope) error {
		s.Run.Lifecycle.PendingControl = &action
		return nil
	}
}

func closeInterview(s *State, e *wire.EventEnvelope) error {
	var p struct {
		QuestionID string `json:"question_id"`
	}
	if err := properties(e, &p); err != nil {
		return err
	}
	s.removeInterview(p.QuestionID)
	return nil
}

func (s *State) decide(e *wire.EventEnvelope, state string) error {
	var p struct {
		Reason *string `json:"reason"`
	}
	if err := properties(e, &p); err != nil {
		return err
	}
	a := wire.RunApproval{RequestedAt: e.TS}
	if s.Run.Lifecycle.Approval != nil {
		a = *s.Run.Lifecycle.Approval
	}
	at := e.TS
	a.State, a.DecidedAt, a.DenialReason = state, &at, p.Reason
	s.Run.Lifecycle.Approval = &a
	return nil
}

// end does what every terminal event does.
func (s *State) end(at time.Time, timing *wire.Timing) {
	s.Interviews = nil
	s.showQuestion()
	s.Run.Lifecycle.PendingControl = nil
	s.Run.Timestamps.CompletedAt = &at
	s.Run.Timing = timing
}

func (s *State) plan() wire.RunSandboxPlan {
	if s.Run.Sandbox != nil {
		return s.Run.Sandbox.Plan
	}
	return wire.RunSandboxPlan{Provider: "local"}
}

func question(e *wire.EventEnvelope) (wire.Question, error) {
	var p struct {
		QuestionID     string                `json:"question_id"`
		Question       string                `json:"question"`
		Stage          string                `json:"stage"`
		Type           string                `json:"question_type"`
		Options        []wire.QuestionOption `json:"options"`
		AllowFreeform  bool                  `json:"allow_freeform"`
		TimeoutSeconds *float64              `json:"timeout_seconds"`
		ContextDisplay *string               `json:"context_display"`
		ReviewTarget   *wire.ReviewTarget    `json:"review_target"`
	}
	err := properties(e, &p)
	if p.Options == nil {
		p.Options = []wire.QuestionOption{}
	}
	return wire.Question{ID: p.QuestionID, Text: p.Question, Stage: p.Stage, Type: p.Type, Options: p.Options, AllowFreeform: p.AllowFreeform,
		TimeoutSeconds: p.TimeoutSeconds, ContextDisplay: p.ContextDisplay, ReviewTarget: p.ReviewTarget}, err
}

func properties(e *wire.EventEnvelope, into any) error {
	if len(e.Properties) == 0 {
		return nil
	}
	if err := json.Unmarshal(e.Properties, into); err != nil {
		return fmt.Errorf("properties of %s: %w", e.Event, err)
	}
	return nil
}

// repository names the place the source comes from: "owner/name" of a GitHub address, otherwise the last part of the address.
func repository(git *wire.ManifestGit) *wire.Repository {
	if git == nil || git.OriginURL == "" {
		return nil
	}
	origin := git.OriginURL
	path := strings.TrimSuffix(strings.TrimSuffix(origin, "/"), ".git")
	provider := "git"
	host := path
	if _, rest, ok := strings.Cut(path, "://"); ok {
		host = rest
	} else if _, rest, ok := strings.Cut(path, "@"); ok {
		host = strings.Replace(rest, ":", "/", 1)
	}
	parts := strings.Split(host, "/")
	name := parts[len(parts)-1]
	if strings.HasSuffix(strings.ToLower(parts[0]), "github.com") && len(parts) >= 3 {
		provider = "github"
		name = parts[len(parts)-2] + "/" + name
	}
	return &wire.Repository{Name: name, OriginURL: &origin, Provider: provider}
}
