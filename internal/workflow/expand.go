package workflow

import (
	"errors"
	"fmt"
	"strings"

	"fabro-mcp/internal/workflow/template"
)

// maxReports bounds the findings about one attribute: a megabyte of text can
// name a hundred thousand variables.
const maxReports = 100

// renderTemplates renders the goal, then every prompt. Both know `inputs` and
// `vars`; prompts know the rendered goal as well.
func (c *compiler) renderTemplates() {
	c.render(&c.graph.Attrs, "goal", Diagnostic{}, func(path []string) (any, bool) {
		return c.variable(path)
	})
	goal, hasGoal := c.graph.Attrs.Get("goal")
	for _, n := range c.graph.Nodes {
		c.render(&n.Attrs, "prompt", Diagnostic{NodeID: n.ID}, func(path []string) (any, bool) {
			if len(path) == 1 && path[0] == "goal" {
				if !hasGoal {
					c.noGoal(n, "prompt")
				}
				return goal.Text(), true
			}
			return c.variable(path)
		})
	}
}

// variable looks up `inputs.name` and `vars.name`.
func (c *compiler) variable(path []string) (any, bool) {
	if len(path) != 2 {
		return nil, false
	}
	switch path[0] {
	case "inputs":
		v, ok := c.settings.Inputs[path[1]]
		return v, ok
	case "vars":
		v, ok := c.opts.Vars[path[1]]
		return v, ok || c.opts.forClient
	}
	return nil, false
}

func (c *compiler) render(a *Attrs, key string, about Diagnostic, lookup func([]string) (any, bool)) {
	text, ok := a.String(key)
	if !ok || !template.HasSyntax(text) || strings.HasPrefix(text, "@") {
		return
	}
	at := a.At(key)
	name := c.pathOf(at)
	place := func(templateName string, offset int, included bool) Position {
		if source, ok := c.source(templateName); ok && included {
			return Position{source, offset}
		}
		return a.place(key, offset)
	}
	t, err := template.Parse(name, text)
	out := ""
	if err == nil {
		reports := 0
		out, err = t.Render(template.Env{
			Lookup: lookup,
			Load:   c.load,
			Undefined: func(u template.Undefined) {
				if reports++; reports > maxReports {
					return
				}
				d := about
				for _, site := range u.Includes {
					p := place(site.Template, site.Offset, site != u.Includes[0])
					line, column := p.LineColumn()
					d.Related = append(d.Related, Related{Message: "included from here", SourcePath: c.pathOf(p), Line: line, Column: column})
				}
				c.undefined(d, u.Variable, key == "goal", place(u.Template, u.Offset, len(u.Includes) > 0))
			},
		})
	}
	var fault *template.Error
	switch {
	case errors.As(err, &fault) && fault.Unsupported && c.opts.forClient:
	case errors.As(err, &fault):
		d := about
		d.Rule, d.Severity, d.Message = "template_syntax", SeverityError, fault.Message
		d.Fix = "{% raw %} … {% endraw %} keeps braces that are no template"
		if fault.Unsupported {
			d.Rule, d.Fix = "template_unsupported", "use {{ goal }}, {{ inputs.name }}, {{ vars.name }}, default(…) and {% include \"file\" %}, or run this on a Fabro server (--server)"
		}
		c.report(d, place(fault.Template, fault.Offset, fault.Template != name))
	case err == nil && c.spend(len(out), about, at):
		a.Set(key, String(out))
	}
}

// noGoal points out, once a node, that it uses the goal of a run that has none.
// The goal is empty then, not undefined.
func (c *compiler) noGoal(n *Node, key string) {
	if c.goalless[n] {
		return
	}
	c.goalless[n] = true
	c.infof("goal_missing", aboutNode(n, "set goal on the graph, or give the run one"), n.Attrs.At(key), "the %s of `%s` uses {{ goal }}, and there is no goal", key, n.ID)
}

// load finds an included template among the files of the bundle.
func (c *compiler) load(from, ref string) (*template.Template, error) {
	key, err := resolveKey(from, ref)
	if err != nil {
		return nil, fmt.Errorf("cannot include %w", err)
	}
	if l, ok := c.templates[key]; ok {
		return l.template, l.err
	}
	l := loaded{err: fmt.Errorf("the file %q to include was not sent along with the workflow", ref)}
	if source, ok := c.source(key); ok {
		l.template, l.err = template.Parse(key, source.Text)
	}
	c.templates[key] = l
	return l.template, l.err
}

