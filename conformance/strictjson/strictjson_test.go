package strictjson

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		text  string
		fault Fault // 0: fine
		value bool  // whether the value is there all the same
	}{
		{`{"a":[1,-2.5e3,"x\u00e9\n\ud83d\ude00",true,false,null]}`, 0, true},
		{" \t1\r\n", 0, true},
		{``, Syntax, false},
		{`01`, Syntax, false},
		{`1 2`, Syntax, false},
		{`{"a":1,}`, Syntax, false},
		{`[1,]`, Syntax, false},
		{`{a:1}`, Syntax, false},
		{"\"a\nb\"", Syntax, false},
		{`"\x"`, Syntax, false},
		{`"abc`, Syntax, false},
		{`tru`, Syntax, false},
		{`1.`, Syntax, false},
		{`1e`, Syntax, false},
		{"\"\xff\"", UTF8, false},
		{"\xef\xbb\xbf{}", BOM, false},
		{`{"a":1,"a":2}`, Duplicate, true},
		{`{"a":1,"\u0061":2}`, Duplicate, true},
		{`"\ud800"`, Surrogate, true},
		{`"\ud800\u0041"`, Surrogate, true},
	} {
		v, err := Parse([]byte(c.text))
		var e *Error
		if errors.As(err, &e); c.fault == 0 && err != nil || c.fault != 0 && (e == nil || e.Fault != c.fault) || (v != nil) != c.value {
			t.Errorf("%q: value %v, error %v; want fault %d", c.text, v != nil, err, c.fault)
		}
	}
}

func TestNumbersKeepTheirSpellingAndCompareByValue(t *testing.T) {
	equal := func(a, b string) bool {
		x, _ := Parse([]byte(a))
		y, _ := Parse([]byte(b))
		return Equal(x, y)
	}
	for _, pair := range [][2]string{{"1", "1.0"}, {"100", "1e2"}, {"-0", "0"}, {`{"a":1,"b":[2]}`, `{"b":[2.0],"a":1}`}, {`"\u0061"`, `"a"`}} {
		if !equal(pair[0], pair[1]) {
			t.Errorf("%s and %s differ", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"9007199254740993", "9007199254740992"}, {`"1"`, "1"}, {"[1,2]", "[2,1]"}, {"1e999999", "1e999998"}, {"null", "false"}} {
		if equal(pair[0], pair[1]) {
			t.Errorf("%s and %s are the same", pair[0], pair[1])
		}
	}
}

// FuzzParse compares with encoding/json: what we take without complaint it
// takes too, and what it refuses we refuse.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5e-3,"\ud83d\ude00"],"b":{}}`))
	f.Add([]byte("\"\xff\""))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data)
		if err == nil && !json.Valid(data) {
			t.Fatalf("taken, but not JSON: %q", data)
		}
		var e *Error
		if errors.As(err, &e) && e.Fault == Syntax && json.Valid(data) {
			t.Fatalf("refused, but JSON: %q: %v", data, err)
		}
		if err == nil {
			if again, err := Parse(v.Raw); err != nil || !Equal(v, again) {
				t.Fatalf("%q kept as %q: %v", data, v.Raw, err)
			}
		}
	})
}
