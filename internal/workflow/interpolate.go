package workflow

import (
	"fmt"
	"strings"

	"fabro-mcp/internal/workflow/template"
)

// token is `{{ goal }}` or `{{ namespace.NAME }}` in a script or a setting. Text
// in braces that does not have this form is no token and stays as it is.
var tokenPattern = lazily(`\{\{\s*(?:(goal)|(env)\.([A-Za-z0-9_]+)|(vars|secrets)\.([A-Za-z_][A-Za-z0-9_]*)|(inputs)\.([A-Za-z0-9_][A-Za-z0-9_-]*))\s*\}\}`)

type token struct {
	namespace string // goal, env, vars, secrets or inputs
	name      string // "" for goal
	at        int    // byte offset of the namespace
}

func (t token) String() string {
	if t.name == "" {
		return t.namespace
	}
	return t.namespace + "." + t.name
}

// replaceTokens calls replace for each token and puts its text in the token's
// place, or leaves the token when ok is false. Inserted text is not looked at
// again. It stops with an error once the result is longer than limit bytes.
func replaceTokens(text string, limit int, replace func(token) (value string, ok bool)) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	var b strings.Builder
	done := 0
	for _, m := range tokenPattern().FindAllStringSubmatchIndex(text, -1) {
		t := token{}
		for group := 2; group < len(m); group += 2 {
			if m[group] < 0 {
				continue
			}
			if t.namespace == "" {
				t.namespace, t.at = text[m[group]:m[group+1]], m[group]
			} else {
				t.name = text[m[group]:m[group+1]]
			}
		}
		value, ok := replace(t)
		if !ok {
			continue
		}
		b.WriteString(text[done:m[0]])
		b.WriteString(value)
		done = m[1]
		if b.Len() > limit {
			return "", fmt.Errorf("the text is longer than %d bytes once its variables are inserted", limit)
		}
	}
	if done == 0 {
		return text, nil
	}
	b.WriteString(text[done:])
	return b.String(), nil
}

const maxInterpolated = template.MaxOutput

// interpolateSetting replaces `{{ vars.NAME }}` in a setting.
func interpolateSetting(text string, vars map[string]string) (string, error) {
	var failed error
	out, err := replaceTokens(text, maxInterpolated, func(t token) (string, bool) {
		value, ok := vars[t.name]
		switch {
		case t.namespace == "vars" && ok:
			return value, true
		case failed != nil:
		case t.namespace == "vars":
			failed = fmt.Errorf("variable %q, which {{ %s }} refers to, is not set", t.name, t)
		case t.namespace == "env":
			failed = fmt.Errorf("{{ %s }} is not supported: settings do not read the process environment; use {{ vars.%s }}", t, t.name)
		case t.namespace == "secrets":
			failed = fmt.Errorf("{{ %s }} is not supported by the embedded server, which keeps no secrets; run this on a Fabro server (--server)", t)
		default:
			failed = fmt.Errorf("{{ %s }} is not supported in settings", t)
		}
		return "", false
	})
	if failed != nil {
		return "", failed
	}
	return out, err
}

// shellWord writes a text as one word of a shell script, in quotes only where
// it needs them.
func shellWord(s string) string {
	safe := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_@%+=:,./-", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// pythonLiteral writes a text as a string literal of JSON, which is one of
// Python too.
func pythonLiteral(s string) string {
	text, err := marshalPlain(s)
	if err != nil { // no string makes this happen
		return `""`
	}
	return string(text)
}
