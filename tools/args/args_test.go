package args

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xeipuuv/gojsonschema"
)

// sample is a table with every type.
type sample struct {
	Name   string
	Maybe  Opt[string]
	Kind   string
	On     Opt[bool]
	Count  Opt[int64]
	List   Opt[[]string]
	Map    Opt[map[string]string]
	Values map[string]any
	When   Opt[time.Time]
}

func (s *sample) fields() Fields {
	return Fields{
		{Name: "name", Required: true, Type: Text(&s.Name).Trimmed().NotBlank("").Max(10)},
		{Name: "maybe", Type: OptText(&s.Maybe)},
		{Name: "kind", Type: Text(&s.Kind).OneOf("asc", "desc").Default("asc")},
		{Name: "on", Type: Flag(&s.On).Default(true)},
		{Name: "count", Type: Count(&s.Count, 1, 10).Default(3)},
		{Name: "list", Type: List(&s.List, 1, 2).Trimmed()},
		{Name: "map", Type: Map(&s.Map)},
		{Name: "values", Type: Scalars(&s.Values, "input")},
		{Name: "when", Type: Date(&s.When)},
	}
}

func TestMessages(t *testing.T) {
	for _, c := range []struct{ name, arguments, want string }{
		{"no object", `[]`, `arguments must be an object, got an array []`},
		{"unknown field", `{"nmae":"x"}`, `unknown field "nmae"; did you mean "name"? Known fields: name, maybe, kind, on, count, list, map, values, when`},
		{"unknown field, nothing near", `{"zzzzzz":1}`, `unknown field "zzzzzz". Known fields: name, maybe, kind, on, count, list, map, values, when`},
		{"names match exactly", `{"Name":"x"}`, `unknown field "Name"; did you mean "name"? Known fields: name, maybe, kind, on, count, list, map, values, when`},
		{"missing", `{}`, `name is required`},
		{"null in a required field", `{"name":null}`, `name is required`},
		{"blank", `{"name":" "}`, `name must not be blank`},
		{"wrong type", `{"name":5}`, `name must be a string, got the number 5`},
		{"too long", `{"name":"12345678901"}`, `name must be at most 10 characters, got 11`},
		{"no choice", `{"name":"x","kind":"ascending"}`, "kind must be one of `asc`, `desc`, got \"ascending\""},
		{"nearest choice", `{"name":"x","kind":"dsc"}`, "kind must be one of `asc`, `desc`, got \"dsc\"; did you mean `desc`?"},
		{"no flag", `{"name":"x","on":"true"}`, `on must be true or false, got the string "true"`},
		{"no number", `{"name":"x","count":"3"}`, `count must be an integer, got the string "3"`},
		{"fraction", `{"name":"x","count":3.5}`, `count must be an integer, got the number 3.5`},
		{"too large", `{"name":"x","count":11}`, `count must be <= 10, got 11`},
		{"negative", `{"name":"x","count":-1}`, `count must be >= 1, got -1`},
		{"beyond int64", `{"name":"x","count":18446744073709551616}`, `count must be <= 10, got the number 18446744073709551616`},
		{"beyond float64", `{"name":"x","count":1e999999}`, `count must be <= 10, got the number 1e999999`},
		{"far below", `{"name":"x","count":-1e400}`, `count must be >= 1, got the number -1e400`},
		{"no list", `{"name":"x","list":"a"}`, `list must be a list of strings, got the string "a"`},
		{"empty list", `{"name":"x","list":[]}`, `list must contain at least 1 item(s)`},
		{"long list", `{"name":"x","list":["a","b","c"]}`, `list must contain no more than 2 item(s)`},
		{"item", `{"name":"x","list":["a",1]}`, `list[1] must be a string, got the number 1`},
		{"null item", `{"name":"x","list":["a",null]}`, `list[1] must be a string, got null`},
		{"blank item", `{"name":"x","list":["  "]}`, `list[0] must not be blank`},
		{"no map", `{"name":"x","map":[]}`, `map must be an object of strings, got an array []`},
		{"map value", `{"name":"x","map":{"k":true}}`, `map.k must be a string, got true`},
		{"no scalars", `{"name":"x","values":3}`, `values must be an object of strings, booleans and numbers, got the number 3`},
		{"null scalar", `{"name":"x","values":{"k":null}}`, "input `k` cannot be null; use a string, boolean, or number"},
		{"array scalar", `{"name":"x","values":{"k":[]}}`, "input `k` does not support array values; use a string, boolean, or number"},
		{"object scalar", `{"name":"x","values":{"k":{}}}`, "input `k` does not support object values; use a string, boolean, or number"},
		{"number out of range", `{"name":"x","values":{"k":1e400}}`, "input `k` contains a number outside TOML's supported range"},
		{"no date", `{"name":"x","when":"yesterday"}`, `when must be RFC3339 or YYYY-MM-DD: "yesterday" is not a time like 2026-05-11T20:23:04Z`},
		{"no such day", `{"name":"x","when":"2026-02-30"}`, `when must be RFC3339 or YYYY-MM-DD: "2026-02-30" is not a day`},
		{"time without zone", `{"name":"x","when":"2026-02-03T04:05:06"}`, `when must be RFC3339 or YYYY-MM-DD: "2026-02-03T04:05:06" is not a time like 2026-05-11T20:23:04Z`},
		{"long value is cut", `{"name":["` + string(make([]byte, 0)) + `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]}`, `name must be a string, got an array`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sample
			err := s.fields().Decode(json.RawMessage(c.arguments))
			if err == nil {
				t.Fatalf("accepted, want %q", c.want)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("message (-want +got)\n%s", diff)
			}
		})
	}
}

