package workflow

// CheckBundle checks what a client can judge of a bundle before it sends it to a
// server: the graph, its references, templates and inputs, undefined inputs
// included. What only the server knows is not judged: which environments, models
// and `{{ vars.NAME }}` there are, and whether it renders more of the template
// language than this package does.
//
// Errors: as Compile.
func CheckBundle(b Bundle) ([]Diagnostic, error) {
	settings, err := mergeSettings(b, nil, true)
	if err != nil {
		return nil, err
	}
	_, diagnostics, err := compile(b, CompileOptions{StrictVariables: true, forClient: true}, settings)
	return diagnostics, err
}
