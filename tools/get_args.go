package tools

import "fabro-mcp/tools/args"

// getParams are the arguments of fabro_run_get.
type getParams struct{ RunID string }

func (p *getParams) fields() args.Fields {
	return args.Fields{{Name: "run_id", Required: true, Missing: "run_id is required", Type: runSelector(&p.RunID), Doc: runSelectorDoc}}
}

func (p *getParams) check() error { return nil }
