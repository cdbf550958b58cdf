package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"fabro-mcp/internal/mcpclient"
	"fabro-mcp/transport"
)

// connect starts `fabro mcp start` as a host does and speaks to it over pipes.
// The function that it returns ends the host in order and checks the exit code.
func (s *stage) connect(ctx context.Context, options mcpclient.Options) (*mcpclient.Client, func() error, error) {
	cmd := exec.Command(s.fabro, "mcp", "start")
	cmd.Env, cmd.Dir, cmd.Stderr = s.env(), s.project, os.Stderr
	child, err := transport.Command(ctx, cmd)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot start %s: %w", s.fabro, err)
	}
	s.say("   (started: fabro mcp start)")
	client := mcpclient.New(ctx, child, options)
	return client, func() error {
		err := client.Close()
		if cerr := child.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			s.say("   (the host closed its end; the server exited with 0)")
		}
		return err
	}, nil
}

// gathered is the part of a gather result that the story needs.
type gathered struct {
	Runs []struct {
		ID     string `json:"run_id"`
		Status string `json:"status"`
	} `json:"runs"`
	EndedBy    string `json:"ended_by"`
	WaitingFor []struct {
		RunID    string `json:"run_id"`
		Question string `json:"question"`
		ID       string `json:"question_id"`
		Options  []struct {
			Key   string `json:"key"`
			Label string `json:"label"`
		} `json:"options"`
	} `json:"waiting_for"`
}

