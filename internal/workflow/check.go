package workflow

// CheckBundle checks what a client can judge of a bundle before it sends it to a
// server: the graph, its references, templates and inputs, undefined template
// variables included. Environments, models and `{{ vars.NAME }}` of settings are
// not judged: only the server knows which there are.
//
// Errors: as Compile.
func CheckBundle(b Bundle) ([]Diagnostic, error) {
	settings, err := mergeSettings(b, nil, true)
	if err != nil {
		return nil, err
	}
	_, diagnostics, err := compile(b, CompileOptions{StrictVariables: true}, settings)
	return diagnostics, err
}
