package protocol

import (
	"bytes"
	"hash/maphash"
)

// An id is kept as the raw JSON token it came as, and echoed byte for byte.

// validID reports whether a sound value can be a request id: a string, or a number
// in plain integer spelling.
func validID(raw []byte) bool { return isString(raw) || isInteger(raw) }

// idKey turns an id into what it is compared by: numbers by their spelling,
// strings decoded, and never one for the other.
func idKey(raw []byte) string {
	if raw[0] != '"' {
		return string(raw)
	}
	inner := raw[:len(raw)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		return `"` + string(unescape(inner[1:]))
	}
	return string(inner)
}

// sameID compares ids as idKey does.
func sameID(a, b []byte) bool {
	if a[0] != b[0] || a[0] != '"' {
		return bytes.Equal(a, b)
	}
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return bytes.Equal(a, b)
	}
	return idKey(a) == idKey(b)
}

// openRequests finds requests by their ids, without memory for each.
type openRequests struct {
	seed  maphash.Seed
	bySum map[uint64]*request // linked by request.same
}

func newOpenRequests() openRequests {
	return openRequests{seed: maphash.MakeSeed(), bySum: make(map[uint64]*request)}
}

func (o *openRequests) sum(id []byte) uint64 {
	if id[0] == '"' && bytes.IndexByte(id, '\\') >= 0 {
		return maphash.String(o.seed, idKey(id)+`"`)
	}
	return maphash.Bytes(o.seed, id)
}

// find returns the open request of an id, nil where there is none.
func (o *openRequests) find(id []byte) *request {
	if len(o.bySum) == 0 {
		return nil
	}
	r := o.bySum[o.sum(id)]
	for r != nil && !sameID(r.id, id) {
		r = r.same
	}
	return r
}

// add takes a request in, unless another one has its id.
func (o *openRequests) add(r *request) bool {
	r.sum = o.sum(r.id)
	first := o.bySum[r.sum]
	for same := first; same != nil; same = same.same {
		if sameID(same.id, r.id) {
			return false
		}
	}
	r.same = first
	o.bySum[r.sum] = r
	return true
}

// remove does nothing where the request is not in.
func (o *openRequests) remove(r *request) {
	first := o.bySum[r.sum]
	switch {
	case first == r && r.same == nil:
		delete(o.bySum, r.sum)
		return
	case first == r:
		o.bySum[r.sum] = r.same
	}
	for p := first; p != nil; p = p.same {
		if p.same == r {
			p.same = r.same
			break
		}
	}
	r.same = nil
}

func (o *openRequests) all() []*request {
	all := make([]*request, 0, len(o.bySum))
	for _, r := range o.bySum {
		for ; r != nil; r = r.same {
			all = append(all, r)
		}
	}
	return all
}
