package check

import (
	"net/url"
	"regexp"
	"strings"

	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

func toolsListed(s *suspect) string {
	if len(s.Tools) == 0 {
		return "the server lists no tools"
	}
	return ""
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]*$`)

var toolChecks = []one{
	{
		name: "tool-names", title: "tools have names, unique and of the recommended form",
		rules: []string{"tools.tool.name", "tools.name.length", "tools.name.charset", "tools.name.no-special", "tools.name.unique"},
		needs: toolsListed,
		run: func(s *suspect) {
			seen := map[string]bool{}
			for i, t := range s.Tools {
				name := t.Get("name")
				if !name.Is(strictjson.String) {
					s.broken("tools.tool.name", "tool number %d has no name", i+1)
					continue
				}
				if n := len([]rune(name.Text)); n < 1 || n > 128 {
					s.broken("tools.name.length", "the tool name %q has %d characters; 1 to 128 are recommended", name.Text, n)
				}
				if !toolName.MatchString(name.Text) {
					s.broken("tools.name.charset", "the tool name %q has characters outside A-Z a-z 0-9 _ - .", name.Text)
				}
				if strings.ContainsAny(name.Text, " ,") {
					s.broken("tools.name.no-special", "the tool name %q has a space or comma", name.Text)
				}
				if seen[name.Text] {
					s.broken("tools.name.unique", "the tool name %q is listed twice", name.Text)
				}
				seen[name.Text] = true
			}
		},
	},
	{
		name: "tool-schemas", title: "input and output schemas are valid JSON Schemas with the root the revision asks for",
		rules: []string{"tools.tool.input-schema", "tools.tool.input-schema.not-null", "tools.tool.input-schema.limited", "tools.tool.input-schema.no-params",
			"tools.tool.output-schema.object-root", "schema.dialect.default", "schema.dialect.valid", "schema.ref.server-local"},
		needs: toolsListed,
		run: func(s *suspect) {
			for _, t := range s.Tools {
				checkToolSchemas(s, t)
			}
		},
	},
	{
		name: "tool-annotations", title: "tool annotations have the right types",
		rules: []string{"tools.tool.annotations.types"},
		needs: func(s *suspect) string {
			for _, t := range s.Tools {
				if t.Get("annotations") != nil {
					return ""
				}
			}
			return "no tool has annotations"
		},
		run: func(s *suspect) {
			for _, t := range s.Tools {
				a := t.Get("annotations")
				if a == nil {
					continue
				}
				if !a.Is(strictjson.Object) {
					s.broken("tools.tool.annotations.types", "the annotations of %q are no object", t.Get("name").Str())
				}
				for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
					if v := a.Get(hint); v != nil && !v.Is(strictjson.Bool) {
						s.broken("tools.tool.annotations.types", "%s of %q is %s", hint, t.Get("name").Str(), v.Raw)
					}
				}
				if v := a.Get("title"); v != nil && !v.Is(strictjson.String) {
					s.broken("tools.tool.annotations.types", "the annotated title of %q is %s", t.Get("name").Str(), v.Raw)
				}
			}
		},
	},
	{
		name: "tool-headers", title: "x-mcp-header annotations are well formed",
		rules: []string{"tools.x-mcp-header.nonempty-token", "tools.x-mcp-header.unique", "tools.x-mcp-header.primitive", "tools.x-mcp-header.reachable"},
		needs: func(s *suspect) string {
			for _, t := range s.Tools {
				if strings.Contains(string(t.Raw), `"x-mcp-header"`) {
					return ""
				}
			}
			return "no tool uses x-mcp-header"
		},
		run: func(s *suspect) {
			for _, t := range s.Tools {
				checkHeaders(s, t.Get("name").Str(), t.Get("inputSchema"))
			}
		},
	},
}

func checkToolSchemas(s *suspect, t *strictjson.Value) {
	name := t.Get("name").Str()
	input := t.Get("inputSchema")
	switch {
	case input == nil:
		s.broken("tools.tool.input-schema", "the tool %q has no inputSchema", name)
	case input.Is(strictjson.Null):
		s.broken("tools.tool.input-schema.not-null", "the inputSchema of %q is null", name)
		s.broken("tools.tool.input-schema", "the inputSchema of %q is null", name)
	case input.Get("type").Str() != "object":
		s.broken("tools.tool.input-schema", "the inputSchema of %q does not have type object at its root", name)
	default:
		checkSchema(s, "inputSchema", name, input)
	}
	output := t.Get("outputSchema")
	if output == nil {
		return
	}
	if !transcript.Modern(s.Revision) && output.Get("type").Str() != "object" {
		s.broken("tools.tool.output-schema.object-root", "the outputSchema of %q does not have type object at its root", name)
		return
	}
	checkSchema(s, "outputSchema", name, output)
}

func checkSchema(s *suspect, what, tool string, schema *strictjson.Value) {
	if s.compile != nil {
		if err := s.compile(schema.Raw); err != nil {
			rule := "schema.dialect.valid"
			if schema.Get("$schema") == nil {
				rule = "schema.dialect.default"
			}
			s.broken(rule, "the %s of %q is no valid JSON Schema: %v", what, tool, err)
		}
	}
	walk(schema, func(v *strictjson.Value) {
		ref := v.Get("$ref").Str()
		if u, err := url.Parse(ref); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			s.broken("schema.ref.server-local", "the %s of %q refers to %s, which clients do not fetch", what, tool, ref)
		}
	})
}

// walk visits every value inside a value.
func walk(v *strictjson.Value, visit func(*strictjson.Value)) {
	if v == nil {
		return
	}
	visit(v)
	for _, m := range v.Members {
		walk(m.Value, visit)
	}
	for _, item := range v.Items {
		walk(item, visit)
	}
}

var headerToken = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// checkHeaders follows "properties" from the root, the only way by which an
// annotated property is reachable; an annotation anywhere else is not.
func checkHeaders(s *suspect, tool string, schema *strictjson.Value) {
	const key = "x-mcp-header"
	reachable := map[*strictjson.Value]bool{}
	seen := map[string]bool{}
	var follow func(*strictjson.Value)
	follow = func(object *strictjson.Value) {
		properties := object.Get("properties")
		if properties == nil {
			return
		}
		for _, m := range properties.Members {
			reachable[m.Value] = true
			header := m.Value.Get(key)
			if header == nil {
				follow(m.Value)
				continue
			}
			if !headerToken.MatchString(header.Str()) {
				s.broken("tools.x-mcp-header.nonempty-token", "the header name %s of %q in %q is no HTTP token", header.Raw, m.Name, tool)
			}
			if lower := strings.ToLower(header.Str()); seen[lower] {
				s.broken("tools.x-mcp-header.unique", "two properties of %q use the header name %s", tool, header.Raw)
			} else {
				seen[lower] = true
			}
			switch kind := m.Value.Get("type").Str(); kind {
			case "string", "integer", "boolean":
			default:
				s.broken("tools.x-mcp-header.primitive", "the property %q of %q has %s but is of type %q", m.Name, tool, key, kind)
			}
		}
	}
	follow(schema)
	walk(schema, func(v *strictjson.Value) {
		if v.Get(key) != nil && !reachable[v] {
			s.broken("tools.x-mcp-header.reachable", "%q has an %s that no chain of properties reaches", tool, key)
		}
	})
}