// call calls a tool, tells what comes back and decodes the structured part.
func (s *stage) call(ctx context.Context, client *mcpclient.Client, tool string, arguments map[string]any, into any) error {
	s.sent(tool, arguments)
	last := ""
	result, err := client.CallTool(ctx, tool, arguments, func(p mcpclient.Progress) {
		if p.Message != last {
			s.say("     … %s", p.Message)
			last = p.Message
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	s.came(result.Text())
	if result.IsError {
		return fmt.Errorf("%s reported an error: %s", tool, result.Text())
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(result.Structured, into)
}

// create starts one run of the example.
func (s *stage) create(ctx context.Context, client *mcpclient.Client) (string, error) {
	var created struct {
		Runs []struct {
			ID string `json:"run_id"`
		} `json:"runs"`
	}
	err := s.call(ctx, client, "fabro_run_create", map[string]any{"runs": []any{"release/workflow.toml"}}, &created)
	if err != nil {
		return "", err
	}
	if len(created.Runs) != 1 {
		return "", fmt.Errorf("one run was asked for, %d were created", len(created.Runs))
	}
	return created.Runs[0].ID, nil
}

// modernHost plays the new era: the run's question comes back as a result, and
// the model answers it with a further call.
func (s *stage) modernHost(ctx context.Context) (err error) {
	client, end, err := s.connect(ctx, mcpclient.Options{Name: "demo-host", Version: "1"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()

	s.step("The host asks who is there")
	s.sent("server/discover", nil)
	server, err := client.Discover(ctx)
	if err != nil {
		return err
	}
	s.came(fmt.Sprintf("%s %s, which speaks %s", server.Info.Name, server.Info.Version, strings.Join(server.Revisions, ", ")))

	s.step("It lists the tools")
	s.sent("tools/list", nil)
	tools, err := client.ListTools(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	s.came(strings.Join(names, "\n"))
	if !slices.Contains(names, "fabro_run_create") {
		return fmt.Errorf("there is no tool to create a run among %v", names)
	}

	s.step("It creates a run of a release workflow (the embedded Fabro server starts by itself)")
	run, err := s.create(ctx, client)
	if err != nil {
		return err
	}

	s.step("It waits until the run ends or needs a person")
	var state gathered
	if err := s.call(ctx, client, "fabro_run_gather", map[string]any{"run_ids": []any{run}, "until": "attention", "timeout_seconds": 60}, &state); err != nil {
		return err
	}
	if state.EndedBy != "attention" || len(state.WaitingFor) != 1 {
		return fmt.Errorf("the run should wait for a person; it ended by %q, waiting for %d", state.EndedBy, len(state.WaitingFor))
	}
	question := state.WaitingFor[0]
	s.step("The run asks: %s", question.Question)
	for _, o := range question.Options {
		s.say("     %s", o.Label)
	}

	s.step("The user says: publish")
	answer := map[string]any{"action": "answer", "run_id": run, "question_id": question.ID, "answer": map[string]any{"option": "P"}}
	if err := s.call(ctx, client, "fabro_run_interact", answer, nil); err != nil {
		return err
	}

	s.step("It waits for the end")
	if err := s.call(ctx, client, "fabro_run_gather", map[string]any{"run_ids": []any{run}, "timeout_seconds": 60}, &state); err != nil {
		return err
	}
	if err := s.ended(state, "PUBLISHED"); err != nil {
		return err
	}
	return s.events(ctx, client, run)
}

// events tells what the run did, from its own log.
func (s *stage) events(ctx context.Context, client *mcpclient.Client, run string) error {
	s.step("It reads what happened, event by event")
	var page struct {
		Events []struct {
			Sequence int `json:"sequence"`
			Event    struct {
				Name string `json:"event"`
				Node string `json:"node_label"`
			} `json:"event"`
		} `json:"events"`
	}
	arguments := map[string]any{"action": "list", "run_id": run, "categories": []any{"stage", "interview", "run"}, "first": 100}
	s.sent("fabro_run_events", arguments)
	result, err := client.CallTool(ctx, "fabro_run_events", arguments, nil)
	if err != nil {
		return err
	}
	if result.IsError {
		return fmt.Errorf("fabro_run_events reported an error: %s", result.Text())
	}
	if err := json.Unmarshal(result.Structured, &page); err != nil {
		return err
	}
	for _, e := range page.Events {
		s.say("     %3d  %-22s %s", e.Sequence, e.Event.Name, e.Event.Node)
	}
	if len(page.Events) == 0 {
		return errors.New("the run has no events")
	}
	return nil
}

// legacyHost plays the old era: the handshake, and the question as a form that
// the host shows while its one call goes on.
func (s *stage) legacyHost(ctx context.Context) (err error) {
	asked := 0
	client, end, err := s.connect(ctx, mcpclient.Options{
		Name: "demo-host-2025", Version: "1",
		Answer: func(_ context.Context, q mcpclient.Question) (mcpclient.Answer, error) {
			asked++
			s.say("     the host shows a form: %s", firstLine(q.Message))
			field, err := onlyField(q.Schema)
			if err != nil {
				return mcpclient.Answer{}, err
			}
			s.say("     its user picks: Hold back")
			return mcpclient.Answer{Action: "accept", Content: map[string]any{field: "H"}}, nil
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()

	s.step("The handshake of that revision")
	s.sent("initialize", map[string]any{"protocolVersion": mcpclient.Legacy})
	server, err := client.Initialize(ctx, mcpclient.Legacy)
	if err != nil {
		return err
	}
	s.came(fmt.Sprintf("%s %s, revision %s", server.Info.Name, server.Info.Version, server.Revision))

	s.step("It sees the run of the first host, because both share one embedded server")
	if err := s.call(ctx, client, "fabro_run_search", map[string]any{"status": []any{"succeeded"}}, nil); err != nil {
		return err
	}
	s.step("It creates a second run and waits for its end in one call")
	run, err := s.create(ctx, client)
	if err != nil {
		return err
	}
	var state gathered
	if err := s.call(ctx, client, "fabro_run_gather", map[string]any{"run_ids": []any{run}, "timeout_seconds": 60}, &state); err != nil {
		return err
	}
	if asked != 1 {
		return fmt.Errorf("the user was asked %d times; once was expected", asked)
	}
	return s.ended(state, "ON-HOLD")
}

// ended checks that the run succeeded and took the branch that writes the file.
func (s *stage) ended(state gathered, file string) error {
	if len(state.Runs) != 1 || state.Runs[0].Status != "succeeded" {
		return fmt.Errorf("the run should have succeeded: %+v", state.Runs)
	}
	text, err := os.ReadFile(filepath.Join(s.project, "dist", file))
	if err != nil {
		return fmt.Errorf("the run did not do its work: %w", err)
	}
	s.say("   on disk now: dist/%s, which says %q", file, strings.TrimSpace(string(text)))
	return nil
}

// onlyField names the one field of a form.
func onlyField(schema json.RawMessage) (string, error) {
	var form struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(schema, &form); err != nil {
		return "", err
	}
	for name := range form.Properties {
		return name, nil
	}
	return "", errors.New("the form has no field")
}
