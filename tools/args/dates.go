package args

import (
	"encoding/json"
	"strings"
	"time"
)

// datePattern says in a schema what ParseDate takes; only the length of a month
// is beyond it.
const datePattern = `^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))?$`

// DateType is a point in time: RFC 3339, or a day, which means its first moment
// in UTC.
type DateType struct{ to *Opt[time.Time] }

// Date is an optional point in time.
func Date(to *Opt[time.Time]) *DateType { return &DateType{to} }

func (t *DateType) Schema(b []byte, nullable bool) []byte {
	b = typeKeyword(b, "string", nullable)
	b = append(b, `,"pattern":"`...)
	b = append(b, datePattern...)
	return append(b, '"')
}

func (t *DateType) Decode(at string, value json.RawMessage) error {
	s, err := decodeString(at, value)
	if err != nil {
		return err
	}
	when, err := parseDate(s)
	if err != nil {
		return Errorf("%s must be RFC3339 or YYYY-MM-DD: %v", at, err)
	}
	*t.to = Opt[time.Time]{when, true}
	return nil
}

func (t *DateType) Finish(string) error { return nil }

func parseDate(s string) (time.Time, error) {
	if len(s) == len(time.DateOnly) {
		when, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return when, Errorf("%q is not a day", s)
		}
		return when, nil
	}
	when, err := time.Parse(time.RFC3339, s)
	if err != nil || strings.Contains(s, ",") { // a decimal comma is ISO 8601, not RFC 3339
		return when, Errorf("%q is not a time like 2026-05-11T20:23:04Z", s)
	}
	return when.UTC(), nil
}
