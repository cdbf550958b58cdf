package protocol

import (
	"log/slog"
	"time"
)

// Options are limits and settings of a server. The zero value is good.
type Options struct {
	// MaxMessageBytes bounds an incoming message; 0 is 64 MiB. A longer line is
	// skipped and answered with an error.
	MaxMessageBytes int
	// MaxResultBytes bounds an outgoing response; 0 is 10 MiB less a little, what
	// the strictest clients accept. A longer tool result becomes one with isError
	// that says so.
	MaxResultBytes int
	// MaxHandlers is how many handlers work at once; 0 is 64.
	MaxHandlers int
	// MaxWaiting is how many calls of waiting tools, listens and the like may be
	// open besides; 0 is 256.
	MaxWaiting int
	// MaxQueued is how many requests may wait for a handler before more are
	// refused; 0 is 1024.
	MaxQueued int
	// DrainGrace is how long requests may go on after the end of input; 0 is 2 s.
	DrainGrace time.Duration
	// StopGrace is the same after a signal (the end of Serve's context); 0 is
	// 200 ms.
	StopGrace time.Duration
	// PageSize is the number of entries in one page of a list; 0 is no paging.
	PageSize int
	// ListTTL tells modern clients how long they may keep the list of tools or of
	// prompts or the answer to server/discover; 0 is 0: ask again each time. For the
	// lists of resources see [ResourceListCacher].
	ListTTL time.Duration
	// StaticLists says that the lists of tools, prompts and resources never
	// change: listChanged is not declared.
	StaticLists bool
	// StateTTL is how long a requestState may take to come back; 0 is 1 h.
	StateTTL time.Duration
	// StateScope is mixed into what seals are bound to: state sealed for one
	// scope (say, a target server) is refused in another.
	StateScope string
	// Revisions names the revisions that are served; nil is all, see [Revisions].
	Revisions []string
	// Logger takes notes for the person who runs the server; nil drops them. It
	// must never block: see transport.NewLossyWriter.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	set := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	setTime := func(p *time.Duration, v time.Duration) {
		if *p <= 0 {
			*p = v
		}
	}
	set(&o.MaxMessageBytes, 64<<20)
	set(&o.MaxResultBytes, 10<<20-4<<10)
	set(&o.MaxHandlers, 64)
	set(&o.MaxWaiting, 256)
	set(&o.MaxQueued, 1024)
	setTime(&o.DrainGrace, 2*time.Second)
	setTime(&o.StopGrace, 200*time.Millisecond)
	setTime(&o.StateTTL, time.Hour)
	if o.ListTTL < 0 {
		o.ListTTL = 0
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
