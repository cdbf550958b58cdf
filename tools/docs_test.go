package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocumentation keeps the tables of docs/tools.md the same as the schemas that
// hosts get.
func TestDocumentation(t *testing.T) {
	const file, begin, end = "../docs/tools.md", "<!-- arguments: written by `go test ./tools -run TestDocumentation -update` -->\n", "<!-- end of arguments -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), begin)
	got, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the arguments", file)
	}
	want := documented(t)
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("run the test with -update (-schemas +%s)\n%s", file, diff)
	}
	for _, tool := range catalogue(false) {
		if !strings.Contains(head+tail, "`"+tool.name+"`") {
			t.Errorf("%s does not explain %s", file, tool.name)
		}
	}
}

type property struct {
	Description string              `json:"description"`
	Type        any                 `json:"type"`
	Enum        []any               `json:"enum"`
	Default     any                 `json:"default"`
	Minimum     *json.Number        `json:"minimum"`
	Maximum     *json.Number        `json:"maximum"`
	MinItems    *int                `json:"minItems"`
	MaxItems    *int                `json:"maxItems"`
	MaxLength   *int                `json:"maxLength"`
	Items       *property           `json:"items"`
	AnyOf       []property          `json:"anyOf"`
	Properties  map[string]property `json:"properties"`
	Required    []string            `json:"required"`
}

func documented(t *testing.T) string {
	h, err := newHost(Config{Toolsets: []string{toolsetRuns, toolsetInsight}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, tool := range catalogue(false) {
		fields := tool.make().fields()
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n\n", tool.name, h.described(tool))
		table(t, &b, fields.Names(), fields.Schema(""))
		if tool.name == nameCreate {
			spec := new(runSpec).fields()
			b.WriteString("\nAn object in `runs`:\n\n")
			table(t, &b, spec.Names(), spec.Schema(""))
		}
	}
	b.WriteString("\n")
	return b.String()
}

func table(t *testing.T, b *strings.Builder, names []string, schema json.RawMessage) {
	var root property
	if err := json.Unmarshal(schema, &root); err != nil {
		t.Fatal(err)
	}
	b.WriteString("| argument | type | |\n|---|---|---|\n")
	for _, name := range names {
		p := root.Properties[name]
		mark := ""
		for _, required := range root.Required {
			if required == name {
				mark = ", required"
			}
		}
		fmt.Fprintf(b, "| `%s` | %s%s | %s |\n", name, p.kind(), mark, strings.ReplaceAll(p.Description, "|", "\\|"))
	}
}

// kind says type and limits in a few words.
func (p *property) kind() string {
	s := ""
	switch kind := p.Type.(type) {
	case string:
		s = kind
	case []any:
		s = fmt.Sprint(kind[0])
	default:
		return "see there"
	}
	var notes []string
	if s == "array" {
		s = "list"
	}
	if p.Items != nil && p.Items.Enum != nil {
		notes = append(notes, "of "+choices(p.Items.Enum))
	}
	if p.Enum != nil {
		s = choices(p.Enum)
	}
	if p.Minimum != nil && p.Maximum != nil {
		notes = append(notes, fmt.Sprintf("%s to %s", *p.Minimum, *p.Maximum))
	}
	if p.MinItems != nil || p.MaxItems != nil {
		low, high := 0, "any number"
		if p.MinItems != nil {
			low = *p.MinItems
		}
		if p.MaxItems != nil {
			high = fmt.Sprint(*p.MaxItems)
		}
		notes = append(notes, fmt.Sprintf("%d to %s", low, high))
	}
	if p.MaxLength != nil {
		notes = append(notes, fmt.Sprintf("at most %d characters", *p.MaxLength))
	}
	if p.Default != nil {
		notes = append(notes, fmt.Sprintf("default %v", p.Default))
	}
	return strings.Join(append([]string{s}, notes...), ", ")
}

func choices(values []any) string {
	var out []string
	for _, v := range values {
		if v != nil {
			out = append(out, fmt.Sprintf("`%v`", v))
		}
	}
	return strings.Join(out, " ")
}
