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
	return o.among(o.sum(id), id)
}

func (o *openRequests) among(sum uint64, id []byte) *request {
	r := o.bySum[sum]
	for r != nil && !sameID(r.id, id) {
		r = r.same
	}
	return r
}

// add takes a request in, unless another one has its id.
func (o *openRequests) add(r *request) bool {
	return o.addAt(o.sum(r.id), r)
}

func (o *openRequests) addAt(sum uint64, r *request) bool {
	if o.among(sum, r.id) != nil {
		return false
	}
	r.sum, r.same = sum, o.bySum[sum]
	o.bySum[sum] = r
	return true
}

// remove does nothing where the request is not in.
func (o *openRequests) remove(r *request) {
	before := o.bySum[r.sum]
	switch {
	case before == r && r.same == nil:
		delete(o.bySum, r.sum)
	case before == r:
		o.bySum[r.sum] = r.same
	default:
		for before != nil && before.same != r {
			before = before.same
		}
		if before != nil {
			before.same = r.same
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
