package protocol

import (
	"math"
	"time"
)

// At most so many progress notifications go out at once, then one each interval.
const (
	progressBurst    = 10
	progressInterval = 50 * time.Millisecond
)

type progressState struct {
	rate    bucket
	started bool
	last    float64 // the last value that was sent
	held    bool    // a later value was not sent for the rate's sake
	value   float64
	total   float64
	message string
}

// HasProgress reports whether the peer asked to be told of progress.
func (x *Exchange) HasProgress() bool {
	return x.request.meta.progressToken != nil && (!x.detached() || x.request.rev.has(featCoreTasks))
}

// Progress tells the peer how far the work is: progress of total, zero or less for
// an unknown total, in any unit. Values that do not grow are dropped, values that
// come too fast are held back; the last one held goes out before the reply.
func (x *Exchange) Progress(progress, total float64, message string) {
	if !x.HasProgress() || math.IsNaN(progress) || math.IsInf(progress, 0) || math.IsNaN(total) || math.IsInf(total, 0) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.progress == nil {
		x.progress = new(progressState)
	}
	p := x.progress
	if x.ended || p.started && progress <= p.last || p.held && progress <= p.value {
		return
	}
	p.value, p.total, p.message = progress, total, message
	if p.held = !p.rate.take(time.Now(), progressBurst, progressInterval); !p.held {
		x.sendProgressLocked()
	}
}

// flush sends what was held back.
func (x *Exchange) flush() {
	if !x.HasProgress() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.progress != nil && x.progress.held {
		x.progress.held = false
		x.sendProgressLocked()
	}
}

func (x *Exchange) sendProgressLocked() {
	r, p := x.request, x.progress
	p.started, p.last = true, p.value
	b := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/progress","params":{`...)
	b = keyRaw(b, "progressToken", r.meta.progressToken)
	b = keyFloat(b, "progress", p.value)
	if p.total > 0 {
		b = keyFloat(b, "total", p.total)
	}
	if r.rev.has(featProgressMessage) {
		b = keyText(b, "message", p.message)
	}
	if x.detached() {
		r = nil // the call is answered, its token lives on with the task
	}
	x.request.conn.out.send(r, append(b, "}}\n"...), false)
}
