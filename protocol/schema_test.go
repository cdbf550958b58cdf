package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestSchemaMessages(t *testing.T) {
	schema := `{"type":"object","properties":{"name":{"type":"string","minLength":2},"tags":{"type":"array","items":{"enum":["a","b"]},"uniqueItems":true},"n":{"type":"integer","minimum":1,"maximum":9},
		"at":{"$ref":"#/$defs/point"}},"required":["name"],"additionalProperties":false,"$defs":{"point":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}}}`
	s, err := compileSchema([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"name":"ab","tags":["a","b"],"n":9,"at":{"x":1.5,"y":0}}`: "",
		`5`:                              "must be object, not the number 5",
		`{}`:                             `needs the property "name"`,
		`{"name":5}`:                     "/name must be string, not the number 5",
		`{"name":"é"}`:                   "/name must have at least 2 characters",
		`{"name":"ab","nmae":1}`:         "/nmae is not a known property; did you mean name?",
		`{"name":"ab","zzz":1}`:          "/zzz is not a known property",
		`{"name":"ab","tags":["a","c"]}`: `/tags/1 must be one of "a", "b", but is "c"`,
		`{"name":"ab","tags":["a","a"]}`: "/tags must not contain the same item twice",
		`{"name":"ab","n":0}`:            "/n must be at least 1, but is 0",
		`{"name":"ab","n":1.5}`:          "/n must be integer, not the number 1.5",
		`{"name":"ab","n":1.0}`:          "",
		`{"name":"ab","at":{}}`:          `/at needs the property "x"`,
	} {
		got := ""
		if err := s.check([]byte(in)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// schemaCases are schemas with values; a full validator says which fit.
var schemaCases = []struct{ schema, values string }{
	{`{"anyOf":[{"type":"string"},{"type":"object","required":["a"]}]}`, `["x",{},{"a":1},5]`},
	{`{"oneOf":[{"type":"integer"},{"type":"number","minimum":2}]}`, `[1,2,2.5,1.5,"x"]`},
	{`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `[{"a":1},{"a":1,"b":2},7]`},
	{`{"not":{"type":"null"}}`, `[null,0,""]`},
	{`{"if":{"properties":{"k":{"const":"a"}},"required":["k"]},"then":{"required":["x"]},"else":{"required":["y"]}}`, `[{"k":"a"},{"k":"a","x":1},{"k":"b"},{"y":1},{}]`},
	{`{"const":{"a":[1,2.0]}}`, `[{"a":[1,2]},{"a":[1.0,2]},{"a":[2,1]}]`},
	{`{"enum":[1,"1",null]}`, `[1,1.0,"1",null,2,"x"]`},
	{`{"type":["string","null"],"maxLength":2}`, `["ab","abc",null,3,"éé"]`},
	{`{"pattern":"^a+$"}`, `["aa","b","",5]`},
	{`{"minProperties":1,"maxProperties":2}`, `[{},{"a":1},{"a":1,"b":2,"c":3},[]]`},
	{`{"propertyNames":{"maxLength":1}}`, `[{"a":1},{"ab":1}]`},
	{`{"patternProperties":{"^x":{"type":"integer"}},"additionalProperties":{"type":"string"}}`, `[{"x1":1},{"x1":"a"},{"y":"a"},{"y":1}]`},
	{`{"prefixItems":[{"type":"integer"},{"type":"string"}],"items":false}`, `[[1,"a"],[1],[1,"a",2],["a"]]`},
	{`{"contains":{"const":3},"minItems":2,"maxItems":3}`, `[[3],[1,3],[1,2],[1,2,3,4]]`},
	{`{"uniqueItems":true}`, `[[1,1.0],[1,"1"],[{"a":1,"b":2},{"b":2,"a":1}],[]]`},
	{`{"multipleOf":0.1}`, `[0.3,0.35,1,"x"]`},
	{`{"exclusiveMinimum":0,"exclusiveMaximum":10}`, `[0,1,9.99,10]`},
	{`{"dependentRequired":{"a":["b"]}}`, `[{"a":1},{"a":1,"b":1},{"b":1}]`},
	{`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"additionalProperties":false}}}`, `[{},{"kids":[{},{"kids":[]}]},{"kids":[{"x":1}]},1]`},
	{`{"properties":{"a/b":{"type":"integer"},"":{"type":"null"}}}`, `[{"a/b":1},{"a/b":"x"},{"":null},{"":1}]`},
	{`{"additionalProperties":false}`, `[{},{"a":1},5]`},
	{`true`, `[1,null,{}]`},
	{`false`, `[1,null,{}]`},
	{`{"type":"integer"}`, `[1,1.0,1e2,1.5,12345678901234567890123,-0]`},
	{`{"minimum":1e3}`, `[999,1000,1e4]`},
	{`{"properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{}},"required":["c","a","z"],"additionalProperties":{"type":"null"}}`,
		`[{"c":1,"b":"x","a":2,"z":null},{"a":1,"c":2,"z":1},{"z":null,"c":[],"a":3},{"a":1,"c":2},{"y":null,"z":null,"a":1,"c":0},{"a":"x","c":0,"z":null}]`},
	manyProperties(20, 20), manyProperties(70, 70), manyProperties(70, 3), manyProperties(16, 1),
}

