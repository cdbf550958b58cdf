package workflow

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Kind tells which field of a Value counts.
type Kind uint8

// The kinds of attribute values. Their order is of no meaning.
const (
	KindString Kind = iota
	KindInteger
	KindFloat
	KindBoolean
	KindDuration
)

func (k Kind) String() string {
	return [...]string{"string", "integer", "float", "boolean", "duration"}[k]
}

// Value is the value of an attribute. Only the field that Kind names is
// meaningful.
type Value struct {
	Kind  Kind
	Bool  bool
	Str   string
	Int   int64
	Float float64
	Dur   time.Duration // never negative
}

// String makes a string value as it is; unlike text read from a file it is not
// looked at for a duration (see textValue).
func String(s string) Value { return Value{Kind: KindString, Str: s} }

// Integer makes an integer value.
func Integer(n int64) Value { return Value{Kind: KindInteger, Int: n} }

// Float makes a floating-point value.
func Float(f float64) Value { return Value{Kind: KindFloat, Float: f} }

// Boolean makes a boolean value.
func Boolean(b bool) Value { return Value{Kind: KindBoolean, Bool: b} }

// Duration makes a duration value.
func Duration(d time.Duration) Value { return Value{Kind: KindDuration, Dur: d} }

// textValue types a string or an identifier of the file, quoted or not: text
// that is a number with a unit and nothing else is a duration, all other text
// stays text. Numbers and booleans in quotes stay text as well, which is why
// `max_retries="5"` has no effect in Fabro.
func textValue(s string) Value {
	if d, ok := parseDuration(s); ok {
		return Duration(d)
	}
	return String(s)
}

var durationUnits = []struct {
	suffix string
	unit   time.Duration
}{
	{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

// parseDuration reads `<unsigned integer><ms|s|m|h|d>`. What is longer than a
// time.Duration can hold (292 years) is cut to that.
func parseDuration(s string) (time.Duration, bool) {
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	if digits == 0 {
		return 0, false
	}
	for _, u := range durationUnits {
		if s[digits:] != u.suffix {
			continue
		}
		n, err := strconv.ParseUint(s[:digits], 10, 64)
		if err != nil {
			return 0, false
		}
		if n > uint64(math.MaxInt64)/uint64(u.unit) {
			return math.MaxInt64, true
		}
		return time.Duration(n) * u.unit, true
	}
	return 0, false
}

// Text is the form a value has in the run context (`graph.<attribute>`) and in
// templates. A duration is a number of milliseconds with the unit: `900000ms`.
func (v Value) Text() string {
	switch v.Kind {
	case KindInteger:
		return strconv.FormatInt(v.Int, 10)
	case KindFloat:
		return strconv.FormatFloat(v.Float, 'f', -1, 64)
	case KindBoolean:
		return strconv.FormatBool(v.Bool)
	case KindDuration:
		return strconv.FormatInt(v.Dur.Milliseconds(), 10) + "ms"
	default:
		return v.Str
	}
}

type wireDuration struct {
	Secs  uint64 `json:"secs"`
	Nanos uint32 `json:"nanos"`
}

// wireFloat keeps the point of whole numbers: `{"Float":1.0}`.
type wireFloat float64

func (f wireFloat) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(f), 0) || math.IsNaN(float64(f)) {
		return []byte("null"), nil
	}
	text := strconv.FormatFloat(float64(f), 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return []byte(text), nil
}

// MarshalJSON writes the wire form of events and state, an object with the kind
// as its only key: `{"String":"x"}`, `{"Duration":{"secs":900,"nanos":0}}`.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.Kind {
	case KindInteger:
		return json.Marshal(map[string]int64{"Integer": v.Int})
	case KindFloat:
		return json.Marshal(map[string]wireFloat{"Float": wireFloat(v.Float)})
	case KindBoolean:
		return json.Marshal(map[string]bool{"Boolean": v.Bool})
	case KindDuration:
		return json.Marshal(map[string]wireDuration{"Duration": {
			Secs: uint64(v.Dur / time.Second), Nanos: uint32(v.Dur % time.Second),
		}})
	default:
		text, err := marshalPlain(v.Str)
		if err != nil {
			return nil, err
		}
		return append(append([]byte(`{"String":`), text...), '}'), nil
	}
}

// UnmarshalJSON reads the wire form.
func (v *Value) UnmarshalJSON(data []byte) error {
	var wire struct {
		String   *string
		Integer  *int64
		Float    *float64
		Boolean  *bool
		Duration *wireDuration
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	switch {
	case wire.String != nil:
		*v = String(*wire.String)
	case wire.Integer != nil:
		*v = Integer(*wire.Integer)
	case wire.Float != nil:
		*v = Float(*wire.Float)
	case wire.Boolean != nil:
		*v = Boolean(*wire.Boolean)
	case wire.Duration != nil:
		const most = uint64(math.MaxInt64 / int64(time.Second))
		secs := min(wire.Duration.Secs, most-1)
		*v = Duration(time.Duration(secs)*time.Second + time.Duration(wire.Duration.Nanos))
	default:
		return fmt.Errorf("attribute value %.60q has none of the known kinds (String, Integer, Float, Boolean, Duration)", data)
	}
	return nil
}
