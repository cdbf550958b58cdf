package protocol

import (
	"encoding/binary"
	"slices"
	"time"
)

// cursorTTL is how long a cursor can be used.
const cursorTTL = 24 * time.Hour

// appendPage appends the page of a list that the request asks for, and the cursor
// of the next one.
func (r *request) appendPage(b []byte, name string, list *rendered) ([]byte, error) {
	start, err := r.pageStart(list)
	if err != nil {
		return b, err
	}
	size := r.conn.opts.PageSize
	if start == 0 && (size <= 0 || size >= len(list.items)) {
		return keyRaw(b, name, list.all), nil
	}
	end := len(list.items)
	if size > 0 {
		end = min(end, start+size)
	}
	b = append(key(b, name), '[')
	for _, item := range list.items[start:end] {
		b = append(comma(b), item...)
	}
	b = append(b, ']')
	if end < len(list.items) {
		cursor, err := r.sealCursor(end, list.names[end-1])
		if err != nil {
			return b, err
		}
		b = keyString(b, "nextCursor", cursor)
	}
	return b, nil
}

// pageStart finds where the page begins. A cursor holds the name of the last entry
// that was shown, so that entries which come and go do not shift the pages, and
// its place, for when that entry itself has gone.
func (r *request) pageStart(list *rendered) (int, error) {
	raw := r.param("cursor")
	if raw == nil {
		return 0, nil
	}
	cursor, ok := stringValue(raw)
	if !ok {
		return 0, invalidParams("Parameter cursor must be a string")
	}
	plain, err := r.conn.server.Sealer.Open(r.cursorPurpose(), cursor)
	place, n := binary.Uvarint(plain)
	if err != nil || n <= 0 {
		return 0, invalidParams("Invalid cursor: it was not issued for this list, or has expired")
	}
	if i := slices.Index(list.names, string(plain[n:])); i >= 0 {
		return i + 1, nil
	}
	return min(int(place), len(list.items)), nil
}

func (r *request) sealCursor(place int, last string) (string, error) {
	plain := append(binary.AppendUvarint(nil, uint64(place)), last...)
	return r.conn.server.Sealer.Seal(r.cursorPurpose(), plain, cursorTTL)
}

func (r *request) cursorPurpose() string {
	return "cursor\x00" + r.method.name + "\x00" + r.conn.opts.StateScope
}
