package protocol

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
	"unicode/utf8"
)

// The functions of this file append JSON to a buffer. A comma is set where the last
// byte is not an opening bracket, so callers write members in any combination.

// key appends a member name that needs no escaping, and the colon.
func key(b []byte, name string) []byte {
	if last := b[len(b)-1]; last != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// comma separates the elements of an array.
func comma(b []byte) []byte {
	if last := b[len(b)-1]; last != '[' {
		b = append(b, ',')
	}
	return b
}

func keyString(b []byte, name, value string) []byte { return quote(key(b, name), value) }

// keyText is keyString for optional members: nothing for the empty string.
func keyText(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return quote(key(b, name), value)
}

func keyRaw(b []byte, name string, value []byte) []byte { return append(key(b, name), value...) }

func keyInt(b []byte, name string, value int64) []byte {
	return strconv.AppendInt(key(b, name), value, 10)
}

func keyBool(b []byte, name string, value bool) []byte {
	return strconv.AppendBool(key(b, name), value)
}

func keyFloat(b []byte, name string, value float64) []byte {
	b = key(b, name)
	if value == float64(int64(value)) && value < 1<<53 && value > -1<<53 {
		return strconv.AppendInt(b, int64(value), 10)
	}
	return strconv.AppendFloat(b, value, 'g', -1, 64)
}

const hexDigits = "0123456789abcdef"

// quote appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD.
func quote[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		if i = skipPlainASCII(s, i); i >= len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			var buf [utf8.UTFMax]byte
			n := copy(buf[:], s[i:])
			r, size := utf8.DecodeRune(buf[:n])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				i++
				start = i
				continue
			}
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// marshal is json.Marshal without the escaping of HTML.
func marshal(v any) ([]byte, error) {
	m := newMarshaller()
	defer m.free()
	out, err := m.marshal(v)
	return bytes.Clone(out), err
}

// marshaller is a buffer with its encoder, kept for the next one who needs it.
type marshaller struct {
	buf bytes.Buffer
	enc *json.Encoder
}

// maxKeptBuffer bounds the memory of a marshaller that is kept.
const maxKeptBuffer = 64 << 10

var marshallers = sync.Pool{New: func() any {
	m := new(marshaller)
	m.enc = json.NewEncoder(&m.buf)
	m.enc.SetEscapeHTML(false)
	return m
}}

func newMarshaller() *marshaller { return marshallers.Get().(*marshaller) }

// marshal renders a value; the result is valid until free.
func (m *marshaller) marshal(v any) ([]byte, error) {
	m.buf.Reset()
	if err := m.enc.Encode(v); err != nil {
		return nil, err
	}
	return m.buf.Bytes()[:m.buf.Len()-1], nil
}

func (m *marshaller) free() {
	if m.buf.Cap() <= maxKeptBuffer {
		marshallers.Put(m)
	}
}

// compact returns JSON text without the white space between its tokens.
func compact(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// appendError appends the member error of a response.
func appendError(b []byte, e *Error) []byte {
	b = append(key(b, "error"), '{')
	b = keyInt(b, "code", e.Code)
	b = keyString(b, "message", e.Message)
	if e.Data != nil {
		if data, err := marshal(e.Data); err == nil {
			b = keyRaw(b, "data", data)
		}
	}
	return append(b, '}')
}

var nullID = []byte("null")

// appendResponse opens a response line; the caller appends the member result or
// error and closes it with closeLine.
func appendResponse(b, id []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	return append(b, id...)
}

// appendErrorLine appends a whole error response. A nil id is one that could not
// be read, and becomes null as JSON-RPC lays down.
func appendErrorLine(b, id []byte, e *Error) []byte {
	if id == nil {
		id = nullID
	}
	return append(appendError(appendResponse(b, id), e), "}\n"...)
}
