package embedded

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"fabro-mcp/fabroapi/wire"
)

// Every operation on a run, legal and not, with Fabro's sentences; every answer is held against the description of the API.
func TestLifecycle(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	p := s.connect().hold()

	t.Run("submitted", func(t *testing.T) {
		id := s.create(p, oneCommand)
		run := p.run(id)
		if run.Lifecycle.Status.Kind != wire.StatusSubmitted || run.Title != "Say hello" || run.Goal != "Say hello" || *run.Workflow.Slug != "flow" || *run.Workflow.GraphName != "One" ||
			run.Workflow.NodeCount != 3 || run.Workflow.EdgeCount != 2 {
			t.Fatalf("%+v", run)
		}
		if at := ulid.Time(ulid.MustParse(id).Time()).UTC(); !at.Equal(run.Timestamps.CreatedAt) {
			t.Errorf("created_at %s, the id says %s", run.Timestamps.CreatedAt, at)
		}
		p.refuse(409, "Run is not pausable.", "POST", "/runs/"+id+"/pause", nil)
		p.refuse(409, "Run is not paused.", "POST", "/runs/"+id+"/unpause", nil)
		p.refuse(409, "Run is not pending approval.", "POST", "/runs/"+id+"/approve", nil)
		p.refuse(409, "Run is not pending approval.", "POST", "/runs/"+id+"/deny", nil)
		p.refuse(409, "no checkpoint to resume from", "POST", "/runs/"+id+"/start", `{"resume":true}`)
		p.refuse(409, "run "+id+" must be terminal (succeeded, failed, or dead) to archive; current status is submitted", "POST", "/runs/"+id+"/archive", nil)
		p.refuse(409, "run "+id+" must be terminal (succeeded, failed, or dead) to retry; current status is submitted", "POST", "/runs/"+id+"/retry", nil)
		p.refuse(409, "run "+id+" is active (submitted)…", "DELETE", "/runs/"+id, nil)
		if code := p.refuse(409, "Run is not currently running.", "POST", "/runs/"+id+"/steer", `{"text":"hi"}`); code != wire.CodeRunNotSteerable {
			t.Errorf("code %q", code)
		}
		if code := p.refuse(409, "Run is not currently pairable.", "POST", "/runs/"+id+"/pair", `{"stage_id":"hello@1"}`); code != wire.CodeRunNotPairable {
			t.Errorf("code %q", code)
		}
		p.call(200, "POST", "/runs/"+id+"/cancel", nil, &run)
		if run.Lifecycle.Status != (wire.RunStatus{Kind: wire.StatusFailed, Reason: wire.FailedCancelled}) {
			t.Fatalf("%+v", run.Lifecycle)
		}
		p.refuse(409, "Run is already terminal and cannot be cancelled.", "POST", "/runs/"+id+"/cancel", nil)
		p.refuse(409, "cannot start run: status is failed(cancelled), expected submitted", "POST", "/runs/"+id+"/start", nil)
		if got := names(p.log(id)); !slices.Equal(got, []string{"run.created", "run.submitted", "run.cancel.requested", "run.failed"}) {
			t.Fatalf("%v", got)
		}
	})

	t.Run("succeeded, archived", func(t *testing.T) {
		id := s.start(p, oneCommand)
		if run := p.ended(id); run.Lifecycle.Status.Kind != wire.StatusSucceeded || run.Timing == nil || run.Timestamps.CompletedAt == nil {
			t.Fatalf("%+v", run)
		}
		p.refuse(409, "cannot start run: status is succeeded(completed), expected submitted", "POST", "/runs/"+id+"/start", nil)
		p.refuse(409, "invalid status transition: succeeded(completed) -> submitted", "POST", "/runs/"+id+"/start", `{"resume":true}`)
		if code := p.refuse(409, "Run is no longer steerable.", "POST", "/runs/"+id+"/interrupt", nil); code != wire.CodeRunNotInterruptible {
			t.Errorf("code %q", code)
		}
		var run wire.Run
		p.call(200, "PATCH", "/runs/"+id, `{"title":"  New name "}`, &run)
		if run.Title != "New name" {
			t.Fatalf("title %q", run.Title)
		}
		p.refuse(400, "Run title must not be empty.", "PATCH", "/runs/"+id, `{"title":" "}`)
		p.refuse(400, "Run title must be at most 100 characters.", "PATCH", "/runs/"+id, map[string]string{"title": strings.Repeat("ä", 101)})
		p.refuse(400, "Run title must be a single line without control characters.", "PATCH", "/runs/"+id, `{"title":"a\nb"}`)
		p.call(200, "POST", "/runs/"+id+"/archive", nil, &run)
		if !run.Lifecycle.Archived || run.Lifecycle.ArchivedAt == nil {
			t.Fatalf("%+v", run.Lifecycle)
		}
		p.call(200, "POST", "/runs/"+id+"/archive", nil, nil) // twice is fine
		archived := "run " + id + " is archived; run `fabro unarchive " + id + "` to restore it and try again"
		for _, op := range []string{"start", "cancel", "approve", "deny", "pause", "unpause", "interrupt"} {
			p.refuse(409, archived, "POST", "/runs/"+id+"/"+op, nil)
		}
		p.refuse(409, archived, "POST", "/runs/"+id+"/steer", `{"text":"x"}`)
		p.refuse(409, archived, "PATCH", "/runs/"+id, `{"title":"x"}`)
		p.refuse(409, archived, "POST", "/runs/"+id+"/questions/x/answer", `{"kind":"yes"}`)
		p.call(200, "POST", "/runs/"+id+"/unarchive", nil, &run)
		if run.Lifecycle.Archived {
			t.Fatal("still archived")
		}
		p.call(204, "DELETE", "/runs/"+id, nil, nil)
		p.refuse(404, "Run not found.", "GET", "/runs/"+id, nil)
		p.call(204, "DELETE", "/runs/"+id, nil, nil) // absent counts as deleted
	})

	t.Run("running", func(t *testing.T) {
		id := s.start(p, sleeper)
		p.await(id, "command.started")
		p.refuse(409, "an engine process is still running for this run — cannot start", "POST", "/runs/"+id+"/start", nil)
		p.refuse(409, "an engine process is still running for this run — cannot resume", "POST", "/runs/"+id+"/start", `{"resume":true}`)
		p.call(202, "POST", "/runs/"+id+"/steer", `{"text":"be quick"}`, nil)
		p.refuse(400, "Steer text must not be empty.", "POST", "/runs/"+id+"/steer", `{"text":"  "}`)
		if code := p.refuse(409, "Run has no active steerable agent session.", "POST", "/runs/"+id+"/steer", `{"text":"x","interrupt":true}`); code != wire.CodeNoActiveSteerableSession {
			t.Errorf("code %q", code)
		}
		p.refuse(409, "Run has no active steerable agent session.", "POST", "/runs/"+id+"/interrupt", nil)
		var pair wire.PairStatus
		p.call(200, "GET", "/runs/"+id+"/pair", nil, &pair)
		if code := p.refuse(409, "Requested pair target is not active.", "POST", "/runs/"+id+"/pair", `{"stage_id":"nap@1"}`); code != wire.CodePairTargetNotActive {
			t.Errorf("code %q", code)
		}
		p.refuse(404, "Pair not found.", "GET", "/runs/"+id+"/pair/"+ulid.Make().String(), nil)
		p.refuse(400, "Invalid pair_id.", "GET", "/runs/"+id+"/pair/x", nil)
		var run wire.Run
		p.call(200, "POST", "/runs/"+id+"/pause", nil, &run)
		if c := run.Lifecycle.PendingControl; c == nil || *c != wire.ControlPause {
			t.Fatalf("%+v", run.Lifecycle)
		}
		p.refuse(409, "Run control request is already pending.", "POST", "/runs/"+id+"/pause", nil)
		p.call(202, "POST", "/runs/"+id+"/cancel", nil, &run)
		run = p.ended(id)
		if run.Lifecycle.Status.Reason != wire.FailedCancelled || run.Lifecycle.Error == nil || run.Lifecycle.Error.Message != "Pipeline cancelled" {
			t.Fatalf("%+v", run.Lifecycle)
		}
		if got := names(p.log(id)); !slices.Contains(got, "agent.steer.dropped") {
			t.Errorf("no agent.steer.dropped in %v", got)
		}
		var stages wire.List[wire.RunStage]
		p.call(200, "GET", "/runs/"+id+"/stages", nil, &stages)
		if last := stages.Data[len(stages.Data)-1]; last.ID != "nap@1" || last.Status != wire.StageCancelled {
			t.Fatalf("%+v", last)
		}
	})

	t.Run("blocked, paused", func(t *testing.T) {
		id := s.start(p, oneGate)
		q := p.question(id)
		if code := p.refuse(409, "Run is blocked on a question; use the interview-answer endpoint instead.", "POST", "/runs/"+id+"/steer", `{"text":"x"}`); code != wire.CodeUseAnswerEndpoint {
			t.Errorf("code %q", code)
		}
		p.refuse(409, "Run is blocked on a question; answer it before pairing.", "POST", "/runs/"+id+"/pair", `{"stage_id":"ask@1"}`)
		at := "/runs/" + id + "/questions/" + q.ID + "/answer"
		p.refuse(400, "Invalid option key.", "POST", at, wire.AnswerOfOption("Z"))
		p.refuse(400, "Answer does not match question type.", "POST", at, wire.AnswerOfYes(true))
		p.refuse(400, "Answer does not match question type.", "POST", at, wire.AnswerOfText("Y"))
		p.refuse(409, "Question no longer exists or was already answered.", "POST", "/runs/"+id+"/questions/nope/answer", wire.AnswerOfOption("Y"))
		var run wire.Run
		p.call(200, "POST", "/runs/"+id+"/pause", nil, &run)
		if run.Lifecycle.Status != (wire.RunStatus{Kind: wire.StatusPaused, PriorBlock: wire.BlockedHumanInput}) {
			t.Fatalf("%+v", run.Lifecycle.Status)
		}
		p.refuse(409, "Run is not pausable.", "POST", "/runs/"+id+"/pause", nil)
		p.call(200, "POST", "/runs/"+id+"/unpause", nil, &run)
		if run.Lifecycle.Status.Kind != wire.StatusBlocked {
			t.Fatalf("%+v", run.Lifecycle.Status)
		}
		// Answered while it is paused, it stays paused, and goes on when it may.
		p.call(200, "POST", "/runs/"+id+"/pause", nil, nil)
		p.answer(id, q.ID, wire.AnswerOfOption("Y"))
		p.refuse(409, "Question no longer exists or was already answered.", "POST", at, wire.AnswerOfOption("Y"))
		p.await(id, "run.unblocked")
		if run := p.run(id); run.Lifecycle.Status.Kind != wire.StatusPaused {
			t.Fatalf("%+v", run.Lifecycle.Status)
		}
		p.call(200, "POST", "/runs/"+id+"/unpause", nil, nil)
		if run := p.ended(id); run.Lifecycle.Status.Kind != wire.StatusSucceeded {
			t.Fatalf("%+v", run.Lifecycle)
		}
	})

	t.Run("pause at a boundary", func(t *testing.T) {
		graph := `digraph G { start [shape=Mdiamond] exit [shape=Msquare] a [shape=parallelogram, script="while [ ! -e go ]; do sleep 0.02; done"] b [shape=parallelogram, script="true"]
			start -> a -> b -> exit }`
		id := s.start(p, graph)
		p.await(id, "command.started")
		p.call(200, "POST", "/runs/"+id+"/pause", nil, nil)
		if err := os.WriteFile(filepath.Join(s.cwd, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p.await(id, "run.paused")
		if run := p.run(id); run.Lifecycle.Status.Kind != wire.StatusPaused || run.Lifecycle.PendingControl != nil {
			t.Fatalf("%+v", run.Lifecycle)
		}
		p.call(200, "POST", "/runs/"+id+"/unpause", nil, nil)
		if run := p.ended(id); run.Lifecycle.Status.Kind != wire.StatusSucceeded {
			t.Fatalf("%+v", run.Lifecycle)
		}
	})

	t.Run("approval of a run's own child", func(t *testing.T) {
		parent := s.start(p, oneGate)
		q := p.question(parent)
		for _, approve := range []bool{true, false} {
			child := s.create(p, oneCommand, withParent(parent))
			var run wire.Run
			p.call(200, "POST", "/runs/"+child+"/start", nil, &run, "X-Fabro-Run-Id", parent)
			if run.Lifecycle.Status != (wire.RunStatus{Kind: wire.StatusPending, Reason: wire.PendingApprovalRequired}) || run.Lifecycle.Approval.State != wire.ApprovalPending {
				t.Fatalf("%+v", run.Lifecycle)
			}
			p.refuse(409, "start has already been requested for this run", "POST", "/runs/"+child+"/start", nil)
			p.refuse(403, "Access denied.", "POST", "/runs/"+child+"/approve", nil, "X-Fabro-Run-Id", parent)
			if approve {
				p.call(200, "POST", "/runs/"+child+"/approve", nil, &run)
				if run := p.ended(child); run.Lifecycle.Status.Kind != wire.StatusSucceeded || run.Lifecycle.Approval.State != wire.ApprovalApproved {
					t.Fatalf("%+v", run.Lifecycle)
				}
				continue
			}
			p.call(200, "POST", "/runs/"+child+"/deny", `{"reason":"not today"}`, &run)
			if run.Lifecycle.Status.Reason != wire.FailedApprovalDenied || run.Lifecycle.Error.Message != "not today" || *run.Lifecycle.Approval.DenialReason != "not today" {
				t.Fatalf("%+v", run.Lifecycle)
			}
		}
		if run := p.run(parent); run.ChildrenCount != 2 {
			t.Errorf("%d children", run.ChildrenCount)
		}
		var list wire.List[wire.Run]
		p.call(200, "GET", "/runs?parent_id="+parent, nil, &list)
		if len(list.Data) != 2 || *list.Meta.Total != 2 {
			t.Errorf("%d children in the list", len(list.Data))
		}
		p.answer(parent, q.ID, wire.AnswerOfOption("Y"))
		p.ended(parent)
	})

	t.Run("parent links", func(t *testing.T) {
		a, b := s.create(p, oneCommand), s.create(p, oneCommand)
		var run wire.Run
		p.call(200, "PUT", "/runs/"+b+"/parent", map[string]string{"parent_id": a}, &run)
		if run.ParentID == nil || *run.ParentID != a {
			t.Fatalf("%+v", run.ParentID)
		}
		p.refuse(400, "A run cannot be its own parent.", "PUT", "/runs/"+a+"/parent", map[string]string{"parent_id": a})
		p.refuse(400, "Parent link would create a cycle.", "PUT", "/runs/"+a+"/parent", map[string]string{"parent_id": b})
		p.refuse(404, "Parent run not found.", "PUT", "/runs/"+a+"/parent", map[string]string{"parent_id": ulid.Make().String()})
		p.refuse(400, "invalid parent run ID: …", "PUT", "/runs/"+a+"/parent", `{"parent_id":"x"}`)
		p.call(200, "DELETE", "/runs/"+b+"/parent", nil, nil)
		if p.run(b).ParentID != nil {
			t.Fatal("still linked")
		}
		want := []string{"run.created", "run.submitted", "run.parent.linked", "run.parent.unlinked"}
		if got := names(p.log(b)); !slices.Equal(got, want) {
			t.Fatalf("%v", got)
		}
		p.refuse(404, "Parent run not found.", "POST", "/runs", s.manifest(oneCommand, withParent(ulid.Make().String())))
	})

	t.Run("retry and resume", func(t *testing.T) {
		graph := `digraph R { graph [goal="Retry me"] start [shape=Mdiamond] exit [shape=Msquare] one [shape=parallelogram, script="echo one >> trace"]
			two [shape=parallelogram, script="echo two >> trace; test -e ready", goal_gate=true] start -> one -> two  two -> exit }`
		id := s.start(p, graph)
		run := p.ended(id)
		if run.Lifecycle.Status.Kind != wire.StatusFailed {
			t.Fatalf("%+v", run.Lifecycle)
		}
		var again wire.Run
		p.call(201, "POST", "/runs/"+id+"/retry", nil, &again)
		if again.ID == id || again.RetriedFrom == nil || *again.RetriedFrom != id || again.Title != "Retry me" {
			t.Fatalf("%+v", again)
		}
		p.ended(again.ID)
		log := p.log(id)
		closed := log[len(log)-1].Seq
		if err := os.WriteFile(filepath.Join(s.cwd, "ready"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p.call(200, "POST", "/runs/"+id+"/start", `{"resume":true}`, &run)
		if run.Lifecycle.Error != nil || run.Timestamps.CompletedAt != nil {
			t.Fatalf("%+v", run)
		}
		// The run had walked to its end: what is resumed is the look at its goal gates, at the checkpoint before it.
		p.follow(id, closed+1, func(e wire.EventEnvelope) bool { return wire.TerminalEvent(e.Event) })
	})

	t.Run("delete with force", func(t *testing.T) {
		id := s.start(p, sleeper)
		p.await(id, "command.started")
		p.refuse(409, "run "+id+" is active (running)…", "DELETE", "/runs/"+id, nil)
		p.call(204, "DELETE", "/runs/"+id+"?force=true", nil, nil)
		p.refuse(404, "Run not found.", "GET", "/runs/"+id+"/state", nil)
		if _, err := os.Stat(filepath.Join(s.cfg.runsDir(), id)); !os.IsNotExist(err) {
			t.Errorf("the run's directory is still there: %v", err)
		}
	})

	t.Run("batch", func(t *testing.T) {
		ended, open, absent := s.start(p, oneCommand), s.create(p, oneCommand), ulid.Make().String()
		p.ended(ended)
		type results struct {
			Results []struct {
				RunID   string `json:"run_id"`
				Outcome string `json:"outcome"`
			} `json:"results"`
			Summary map[string]int `json:"summary"`
		}
		for _, step := range []struct{ op, want string }{
			{"archive", "archived conflict not_found"}, {"archive", "already_archived conflict not_found"}, {"unarchive", "unarchived not_archived not_found"},
			{"delete", "deleted conflict already_absent"},
		} {
			var r results
			p.call(200, "POST", "/runs/"+step.op, map[string]any{"run_ids": []string{ended, open, absent}}, &r)
			var got []string
			for _, res := range r.Results {
				got = append(got, res.Outcome)
			}
			if strings.Join(got, " ") != step.want {
				t.Errorf("%s: %v, want %s", step.op, got, step.want)
			}
		}
		p.refuse(400, "run_ids must name 1 to 250 runs, not 0.", "POST", "/runs/delete", `{"run_ids":[]}`)
		p.refuse(400, "run_ids names "+open+" twice.", "POST", "/runs/delete", map[string]any{"run_ids": []string{open, open}})
	})

	t.Run("creation refused", func(t *testing.T) {
		change := func(f func(m *wire.RunManifest)) *wire.RunManifest { return s.manifest(oneCommand, f) }
		p.refuse(400, "unsupported manifest version 2", "POST", "/runs", change(func(m *wire.RunManifest) { m.Version = 2 }))
		p.refuse(400, "invalid manifest target path: …", "POST", "/runs", change(func(m *wire.RunManifest) { m.Target.Path = "/abs" }))
		p.refuse(400, "manifest target path is missing from workflows map", "POST", "/runs", change(func(m *wire.RunManifest) { m.Target.Path = "other.fabro" }))
		p.refuse(400, "invalid manifest workflow key: …", "POST", "/runs", change(func(m *wire.RunManifest) { m.Workflows["~x"] = wire.ManifestWorkflow{} }))
		p.refuse(400, "Validation failed: …", "POST", "/runs", s.manifest(`digraph { broken`))
		p.refuse(400, "Validation failed: …", "POST", "/runs", s.manifest(`digraph X { start [shape=Mdiamond] start -> nowhere }`))
		p.refuse(400, "Run title must be a single line without control characters.", "POST", "/runs", change(func(m *wire.RunManifest) { m.Title = wire.Ptr("a\tb") }))
		p.refuse(400, "The embedded server has no language model, and this workflow needs one for: think.…", "POST", "/runs", s.manifest(agentGraph))
		status, _, err := p.try("POST", "/runs", `{"version":1`)
		if status != 400 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
	})

	t.Run("agent command of a run", func(t *testing.T) {
		var run wire.Run
		p.call(201, "POST", "/runs", s.manifest(agentGraph), &run, "X-Fabro-Agent-Command", `["sh","-c","cat >/dev/null; echo thought about it"]`)
		p.call(200, "POST", "/runs/"+run.ID+"/start", nil, nil)
		if run := p.ended(run.ID); run.Lifecycle.Status.Kind != wire.StatusSucceeded {
			t.Fatalf("%+v", run.Lifecycle)
		}
		var state wire.RunProjection
		p.call(200, "GET", "/runs/"+run.ID+"/state", nil, &state)
		if r := state.Stages["think@1"].Response; r == nil || strings.TrimSpace(*r) != "thought about it" {
			t.Fatalf("response %v", r)
		}
		p.refuse(400, "X-Fabro-Agent-Command must be a JSON array of strings: …", "POST", "/runs", s.manifest(agentGraph), "X-Fabro-Agent-Command", `claude -p`)
		// Simulated, the same workflow needs nobody.
		dry := s.start(p, agentGraph, withDryRun)
		if run := p.ended(dry); run.Lifecycle.Status.Kind != wire.StatusSucceeded {
			t.Fatalf("%+v", run.Lifecycle)
		}
	})

	t.Run("reading", func(t *testing.T) {
		id := s.start(p, oneGate)
		q := p.question(id)
		log := p.log(id)
		last := log[len(log)-1].Seq
		var page wire.List[wire.EventEnvelope]
		p.call(200, "GET", "/runs/"+id+"/events?order=desc&limit=3", nil, &page)
		if len(page.Data) != 3 || page.Data[0].Seq != last || page.Data[2].Seq != last-2 || !page.Meta.HasMore {
			t.Fatalf("%+v", page)
		}
		for i, e := range page.Data {
			if diff := cmp.Diff(log[len(log)-1-i], e); diff != "" {
				t.Errorf("read backwards, event %d is another: %s", e.Seq, diff)
			}
		}
		p.call(200, "GET", fmt.Sprintf("/runs/%s/events?order=desc&before_seq=%d&limit=1", id, last), nil, &page)
		if len(page.Data) != 1 || page.Data[0].Seq != last-1 {
			t.Fatalf("%+v", page)
		}
		p.refuse(400, "before_seq requires order=desc.", "GET", "/runs/"+id+"/events?before_seq=3", nil)
		p.refuse(400, "since_seq cannot be combined with order=desc; use before_seq instead.", "GET", "/runs/"+id+"/events?since_seq=3&order=desc", nil)
		p.call(200, "GET", "/runs/"+id+"/stages/work@1/events", nil, &page)
		for _, e := range page.Data {
			if e.StageID != "work@1" {
				t.Errorf("event of %s", e.StageID)
			}
			if diff := cmp.Diff(log[e.Seq-1], e); diff != "" {
				t.Errorf("read by stage, event %d is another: %s", e.Seq, diff)
			}
		}
		p.refuse(404, "Stage not found.", "GET", "/runs/"+id+"/stages/other@1/events", nil)
		p.refuse(400, "Invalid stage ID.", "GET", "/runs/"+id+"/stages/noat/events", nil)
		p.refuse(400, "Invalid run ID.", "GET", "/runs/nope/events", nil)
		var detail wire.EventDetail
		p.call(200, "GET", "/runs/"+id+"/events/1?max_content_length=5", nil, &detail)
		for _, e := range log {
			if e.Event == "command.completed" {
				p.call(200, "GET", fmt.Sprintf("/runs/%s/events/%d?max_content_length=10", id, e.Seq), nil, &detail)
				if detail.Content == nil || detail.Content.Kind != "tool_output" || len(detail.Content.Value) != 10 || !detail.Truncated {
					t.Errorf("%+v", detail)
				}
			}
		}
		if code := p.refuse(404, "Event not found.", "GET", "/runs/"+id+"/events/9999", nil); code != wire.CodeEventNotFound {
			t.Errorf("code %q", code)
		}
		var out wire.CommandLog
		p.call(200, "GET", "/runs/"+id+"/stages/work@1/logs/output?offset=1&limit=2", nil, &out)
		if string(out.Bytes) != "or" || out.NextOffset != 3 || out.TotalBytes != 5 || out.EOF {
			t.Errorf("%+v", out)
		}
		p.refuse(400, "limit must be at least 1.", "GET", "/runs/"+id+"/stages/work@1/logs/output?limit=0", nil)
		p.refuse(404, "Stage not found.", "GET", "/runs/"+id+"/stages/exit@1/logs/output", nil)
		var state map[string]json.RawMessage
		p.call(200, "GET", "/runs/"+id+"/state", nil, &state)
		for _, path := range []string{"checkpoint", "settings", "timeline", "billing", "stages", "artifacts", "files", "stages/work@1/artifacts", "stages/work@1/context-window", "questions"} {
			p.call(200, "GET", "/runs/"+id+"/"+path, nil, nil)
		}
		if status, text, _ := p.try("GET", "/runs/"+id+"/graph/source", nil); status != 200 || string(text) != oneGate {
			t.Errorf("%d %s", status, text)
		}
		if status, text, _ := p.try("GET", "/runs/"+id+"/logs", nil); status != 200 || !strings.Contains(string(text), "work@1") {
			t.Errorf("%d %s", status, text)
		}
		var blob map[string]string
		p.call(200, "POST", "/runs/"+id+"/blobs", "content", &blob)
		if status, text, _ := p.try("GET", "/runs/"+id+"/blobs/"+blob["hash"], nil); status != 200 || string(text) != "content" {
			t.Errorf("%d %s", status, text)
		}
		for _, path := range []string{"/system/info", "/system/df", "/auth/me", "/auth/config", "/environments", "/models", "/providers", "/secrets", "/automations", "/mcp-servers", "/variables",
			"/health", "/openapi.json"} {
			p.call(200, "GET", path, nil, nil)
		}
		p.refuse(400, "checkpoint @2 has no git_commit_sha; cannot fork", "POST", "/runs/"+id+"/fork", nil)
		p.refuse(400, "checkpoint @2 has no git_commit_sha; cannot rewind", "POST", "/runs/"+id+"/rewind", nil)
		p.refuse(501, "The embedded server does not have pull requests. Use a Fabro server (--server) for it.", "GET", "/runs/"+id+"/pull_request", nil)
		p.refuse(404, "The embedded server has no operation GET /api/v1/nothing.", "GET", "/nothing", nil)
		p.answer(id, q.ID, wire.AnswerOfOption("Y"))
		p.ended(id)
	})

	t.Run("validate, preflight, variables", func(t *testing.T) {
		var v wire.ValidateResponse
		p.call(200, "POST", "/validate", s.manifest(oneCommand), &v)
		if !v.OK || v.Workflow.Nodes != 3 || v.Workflow.Edges != 2 || v.Workflow.Goal != "Say hello" {
			t.Errorf("%+v", v)
		}
		undefined := `digraph U { graph [goal="{{ vars.WHO }}"] start [shape=Mdiamond] exit [shape=Msquare] start -> exit }`
		p.call(200, "POST", "/validate", s.manifest(undefined), &v)
		if !v.OK || len(v.Workflow.Diagnostics) == 0 {
			t.Errorf("an undefined variable is a warning of validate: %+v", v)
		}
		var pf wire.PreflightResponse
		p.call(200, "POST", "/preflight", s.manifest(undefined), &pf)
		if pf.OK {
			t.Errorf("an undefined variable is an error of preflight: %+v", pf)
		}
		p.call(200, "POST", "/preflight", s.manifest(agentGraph), &pf)
		p.call(200, "POST", "/variables", `{"name":"WHO","value":"the world"}`, nil)
		p.refuse(409, "Variable WHO already exists.", "POST", "/variables", `{"name":"WHO","value":"x"}`)
		p.call(200, "PUT", "/variables/WHO", `{"value":"everybody"}`, nil)
		p.call(200, "GET", "/variables/WHO", nil, nil)
		if run := p.run(s.create(p, undefined)); run.Goal != "everybody" {
			t.Errorf("goal %q", run.Goal)
		}
		p.call(204, "DELETE", "/variables/WHO", nil, nil)
		p.refuse(404, "Variable not found.", "GET", "/variables/WHO", nil)
	})

	t.Run("authentication", func(t *testing.T) {
		stranger := *p
		stranger.token = "wrong"
		if code := stranger.refuse(401, "Authentication required.", "GET", "/runs", nil); code != wire.CodeUnauthorized {
			t.Errorf("code %q", code)
		}
		stranger.call(200, "GET", "/health", nil, nil)
	})

	t.Run("secrets in events", func(t *testing.T) {
		secret := "gh" + "p_" + base64.RawStdEncoding.EncodeToString([]byte("0123456789012345678901234567"))[:36]
		id := s.create(p, strings.Replace(oneCommand, "Say hello", "Use "+secret, 1))
		if status, text, _ := p.try("GET", "/runs/"+id+"/events", nil); status != 200 || strings.Contains(string(text), secret) || !strings.Contains(string(text), "[REDACTED]") {
			t.Errorf("%d %s", status, text)
		}
	})
	mustCover(t, "createRun 201", "startRun 200", "cancelRun 200", "cancelRun 202", "retryRun 201", "getRunState 200", "listRunEvents 200", "getRunEventDetail 200", "listRunStages 200",
		"batchDeleteRuns 200", "validateRunManifest 200", "runPreflight 200", "getRunPairStatus 200", "submitRunAnswer 204", "deleteRun 204")
}