// manyProperties is a schema with so many integers, some of them required, and
// values that lack one after the other, in two orders.
func manyProperties(n, required int) (c struct{ schema, values string }) {
	var properties, needed, up, down []string
	for i := range n {
		properties = append(properties, fmt.Sprintf(`"p%d":{"type":"integer"}`, i))
		if i < required {
			needed = append(needed, fmt.Sprintf(`"p%d"`, i))
		}
		up = append(up, fmt.Sprintf(`"p%d":%d`, i, i))
		down = append([]string{up[i]}, down...)
	}
	values := []string{"{" + strings.Join(up, ",") + "}", "{" + strings.Join(down, ",") + "}", "{" + strings.Join(append(up, `"q":1`), ",") + "}"}
	for i := range n {
		values = append(values, "{"+strings.Join(slices.Concat(down[:i], down[i+1:]), ",")+"}",
			"{"+strings.Join(slices.Concat(up[:i], []string{fmt.Sprintf(`"p%d":"x"`, i)}, up[i+1:]), ",")+"}")
	}
	c.schema = fmt.Sprintf(`{"properties":{%s},"required":[%s],"additionalProperties":false}`, strings.Join(properties, ","), strings.Join(needed, ","))
	c.values = "[" + strings.Join(values, ",") + "]"
	return c
}

func TestSchemaAgainstFullValidator(t *testing.T) {
	for _, c := range schemaCases {
		ours, err := compileSchema([]byte(c.schema))
		if err != nil {
			t.Fatalf("%s: %v", c.schema, err)
		}
		theirs := compileTheirs(t, c.schema)
		var values []json.RawMessage
		if err := json.Unmarshal([]byte(c.values), &values); err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(v))
			if err != nil {
				t.Fatal(err)
			}
			want := theirs.Validate(value)
			if got := ours.check(v); (got == nil) != (want == nil) {
				t.Errorf("%s on %s: got %v, want %v", v, c.schema, got, want)
			}
		}
	}
}

// hugeNumber finds what would fill the memory of a full validator.
var hugeNumber = regexp.MustCompile(`[0-9][eE][+-]?[0-9]{3}`)

// FuzzSchema holds any value against the schemas of the cases, as a full validator
// does.
func FuzzSchema(f *testing.F) {
	ours, theirs := make([]*schema, len(schemaCases)), make([]*jsonschema.Schema, len(schemaCases))
	for i, c := range schemaCases {
		ours[i], _ = compileSchema([]byte(c.schema))
		theirs[i] = compileTheirs(f, c.schema)
		elements([]byte(c.values), func(v []byte) bool {
			f.Add(uint8(i), v)
			return true
		})
	}
	f.Fuzz(func(t *testing.T, which uint8, v []byte) {
		i := int(which) % len(schemaCases)
		var s scanner
		if s.scan(v, nil, nil) != scanOK || hugeNumber.Match(v) {
			return
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(v))
		if err != nil {
			t.Fatal(err)
		}
		want := theirs[i].Validate(value)
		if got := ours[i].check(v); (got == nil) != (want == nil) {
			t.Errorf("%s on %s: got %v, want %v", v, schemaCases[i].schema, got, want)
		}
	})
}

func compileTheirs(t testing.TB, schema string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///s", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///s")
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

// TestSchemaUnknownParts: what the checker does not know never makes it refuse, nor
// run for ever.
func TestSchemaUnknownParts(t *testing.T) {
	for _, schema := range []string{
		`{"$ref":"https://example.test/remote"}`, `{"$dynamicRef":"#x"}`, `{"format":"email"}`, `{"unevaluatedProperties":false}`, `{"x-own":1}`, `{"pattern":"(?!a)"}`,
		`{"$ref":"#"}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `{"$ref":"#/nowhere"}`, `{"minimum":1e999999999}`,
	} {
		s, err := compileSchema([]byte(schema))
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		for _, v := range []string{`{}`, `"x"`, `1e999999999`, `[[]]`} {
			if err := s.check([]byte(v)); err != nil {
				t.Errorf("%s refuses %s: %v", schema, v, err)
			}
		}
	}
}

func TestFormForOlderPeers(t *testing.T) {
	text := json.RawMessage(`{"type":"object","properties":{
		"plain":{"type":"string","enum":["a","b"],"default":"a"},
		"titled":{"type":"string","title":"T","oneOf":[{"const":"x","title":"The X"},{"const":"y","title":"The Y"}]},
		"legacy":{"type":"string","enum":["p"],"enumNames":["P"]},
		"several":{"type":"array","description":"Pick.","items":{"anyOf":[{"const":"m","title":"M"},{"const":"n","title":"N"}]},"minItems":1},
		"yes":{"type":"boolean","default":true},"n":{"type":"integer","default":3,"minimum":1}},"required":["plain"]}`)
	old := revisions.of("2025-06-18")
	got, err := formSchema(text, old)
	want := `{"type":"object","properties":{"plain":{"type":"string","enum":["a","b"]},"titled":{"type":"string","title":"T","enum":["x","y"],"enumNames":["The X","The Y"]},` +
		`"legacy":{"type":"string","enum":["p"],"enumNames":["P"]},"several":{"type":"string","description":"Pick. Several, with commas between them, of: m, n"},` +
		`"yes":{"type":"boolean","default":true},"n":{"type":"integer","minimum":1}},"required":["plain"]}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
	answer := string(unformed(text, json.RawMessage(`{"action":"accept","content":{"several":"m, n","plain":"a"}}`), old))
	if want := `{"action":"accept","content":{"several":["m","n"],"plain":"a"}}`; answer != want {
		t.Errorf("answer %s", answer)
	}
	if same, _ := formSchema(json.RawMessage(`{"type": "object"}`), revisions.of("2025-11-25")); string(same) != `{"type":"object"}` {
		t.Errorf("newer peers: %s", same)
	}
}
