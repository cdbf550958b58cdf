package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"fabro-mcp/internal/plural"
	"fabro-mcp/internal/workflow"
	"fabro-mcp/tools/plain"
)

// workflowArg names a workflow as everywhere: a name of the project or the user,
// or a path.
type workflowArg struct {
	Workflow string   `arg:"" help:"A workflow's name, its workflow.toml or its graph file."`
	Input    []string `short:"i" placeholder:"KEY=VALUE" sep:"none" help:"An input of the workflow. May be repeated."`
}

// compile reads the workflow from the disk and takes it through everything that
// creating a run would. The result is nil when there is no graph to speak of;
// the diagnostics then say why.
func (a workflowArg) compile() (*workflow.Compiled, []workflow.Diagnostic, error) {
	cwd := workingDir()
	env := environment()
	location, err := workflow.Locate(a.Workflow, cwd, env.Home())
	if err != nil {
		return refused(err)
	}
	bundle, err := workflow.BundleFiles(location, cwd, workflow.BundleOptions{
		FabroHome: env.Home(), UserSettings: env.SettingsPath(), Args: workflow.Args{Inputs: a.Input},
	})
	if err != nil {
		return refused(err)
	}
	compiled, findings, err := workflow.Compile(*bundle, workflow.CompileOptions{})
	if err != nil {
		return refused(err)
	}
	return compiled, findings, nil
}

// refused turns an error with a place in a file into the findings that it is.
func refused(err error) (*workflow.Compiled, []workflow.Diagnostic, error) {
	if findings := workflow.DiagnosticsOf(err); len(findings) > 0 {
		return nil, findings, nil
	}
	return nil, nil, err
}

type validateCmd struct{ workflowArg }

func (c *validateCmd) Run(g *globals) error {
	compiled, findings, err := c.compile()
	if err != nil {
		return err
	}
	ok := !workflow.HasErrors(findings) && compiled != nil
	if g.JSON {
		if findings == nil {
			findings = []workflow.Diagnostic{}
		}
		if err := g.printJSON(map[string]any{"ok": ok, "diagnostics": findings}); err != nil {
			return err
		}
	} else {
		fmt.Fprint(g.stdout, workflow.FormatDiagnostics(findings))
	}
	if !ok {
		if !g.JSON {
			complain(g.stderr, fmt.Errorf("%s cannot run: %s", c.Workflow, count(findings)))
		}
		return silent{exitError}
	}
	g.say("%s: %s, %s, %s", plain.Clean(c.Workflow), plural.Count(len(compiled.Graph.Nodes), "stage"), plural.Count(len(compiled.Graph.Edges), "edge"), count(findings))
	return nil
}

// count says how many findings there are of each kind.
func count(findings []workflow.Diagnostic) string {
	numbers := map[string]int{}
	for _, f := range findings {
		numbers[f.Severity]++
	}
	var parts []string
	for _, severity := range []string{workflow.SeverityError, workflow.SeverityWarning, workflow.SeverityInfo} {
		if n := numbers[severity]; n > 0 {
			parts = append(parts, plural.Count(n, severity))
		}
	}
	if parts == nil {
		return "nothing to complain about"
	}
	return strings.Join(parts, ", ")
}

type graphCmd struct {
	workflowArg
	SVG bool `name:"svg" help:"As SVG, drawn by Graphviz (the program dot)."`
}

func (c *graphCmd) Run(ctx context.Context, g *globals) error {
	compiled, findings, err := c.compile()
	if err != nil {
		return err
	}
	if compiled == nil {
		fmt.Fprint(g.stderr, workflow.FormatDiagnostics(findings))
		return silent{exitError}
	}
	if !c.SVG {
		fmt.Fprint(g.stdout, workflow.DrawText(compiled.Graph))
		return nil
	}
	dot, err := lookPath("dot")
	if err != nil {
		return errors.New("--svg needs the program dot of Graphviz, which is not on the PATH; without --svg the graph is printed as text")
	}
	cmd := exec.CommandContext(ctx, dot, "-Tsvg")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(workflow.DOT(compiled.Graph)), g.stdout, g.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", dot, err)
	}
	return nil
}
