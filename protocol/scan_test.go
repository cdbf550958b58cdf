package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestScan(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	many := func(n int, last string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range n {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		return b.String() + `"` + last + `":0}`
	}
	for _, c := range []struct {
		name, in string
		want     verdict
	}{
		{"empty", "", scanSyntax}, {"space", " ", scanSyntax}, {"object", "{}", scanOK}, {"array", " [ 1 , 2 ] ", scanOK}, {"two values", "{} {}", scanSyntax},
		{"trailing comma", `{"a":1,}`, scanSyntax}, {"trailing comma in array", `[1,]`, scanSyntax}, {"single quotes", `{'a':1}`, scanSyntax}, {"comment", `{}//`, scanSyntax},
		{"bare key", `{a:1}`, scanSyntax}, {"number key", `{1:1}`, scanSyntax}, {"no colon", `{"a" 1}`, scanSyntax}, {"mismatch", `{"a":[}]`, scanSyntax}, {"unclosed", `{"a":`, scanSyntax},
		{"leading zero", "01", scanSyntax}, {"plus", "+1", scanSyntax}, {"point", "1.", scanSyntax}, {"bare point", ".5", scanSyntax}, {"exponent", "1e", scanSyntax}, {"hex", "0x1", scanSyntax}, {"NaN", "NaN", scanSyntax},
		{"numbers", "[0,-0,1.5,-2e+10,3E-7]", scanOK}, {"literals", "[true,false,null]", scanOK}, {"wrong case", "True", scanSyntax}, {"cut literal", "tru", scanSyntax},
		{"control", "\"\x01\"", scanSyntax}, {"NUL", "\"\x00\"", scanSyntax}, {"tab", "\"\t\"", scanSyntax}, {"escapes", `"\"\\\/\b\f\n\r\t\u00e9"`, scanOK}, {"bad escape", `"\x"`, scanSyntax}, {"short escape", `"\u12"`, scanSyntax},
		{"lone surrogate", `"\ud800"`, scanOK}, {"no UTF-8", "\"\xff\"", scanSyntax}, {"surrogate in UTF-8", "\"\xed\xa0\x80\"", scanSyntax},
		{"duplicate", `{"a":1,"a":2}`, scanDuplicate}, {"duplicate, spelled apart", `{"a":1,"\u0061":2}`, scanDuplicate}, {"duplicate below", `{"x":[{"a":1,"b":2,"a":3}]}`, scanDuplicate},
		{"same name in two objects", `[{"a":1},{"a":2}]`, scanOK}, {"case", `{"a":1,"A":2}`, scanOK}, {"many", many(100, "last"), scanOK}, {"many, one twice", many(100, "k57"), scanDuplicate},
		{"syntax before duplicate", `{"a":1,"a":2`, scanSyntax},
		{"deep enough", deep(1000), scanOK}, {"too deep", deep(1001), scanDepth}, {"far too deep", deep(200_000), scanDepth}, {"deep and broken", strings.Repeat("[", 5000), scanSyntax},
		{"deep objects", strings.Repeat(`{"a":`, 1500) + "1" + strings.Repeat("}", 1500), scanDepth},
	} {
		var s scanner
		if got := s.scan([]byte(c.in), nil, nil); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// TestScanIsNotQuadratic would take minutes if duplicates were looked for pair by
// pair.
func TestScanIsNotQuadratic(t *testing.T) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range 100_000 {
		fmt.Fprintf(&b, `"%d":0,`, i)
	}
	b.WriteString(`"x":0}`)
	var s scanner
	if got := s.scan(b.Bytes(), nil, nil); got != scanOK {
		t.Errorf("got %d", got)
	}
}

func TestMembers(t *testing.T) {
	in := []byte(` { "a" : [1, {"b":"]}"}] , "q\"\\" : "x\\" , "\u0063":{} , "d":-1.5e3 } `)
	var s scanner
	want := map[string]string{"a": `[1, {"b":"]}"}]`, `q"\`: `"x\\"`, "c": "{}", "d": "-1.5e3"}
	top, again := map[string]string{}, map[string]string{}
	if got := s.scan(in, func(n, v []byte) { top[string(n)] = string(v) }, nil); got != scanOK {
		t.Fatal(got)
	}
	members(in, func(n, v []byte) bool { again[string(n)] = string(v); return true })
	if diff := cmp.Diff(want, top); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Error(diff)
	}
}

func TestIDs(t *testing.T) {
	for raw, want := range map[string]bool{`1`: true, `-1`: true, `0`: true, `-0`: true, `12345678901234567890123`: true, `""`: true, `"a"`: true, `1.0`: false, `1e3`: false, `null`: false, `true`: false, `{}`: false, `[]`: false} {
		if got := validID([]byte(raw)); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
	same := func(a, b string) bool { return idKey([]byte(a)) == idKey([]byte(b)) }
	if !same(`"a"`, `"\u0061"`) || same(`1`, `"1"`) || same(`9007199254740992`, `9007199254740993`) || same(`""`, `0`) {
		t.Error("ids are not compared as they should be")
	}
}

// FuzzEnvelope holds the scanner against encoding/json, and what is read out of a
// sound object against a decoded map.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"a\ud83d\ude00","method":"x","params":{"_meta":{"progressToken":0}}}`, `[]`, `[{"a":[1,2,{"b":null}]}]`,
		`{"a":1,"a":2}`, `{"":{"":""}}`, `"\ud800"`, `1e400`, `{"a":"\\"}`, "\xef\xbb\xbf{}", `{"id":-0,"result":{}}`, `{"k\u0065y":1,"key":2}`, ` { } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var s scanner
		got := map[string]string{}
		v := s.scan(in, func(n, v []byte) { got[string(n)] = string(v) }, nil)
		valid := json.Valid(in) && utf8.Valid(in)
		if valid != (v != scanSyntax) {
			t.Fatalf("encoding/json says %v, the scanner %d", valid, v)
		}
		if v != scanOK {
			return
		}
		if twice := repeats(in); twice {
			t.Fatal("a name occurs twice and the scanner did not see it")
		}
		again := map[string]string{}
		members(in[skipSpace(in, 0):], func(n, v []byte) bool { again[string(n)] = string(v); return true })
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatal(diff)
		}
		var decoded map[string]json.RawMessage
		if json.Unmarshal(in, &decoded) == nil && decoded != nil {
			want := map[string]string{}
			for n, v := range decoded {
				want[n] = string(v)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		}
		// Brought to its canonical form it means the same, and stays as it is.
		one := canonical(nil, trimSpace(in))
		if two := canonical(nil, one); !bytes.Equal(one, two) {
			t.Fatalf("canonical: %s, then %s", one, two)
		}
		var a, b any
		decode := func(in []byte, v *any) {
			dec := json.NewDecoder(bytes.NewReader(in))
			dec.UseNumber()
			if err := dec.Decode(v); err != nil {
				t.Fatal(err)
			}
		}
		decode(in, &a)
		decode(one, &b)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("canonical form: %s", diff)
		}
	})
}

// repeats looks for a repeated name with encoding/json's own tokens.
func repeats(in []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(in))
	type level struct {
		names  map[string]bool
		object bool
		key    bool
	}
	var stack []level
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			return false
		}
		if err != nil {
			return false
		}
		if d, ok := tok.(json.Delim); ok {
			switch d {
			case '{', '[':
				stack = append(stack, level{names: map[string]bool{}, object: d == '{', key: true})
				continue
			default:
				stack = stack[:len(stack)-1]
			}
		} else if n := len(stack); n > 0 && stack[n-1].object && stack[n-1].key {
			name := tok.(string)
			if stack[n-1].names[name] {
				return true
			}
			stack[n-1].names[name], stack[n-1].key = true, false
			continue
		}
		if n := len(stack); n > 0 {
			stack[n-1].key = true
		}
	}
}

// TestOfficialExamples: every official example message is sound, and comes out of
// decoding and encoding as it went in. TestExamplesThroughTheEngine takes them through
// the engine's values.
func TestOfficialExamples(t *testing.T) {
	root := os.Getenv("FABRO_REFERENCE_DATA")
	if root == "" {
		t.Skip("FABRO_REFERENCE_DATA is not set: the official examples are not there")
	}
	count := 0
	err := filepath.Walk(filepath.Join(root, "data/mcp-schema/2026-07-28/examples"), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		count++
		var s scanner
		var e envelope
		if v := s.scan(raw, e.set, nil); v != scanOK {
			t.Errorf("%s: verdict %d", path, v)
			return nil
		}
		var before, after any
		if err := json.Unmarshal(raw, &before); err != nil {
			return err
		}
		if err := json.Unmarshal(canonical(nil, trimSpace(raw)), &after); err != nil {
			return err
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
		if e.jsonrpc != nil && e.method != nil && e.fault() != nil {
			t.Errorf("%s: %v", path, e.fault())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count == 0 {
		t.Error("there are no examples")
	}
}
