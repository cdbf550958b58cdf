package args

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// TextType is a string. The zero length is allowed unless it is NotBlank.
type TextType struct {
	set      func(string)
	trim     bool
	notBlank string // message, "" where blank is allowed; "%s" is the path
	maxRunes int
	maxBytes int
	tooLong  string
	choices  []string
	def      string
}

// Text is a required string, or an optional one whose absence equals "".
func Text(to *string) *TextType { return &TextType{set: func(s string) { *to = s }} }

// OptText is a string whose absence differs from "".
func OptText(to *Opt[string]) *TextType {
	return &TextType{set: func(s string) { *to = Opt[string]{s, true} }}
}

// Trimmed drops white space around the value.
func (t *TextType) Trimmed() *TextType { t.trim = true; return t }

// NotBlank refuses a value of white space only. message may be "" for
// "<field> must not be blank".
func (t *TextType) NotBlank(message string) *TextType {
	if message == "" {
		message = "%s must not be blank"
	}
	t.notBlank = message
	return t
}

// Max bounds the length in characters.
func (t *TextType) Max(runes int) *TextType { t.maxRunes = runes; return t }

// MaxBytes bounds the length of the UTF-8 text. The schema, which counts
// characters, can only say the same number.
func (t *TextType) MaxBytes(n int, message string) *TextType {
	t.maxBytes, t.tooLong = n, message
	return t
}

// OneOf lists the only values.
func (t *TextType) OneOf(choices ...string) *TextType { t.choices = choices; return t }

// Default is shown in the schema and stored when the field is absent.
func (t *TextType) Default(s string) *TextType { t.def = s; return t }

func (t *TextType) Schema(b []byte, nullable bool) []byte {
	b = typeKeyword(b, "string", nullable)
	if t.choices != nil {
		b = enumKeyword(b, t.choices, nullable)
	}
	if t.notBlank != "" {
		b = append(b, `,"minLength":1,"pattern":"\\S"`...)
	}
	if n := max(t.maxRunes, t.maxBytes); n > 0 {
		b = append(b, `,"maxLength":`...)
		b = strconv.AppendInt(b, int64(n), 10)
	}
	if t.def != "" {
		b = append(b, `,"default":`...)
		b = quote(b, t.def)
	}
	return b
}

func (t *TextType) Decode(at string, value json.RawMessage) error {
	s, err := decodeString(at, value)
	if err != nil {
		return err
	}
	// JSON Schema counts before trimming, so the limit does too.
	if t.maxRunes > 0 && utf8.RuneCountInString(s) > t.maxRunes {
		return Errorf("%s must be at most %d characters, got %d", at, t.maxRunes, utf8.RuneCountInString(s))
	}
	if t.notBlank != "" && strings.TrimSpace(s) == "" {
		return &Error{Text: strings.ReplaceAll(t.notBlank, "%s", at)}
	}
	if t.trim {
		s = strings.TrimSpace(s)
	}
	if t.maxBytes > 0 && len(s) > t.maxBytes {
		return &Error{Text: t.tooLong}
	}
	if t.choices != nil {
		if err := oneOf(at, s, t.choices); err != nil {
			return err
		}
	}
	t.set(s)
	return nil
}

func (t *TextType) Finish(string) error {
	if t.def != "" {
		t.set(t.def)
	}
	return nil
}

func oneOf(at, s string, choices []string) error {
	for _, c := range choices {
		if s == c {
			return nil
		}
	}
	var near string
	if n := Nearest(s, choices); n != "" {
		near = "; did you mean `" + n + "`?"
	}
	return Errorf("%s must be one of %s, got %q%s", at, ticks(choices), s, near)
}

func ticks(choices []string) string { return "`" + strings.Join(choices, "`, `") + "`" }

func decodeString(at string, value json.RawMessage) (string, error) {
	if kindOf(value) != "string" {
		return "", Errorf("%s must be a string, got %s", at, show(value))
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return "", Errorf("%s is not a valid JSON string: %v", at, err)
	}
	return s, nil
}

// FlagType is a boolean.
type FlagType struct {
	to  *Opt[bool]
	def *bool
}

// Flag is an optional boolean.
func Flag(to *Opt[bool]) *FlagType { return &FlagType{to: to} }

// Default is shown in the schema and stored when the field is absent.
func (t *FlagType) Default(v bool) *FlagType { t.def = &v; return t }

func (t *FlagType) Schema(b []byte, nullable bool) []byte {
	b = typeKeyword(b, "boolean", nullable)
	if t.def != nil {
		b = append(b, `,"default":`...)
		b = strconv.AppendBool(b, *t.def)
	}
	return b
}

func (t *FlagType) Decode(at string, value json.RawMessage) error {
	if kindOf(value) != "boolean" {
		return Errorf("%s must be true or false, got %s", at, show(value))
	}
	var v bool
	if err := json.Unmarshal(value, &v); err != nil {
		return Errorf("%s must be true or false, got %s", at, show(value))
	}
	*t.to = Opt[bool]{v, true}
	return nil
}

func (t *FlagType) Finish(string) error {
	if t.def != nil {
		t.to.Value = *t.def
	}
	return nil
}

// CountType is an integer with bounds.
type CountType struct {
	to       *Opt[int64]
	min, max int64
	def      *int64
}

// Count is an optional integer between min and max.
func Count(to *Opt[int64], min, max int64) *CountType { return &CountType{to: to, min: min, max: max} }

// Default is shown in the schema and stored when the field is absent.
func (t *CountType) Default(v int64) *CountType { t.def = &v; return t }

func (t *CountType) Schema(b []byte, nullable bool) []byte {
	b = typeKeyword(b, "integer", nullable)
	b = append(b, `,"minimum":`...)
	b = strconv.AppendInt(b, t.min, 10)
	b = append(b, `,"maximum":`...)
	b = strconv.AppendInt(b, t.max, 10)
	if t.def != nil {
		b = append(b, `,"default":`...)
		b = strconv.AppendInt(b, *t.def, 10)
	}
	return b
}

func (t *CountType) Decode(at string, value json.RawMessage) error {
	if kindOf(value) != "number" {
		return Errorf("%s must be an integer, got %s", at, show(value))
	}
	text := strings.TrimSpace(string(value))
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(text, 64)
		switch {
		case math.IsInf(f, 1) || f > float64(t.max):
			return Errorf("%s must be <= %d, got %s", at, t.max, show(value))
		case math.IsInf(f, -1) || f < float64(t.min):
			return Errorf("%s must be >= %d, got %s", at, t.min, show(value))
		case ferr != nil || f != math.Trunc(f):
			return Errorf("%s must be an integer, got %s", at, show(value))
		}
		n = int64(f)
	}
	if n > t.max {
		return Errorf("%s must be <= %d, got %d", at, t.max, n)
	}
	if n < t.min {
		return Errorf("%s must be >= %d, got %d", at, t.min, n)
	}
	*t.to = Opt[int64]{n, true}
	return nil
}

func (t *CountType) Finish(string) error {
	if t.def != nil {
		t.to.Value = *t.def
	}
	return nil
}
