package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// largeValue is the size in bytes of a context value's JSON above which the value is kept as a blob and the context
// holds a reference to it.
const largeValue = 100 * 1024

// blobScheme begins a reference to a blob; the SHA-256 of its content follows in hex.
const blobScheme = "blob://sha256/"

// A Context is the flat map of values that the stages of a run share. Values are what JSON decodes to (with int64 for
// whole numbers) and are never changed in place, so a copy of the map is a copy of the context. Not safe for concurrent
// use: each branch of a parallel node has its own.
type Context struct {
	values  map[string]any
	changed map[string]struct{} // keys set since the last changes were taken
}

func newContext() *Context {
	return &Context{values: map[string]any{}, changed: map[string]struct{}{}}
}

// fork returns an independent copy with nothing marked as changed.
func (c *Context) fork() *Context {
	return &Context{values: maps.Clone(c.values), changed: map[string]struct{}{}}
}

// Get looks key up as it is; there are no paths into objects.
func (c *Context) Get(key string) (any, bool) {
	v, ok := c.values[key]
	return v, ok
}

func (c *Context) text(key string) string {
	v, _ := c.values[key].(string)
	return v
}

func (c *Context) set(key string, value any) {
	if old, ok := c.values[key]; ok && sameScalar(old, value) {
		return
	}
	c.values[key] = value
	c.changed[key] = struct{}{}
}

func (c *Context) merge(updates map[string]any) {
	for key, value := range updates {
		c.set(key, value)
	}
}

// sameScalar reports whether two values are equal, as far as that is cheap to say.
func sameScalar(a, b any) bool {
	switch a.(type) {
	case nil, string, bool, int64, int, float64:
		return a == b
	}
	return false
}

// take returns the values that changed since the last call, or all of them when whole is set.
func (c *Context) take(whole bool) (map[string]json.RawMessage, error) {
	set := map[string]json.RawMessage{}
	put := func(key string) error {
		raw, err := marshal(c.values[key])
		if err != nil {
			return fmt.Errorf("context value %q: %w", key, err)
		}
		set[key] = raw
		return nil
	}
	if whole {
		for key := range c.values {
			if err := put(key); err != nil {
				return nil, err
			}
		}
	} else {
		for key := range c.changed {
			if err := put(key); err != nil {
				return nil, err
			}
		}
	}
	clear(c.changed)
	return set, nil
}

// reset forgets everything. What is taken next has to be whole.
func (c *Context) reset() {
	clear(c.values)
	clear(c.changed)
}

// difference returns what is new or other in c compared with an earlier state of it.
func (c *Context) difference(before map[string]any) map[string]any {
	changes := map[string]any{}
	for key, value := range c.values {
		old, ok := before[key]
		if ok && sameScalar(old, value) {
			continue
		}
		if ok {
			a, _ := marshal(old)
			b, _ := marshal(value)
			if bytes.Equal(a, b) {
				continue
			}
		}
		changes[key] = value
	}
	return changes
}

// marshal writes JSON without escaping <, > and &, which scripts are full of.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decodeValue is the inverse of marshal for context values: whole numbers become int64, others float64, and a number
// that fits neither stays as it is written.
func decodeValue(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return plainNumbers(v), nil
}

func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(string(v), 64); err == nil {
			return f
		}
		return v
	case map[string]any:
		for key, member := range v {
			v[key] = plainNumbers(member)
		}
	case []any:
		for i, item := range v {
			v[i] = plainNumbers(item)
		}
	}
	return v
}

// blobs keeps texts and large values out of the events, in the journal's blob store.
type blobs struct{ journal Journal }

// putText stores a text as a JSON string and returns the reference.
func (b blobs) putText(ctx context.Context, text string) (string, error) {
	hash, err := b.journal.PutBlob(ctx, quoteText(text))
	if err != nil {
		return "", journalError{err}
	}
	return blobScheme + hash, nil
}

// quoteText writes text, which must be valid UTF-8, as a JSON string with the fewest escapes JSON allows, so that the
// same output has the same hash as in Fabro; it allocates once, outputs being large.
func quoteText(text string) []byte {
	const hex = "0123456789abcdef"
	size := len(text) + 2
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\' || strings.IndexByte("\b\f\n\r\t", c) >= 0:
			size++
		case c < 0x20:
			size += 5
		}
	}
	b := append(make([]byte, 0, size), '"')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= 0x20:
			b = append(b, c)
		default:
			if at := strings.IndexByte("\b\f\n\r\t", c); at >= 0 {
				b = append(b, '\\', "bfnrt"[at])
			} else {
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
		}
	}
	return append(b, '"')
}

// offload replaces the large values of updates by references.
func (b blobs) offload(ctx context.Context, updates map[string]any) error {
	for key, value := range updates {
		if s, ok := value.(string); ok && len(s) < largeValue/6 {
			continue // cannot grow beyond the limit, however it is escaped
		}
		raw, err := marshal(value)
		if err != nil {
			return fmt.Errorf("context value %q: %w", key, err)
		}
		if len(raw) <= largeValue {
			continue
		}
		hash, err := b.journal.PutBlob(ctx, raw)
		if err != nil {
			return journalError{err}
		}
		updates[key] = blobScheme + hash
	}
	return nil
}

// resolve returns the value behind a reference, and any other value as it is.
func (b blobs) resolve(ctx context.Context, value any) (any, error) {
	ref, ok := value.(string)
	if !ok || !strings.HasPrefix(ref, blobScheme) || len(ref) != len(blobScheme)+64 {
		return value, nil
	}
	raw, err := b.journal.Blob(ctx, ref[len(blobScheme):])
	if err != nil {
		return nil, err
	}
	return decodeValue(raw)
}
