package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxMatchSteps bounds the work of one regular expression: the size of the
// pattern times the length of the text. Some seconds at worst; an everyday
// pattern may search a hundred megabytes.
const maxMatchSteps = 1 << 31

// Eval decides the condition. lookup gives the value of a key: `outcome` and
// `preferred_label` come from the node whose edges are examined, everything else
// from the flat run context; a key `context.X` that lookup does not know is
// tried again as `X`. No key is a path into an object.
//
// A regular expression that would take too long (see maxMatchSteps) does not
// match. Values are what JSON gives: nil, string, bool, numbers of any Go type or
// json.Number, slices, maps, json.RawMessage.
func (c *Condition) Eval(lookup func(key string) (any, bool)) bool {
	if len(c.any) == 0 {
		return true
	}
	return slices.ContainsFunc(c.any, func(all []clause) bool {
		return !slices.ContainsFunc(all, func(cl clause) bool { return !cl.holds(lookup) })
	})
}

func (c *clause) holds(lookup func(string) (any, bool)) bool {
	value, known := lookup(c.key)
	if short, ok := strings.CutPrefix(c.key, "context."); !known && ok {
		value, _ = lookup(short)
	}
	return c.test(value) != c.negated
}

func (c *clause) test(value any) bool {
	switch c.op {
	case "":
		text := ContextText(value)
		return text != "" && text != "false" && text != "0"
	case "=":
		return ContextText(value) == c.value
	case "!=":
		return ContextText(value) != c.value
	case "contains":
		if list, ok := asList(value); ok {
			return slices.ContainsFunc(list, func(element any) bool { return ContextText(element) == c.value })
		}
		return strings.Contains(ContextText(value), c.value)
	case "matches":
		text := ContextText(value)
		return c.size*len(text) <= maxMatchSteps && c.pattern.MatchString(text)
	}
	left, okLeft := parseNumber(ContextText(value))
	right, okRight := parseNumber(c.value)
	if !okLeft || !okRight {
		return false
	}
	switch c.op {
	case ">":
		return left > right
	case "<":
		return left < right
	case ">=":
		return left >= right
	default:
		return left <= right
	}
}

// parseNumber reads a decimal floating-point number; Go's hexadecimal forms are
// none, and surrounding white space makes it none.
func parseNumber(s string) (float64, bool) {
	if strings.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

func asList(value any) ([]any, bool) {
	switch v := value.(type) {
	case []any:
		return v, true
	case []string:
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		return list, true
	case json.RawMessage:
		var list []any
		if err := json.Unmarshal(v, &list); err == nil && list != nil {
			return list, true
		}
	}
	return nil, false
}

// ContextText is the text of a context value in conditions: a string is itself,
// booleans and numbers are written out, null is empty, lists and objects are
// compact JSON.
func ContextText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case Value:
		return v.Text()
	case json.RawMessage:
		var decoded any
		dec := json.NewDecoder(strings.NewReader(string(v)))
		dec.UseNumber()
		if err := dec.Decode(&decoded); err != nil {
			return string(v)
		}
		return ContextText(decoded)
	}
	text, err := marshalPlain(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
