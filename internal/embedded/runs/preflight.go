package runs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/engine"
	"fabro-mcp/internal/plural"
)

// Preflight looks at what a run of a checked manifest would need on this machine.
func (m *Manager) Preflight(c *Check, manifest *wire.RunManifest) []wire.Check {
	check := func(name, status, summary string) wire.Check {
		return wire.Check{Name: name, Status: status, Summary: summary, Details: []wire.CheckDetail{}}
	}
	var list []wire.Check
	if c.OK {
		list = append(list, check("Workflow", wire.CheckPass, plural.Count(c.Summary.Nodes, "node")+", "+plural.Count(c.Summary.Edges, "edge")))
	} else {
		list = append(list, check("Workflow", wire.CheckError, "the workflow has errors"))
	}
	repo := check("Repository", wire.CheckPass, "not a Git repository")
	if g := manifest.Git; g != nil {
		repo.Summary = g.Branch
		if g.Dirty == wire.GitDirty {
			repo.Status, repo.Summary = wire.CheckWarning, g.Branch+" with uncommitted changes; the run works in them"
		}
	}
	list = append(list, repo)
	dir := manifest.Cwd
	if wd := c.Compiled.Settings.WorkingDir; wd != "" {
		if dir = wd; !filepath.IsAbs(wd) {
			dir = filepath.Join(manifest.Cwd, wd)
		}
	}
	box := check("Sandbox", wire.CheckPass, "commands run on this machine, in "+dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		box = check("Sandbox", wire.CheckError, "the working directory "+dir+" is not there")
		box.Remediation = wire.Ptr("Create the directory, or start the run from another one.")
	}
	list = append(list, box)
	if p := c.Compiled.Settings.Environment.Provider; p != "" && p != "local" && c.Compiled.Settings.Environment.ID != "default" {
		env := check("Environment Capabilities", wire.CheckWarning, fmt.Sprintf("environment %s is of provider %s; the embedded server runs it on this machine", c.Compiled.Settings.Environment.ID, p))
		list = append(list, env)
	}
	return append(list, m.preflightAgent(c))
}

func (m *Manager) preflightAgent(c *Check) wire.Check {
	llm := wire.Check{Name: "LLM", Status: wire.CheckPass, Details: []wire.CheckDetail{}}
	stages := engine.NeedsAgentBelow(c.Compiled)
	switch {
	case len(stages) == 0:
		llm.Summary = "no stage needs a language model"
	case dryRun(c.Compiled):
		llm.Summary = "simulated (dry run)"
	case len(m.cfg.AgentCommand) > 0:
		llm.Summary = "done by " + m.cfg.AgentCommand[0]
		if _, err := exec.LookPath(m.cfg.AgentCommand[0]); err != nil {
			llm.Status, llm.Summary = wire.CheckError, fmt.Sprintf("the agent command %s is not there", m.cfg.AgentCommand[0])
		}
	default:
		llm.Status, llm.Summary = wire.CheckWarning, "the embedded server has no language model; the run needs an agent command, or dry_run"
		for _, s := range stages {
			llm.Details = append(llm.Details, wire.CheckDetail{Text: s, Warn: true})
		}
		llm.Remediation = wire.Ptr("Set FABRO_AGENT_COMMAND, or [agent] command in embedded.toml, or use a Fabro server (--server).")
	}
	return llm
}

// Steer takes a message for an agent that is not there: the log says that it waits, and at the end of the run that it was dropped.
func (m *Manager) Steer(ctx context.Context, id, text string, actor *wire.Actor) error {
	_, err := m.change(ctx, id, func(r *run) error {
		return r.appendLocked(event{name: "run.steer", actor: actor, properties: map[string]string{"text": text}}, event{name: "agent.steer.buffered", actor: wire.Worker(id)})
	})
	return err
}

// Archived is the refusal to change an archived run.
func Archived(id string) error {
	return conflict("run %s is archived; run `fabro unarchive %s` to restore it and try again", id, id)
}