func (c *compiler) undefined(d Diagnostic, variable string, inGoal bool, at Position) {
	if inGoal && variable == "goal" {
		d.Rule, d.Severity = "goal_self_reference", SeverityError
		d.Message = "the goal refers to itself"
		d.Fix = "write the goal out, or take the text from {{ inputs.name }}"
		c.report(d, at)
		return
	}
	d.Rule, d.Severity = "template_undefined_variable", SeverityWarning
	if c.opts.StrictVariables {
		d.Severity = SeverityError
	}
	d.Message = fmt.Sprintf("variable `%.80s` is not defined", variable)
	switch name, ok := strings.CutPrefix(variable, "inputs."); {
	case ok:
		d.Fix = fmt.Sprintf("give the run the input %s, or set it under [run.inputs] in workflow.toml", name)
		known := make([]string, 0, len(c.settings.Inputs))
		for input := range c.settings.Inputs {
			known = append(known, input)
		}
		if near := nearest(name, known); near != "" {
			d.Fix = fmt.Sprintf("did you mean inputs.%s?", near)
		}
	case strings.HasPrefix(variable, "vars."):
		d.Fix = "set the variable on the server, or use {{ inputs.name }}"
	case !strings.Contains(variable, "."):
		d.Fix = fmt.Sprintf("did you mean inputs.%.80s?", variable)
	default:
		d.Fix = "use {{ goal }}, {{ inputs.name }} or {{ vars.name }}"
	}
	c.reportSpan(d, at, len(variable))
}

// interpolateScripts puts values into scripts: as a shell word, or as a string
// literal in Python. A variable without value stays as it is written.
func (c *compiler) interpolateScripts() {
	goal, hasGoal := c.graph.Attrs.Get("goal")
	for _, n := range c.graph.Nodes {
		script, ok := n.Attrs.String("script")
		if !ok {
			continue
		}
		quote := shellWord
		if language, _ := n.Attrs.String("language"); language == "python" {
			quote = pythonLiteral
		}
		reports := 0
		out, err := replaceTokens(script, maxInterpolated, func(t token) (string, bool) {
			if t.namespace == "goal" {
				if !hasGoal {
					c.noGoal(n, "script")
				}
				return quote(goal.Text()), true
			}
			if v, ok := c.variable([]string{t.namespace, t.name}); ok {
				return quote(template.Text(v)), true
			}
			if reports++; reports <= maxReports {
				c.badToken(n, t)
			}
			return "", false
		})
		at := n.Attrs.At("script")
		switch {
		case err != nil:
			c.report(Diagnostic{Rule: "size_limit", Severity: SeverityError, NodeID: n.ID, Message: err.Error(), Fix: "hand long texts to the command in a file"}, at)
		case len(out) == len(script) && out == script:
		case c.spend(len(out), Diagnostic{NodeID: n.ID}, at):
			n.Attrs.Set("script", String(out))
		}
	}
}

func (c *compiler) badToken(n *Node, t token) {
	at := n.Attrs.place("script", t.at)
	d := Diagnostic{NodeID: n.ID}
	if t.namespace != "env" && t.namespace != "secrets" {
		c.undefined(d, t.String(), false, at)
		return
	}
	d.Rule, d.Severity = "script_unsupported_variable", SeverityError
	d.Message = fmt.Sprintf("{{ %.80s }} cannot be used in a script", t)
	if t.namespace == "env" {
		d.Fix = fmt.Sprintf("write $%.80s, which the shell reads from its environment", t.name)
	} else {
		d.Fix = "hand the secret to the command through its environment"
	}
	c.reportSpan(d, at, len(t.String()))
}

func (c *compiler) applyStylesheet() {
	text, ok := c.graph.Attrs.String("model_stylesheet")
	if !ok {
		return
	}
	s, err := ParseStylesheet(text)
	var fault *StylesheetError
	if errors.As(err, &fault) {
		c.report(Diagnostic{
			Rule: "stylesheet_syntax", Severity: SeverityError, Message: "in the stylesheet: " + fault.Message, Fix: "write rules as selector { property: value; }",
		},
			c.graph.Attrs.place("model_stylesheet", fault.Offset))
		return
	}
	s.Apply(c.graph)
}
