package fabroapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// inputArgs writes inputs as the manifest's "key=<TOML literal>" entries, sorted.
// Values are strings, booleans, integers and floating point numbers
// (json.Number included).
func inputArgs(inputs map[string]any) ([]string, error) {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		if err := checkArgKey("input", key); err != nil {
			return nil, err
		}
		literal, err := tomlLiteral(inputs[key])
		if err != nil {
			return nil, fmt.Errorf("input `%s` %w", key, err)
		}
		out = append(out, key+"="+literal)
	}
	return out, nil
}

// labelArgs writes labels as "key=value" entries, sorted.
func labelArgs(labels map[string]string) ([]string, error) {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if err := checkArgKey("label", key); err != nil {
			return nil, err
		}
		out = append(out, key+"="+labels[key])
	}
	return out, nil
}

// checkArgKey refuses names that would not survive "key=value".
func checkArgKey(what, key string) error {
	if strings.TrimSpace(key) == "" || strings.Contains(key, "=") {
		return fmt.Errorf("%s name %q must not be blank or contain `=`", what, key)
	}
	return nil
}

// tomlLiteral writes a value so that TOML reads it back as the same type.
func tomlLiteral(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return tomlString(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case int:
		return strconv.Itoa(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return tomlFloat(v)
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return strconv.FormatInt(n, 10), nil
		}
		f, err := v.Float64()
		if err != nil {
			return "", fmt.Errorf("contains a number outside TOML's supported range: %s", v)
		}
		return tomlFloat(f)
	case nil:
		return "", fmt.Errorf("cannot be null; use a string, boolean, or number")
	}
	return "", fmt.Errorf("does not support values of type %T; use a string, boolean, or number", value)
}

// tomlFloat keeps a sign of being a floating point number: 3.0, not 3.
func tomlFloat(f float64) (string, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", fmt.Errorf("contains a number outside TOML's supported range: %v", f)
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text, nil
}

// tomlString writes a basic string on one line.
func tomlString(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "�") {
		switch r {
		case '"', '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case '\n':
			out.WriteString(`\n`)
		case '\r':
			out.WriteString(`\r`)
		case '\t':
			out.WriteString(`\t`)
		default:
			if r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
				fmt.Fprintf(&out, `\u%04X`, r)
			} else {
				out.WriteRune(r)
			}
		}
	}
	out.WriteByte('"')
	return out.String()
}