func TestValues(t *testing.T) {
	day := time.Date(2026, 5, 11, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, arguments string
		want            sample
	}{
		{"defaults", `{"name":" x "}`, sample{Name: "x", Kind: "asc", On: Opt[bool]{Value: true}, Count: Opt[int64]{Value: 3}}},
		{"null means absent", `{"name":"x","maybe":null,"kind":null,"on":null,"count":null,"list":null,"map":null,"values":null,"when":null}`,
			sample{Name: "x", Kind: "asc", On: Opt[bool]{Value: true}, Count: Opt[int64]{Value: 3}}},
		{"everything", `{"name":"x","maybe":"","kind":"desc","on":false,"count":1e1,"list":[" a "],"map":{"k":"v"},"values":{"s":"t","b":true,"i":9007199254740993,"f":1.5,"u":18446744073709551615},"when":"2026-05-11"}`,
			sample{Name: "x", Maybe: Opt[string]{Set: true}, Kind: "desc", On: Opt[bool]{false, true}, Count: Opt[int64]{10, true}, List: Opt[[]string]{[]string{"a"}, true},
				Map: Opt[map[string]string]{map[string]string{"k": "v"}, true}, Values: map[string]any{"s": "t", "b": true, "i": int64(9007199254740993), "f": 1.5, "u": float64(18446744073709551615)},
				When: Opt[time.Time]{day, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sample
			if err := s.fields().Decode(json.RawMessage(c.arguments)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s); diff != "" {
				t.Errorf("values (-want +got)\n%s", diff)
			}
		})
	}
}

// TestSchemaAgrees holds the schema and the decoder against each other: one value
// after the other is put into each field.
func TestSchemaAgrees(t *testing.T) {
	schema, err := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(new(sample).fields().Schema("sample")))
	if err != nil {
		t.Fatal(err)
	}
	values := []string{`null`, `true`, `"x"`, `""`, `" "`, `"asc"`, `"12345678901"`, `"2026-05-11"`, `"2026-05-11T20:23:04Z"`, `"2026-05-11T20:23:04.5+02:00"`,
		`"2026-05-11t20:23:04Z"`, `"2026-05-11T25:23:04Z"`, `"2026-13-11"`, `0`, `1`, `10`, `11`, `1.0`, `1.5`, `-1`, `1e1`, `[]`, `["a"]`, `["a","b","c"]`, `[1]`, `[""]`, `[null]`,
		`{}`, `{"k":"v"}`, `{"k":1}`, `{"k":null}`, `{"k":[]}`}
	for _, name := range append(new(sample).fields().Names(), "other") {
		for _, value := range values {
			arguments := `{"name":"x","` + name + `":` + value + `}`
			if name == "name" {
				arguments = `{"name":` + value + `}`
			}
			result, err := schema.Validate(gojsonschema.NewStringLoader(arguments))
			if err != nil {
				t.Fatalf("%s: %v", arguments, err)
			}
			decodeErr := new(sample).fields().Decode(json.RawMessage(arguments))
			if result.Valid() != (decodeErr == nil) {
				t.Errorf("%s: schema says %v (%v), decoder says %v", arguments, result.Valid(), result.Errors(), decodeErr)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"run_id", "run_ids", "timeout_seconds", "workflow"}
	for name, want := range map[string]string{
		"runid": "run_id", "RunIds": "run_ids", "timeout": "timeout_seconds", "wrokflow": "workflow", "workflows": "workflow", "id": "run_id", "xyz": "", "": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
