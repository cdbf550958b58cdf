package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/plural"
	"fabro-mcp/internal/workflow"
	"fabro-mcp/tools/args"
	"fabro-mcp/tools/plain"
)

// workflowListParams are the arguments of fabro_workflow_list.
type workflowListParams struct{ Cwd args.Opt[string] }

func (p *workflowListParams) fields() args.Fields {
	return args.Fields{{Name: "cwd", Type: args.OptText(&p.Cwd).NotBlank(""), Doc: "Directory whose project is looked at. Default: the working directory of this MCP server."}}
}

func (p *workflowListParams) check() error { return nil }

type workflowListResult struct {
	Workflows []workflowEntry `json:"workflows"`
}

const (
	workflowSchema     = `{"type":"object","properties":{"name":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},"source":{"type":"string","enum":["project","user"]},"path":{"type":"string"}},"required":["name","title","description","source","path"]}`
	workflowListSchema = `{"type":"object","properties":{"workflows":{"type":"array","items":` + workflowSchema + `}},"required":["workflows"]}`
)

func (p *workflowListParams) run(_ context.Context, r *request) (*reply, error) {
	if p.Cwd.Set && !r.inRoots(r.directory(p.Cwd.Value)) {
		return nil, args.Errorf("cwd %q does not exist, or lies outside the roots this server is confined to (%s)", p.Cwd.Value, strings.Join(r.cfg.Roots, ", "))
	}
	out := workflowListResult{Workflows: emptyList(r.listWorkflows(p.Cwd.Value))}
	page := &plain.Page{Rest: "The structured result has them all."}
	page.Line("%s can be run by name.", plural.Count(len(out.Workflows), "workflow"))
	for _, w := range out.Workflows {
		line := fmt.Sprintf("> %s (%s)", plain.Line(w.Name, 80), w.Source)
		if about := strings.TrimSpace(w.Title + " " + w.Description); about != "" {
			line += ": " + plain.Line(about, 200)
		}
		page.Line("%s", line)
	}
	if len(out.Workflows) == 0 {
		page.Line("Workflows live in .fabro/workflows/<name>/ of a project (a directory with .fabro/project.toml) and of the user. A graph file can be run by its path as well.")
	}
	return &reply{text: page.String(), structured: out}, nil
}

// workflowValidateParams are the arguments of fabro_workflow_validate.
type workflowValidateParams struct {
	Workflow string
	Cwd      args.Opt[string]
	Inputs   map[string]any
}

func (p *workflowValidateParams) fields() args.Fields {
	return args.Fields{
		{Name: "workflow", Required: true, Type: args.Text(&p.Workflow).Trimmed().NotBlank(""), Doc: "Workflow name, or the path of a workflow.toml or graph file."},
		{Name: "cwd", Type: args.OptText(&p.Cwd).NotBlank(""), Doc: "Directory for relative paths and the project. Default: the working directory of this MCP server."},
		{Name: "inputs", Type: args.Scalars(&p.Inputs, "input"), Doc: "Values for the inputs of the workflow, by name."},
	}
}

func (p *workflowValidateParams) check() error { return nil }

type validateResult struct {
	OK          bool              `json:"ok"`
	Workflow    string            `json:"workflow"`
	Problem     *string           `json:"problem"`
	Diagnostics []wire.Diagnostic `json:"diagnostics"`
}

const validateSchema = `{"type":"object","properties":{"ok":{"type":"boolean"},"workflow":{"type":"string"},"problem":` + nullableString + `,` +
	`"diagnostics":{"type":"array","items":{"type":"object","properties":{"rule":{"type":"string"},"severity":{"type":"string"},"message":{"type":"string"}},"required":["severity","message"]}}},` +
	`"required":["ok","workflow","problem","diagnostics"]}`

// run checks a workflow as create would, on this machine and without a server.
func (p *workflowValidateParams) run(ctx context.Context, r *request) (*reply, error) {
	out := validateResult{OK: true, Workflow: p.Workflow, Diagnostics: []wire.Diagnostic{}}
	_, err := fabroapi.BuildManifest(ctx, r.cfg.Env, fabroapi.ManifestSpec{
		Workflow: p.Workflow, Cwd: r.directory(p.Cwd.Value), Inputs: p.Inputs, Roots: r.cfg.Roots,
	})
	page := &plain.Page{Rest: "The structured result has all findings."}
	var invalid *fabroapi.ManifestError
	switch {
	case err == nil:
		if out.Diagnostics, err = p.warnings(r); err != nil {
			return nil, err
		}
		page.Line("%s is valid.", plain.Line(p.Workflow, 200))
	case errors.As(err, &invalid):
		text := r.sentence(err)
		out.OK, out.Problem, out.Diagnostics = false, &text, emptyList(invalid.Diagnostics)
		page.Line("%s is not valid.", plain.Line(p.Workflow, 200))
		page.Quote("Findings", text)
	default:
		return nil, err
	}
	for _, d := range out.Diagnostics {
		if out.Problem == nil || !strings.Contains(*out.Problem, d.Message) { // the problem shows the errors
			page.Line("> %s", diagnosticLine(&d))
		}
	}
	return &reply{text: page.String(), structured: out}, nil
}

// warnings are the findings about a workflow that is valid. Its files have been read
// and found within the roots just before.
func (p *workflowValidateParams) warnings(r *request) ([]wire.Diagnostic, error) {
	cwd, err := filepath.Abs(r.directory(p.Cwd.Value))
	if err != nil {
		return nil, err
	}
	location, err := workflow.Locate(p.Workflow, cwd, r.cfg.Env.Home())
	if err != nil {
		return nil, err
	}
	bundle, err := workflow.BundleFiles(location, cwd, workflow.BundleOptions{FabroHome: r.cfg.Env.Home(), UserSettings: r.cfg.Env.SettingsPath()})
	if err != nil {
		return nil, err
	}
	found, err := workflow.CheckBundle(*bundle)
	if err != nil {
		return nil, err
	}
	// The two types have one JSON form, that of the API.
	text, err := json.Marshal(emptyList(found))
	if err != nil {
		return nil, err
	}
	out := []wire.Diagnostic{}
	err = json.Unmarshal(text, &out)
	return out, err
}
