package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// sess collects reply lines in the background.
type sess struct {
	p     Peer
	pr    *Proc
	mu    sync.Mutex
	lines []rline
	eof   bool
	total int64 // bytes received
	hwm   int64
}

type rline struct {
	at time.Duration
	b  []byte
	n  int // full length
}

func newSess(p Peer, shake bool) *sess {
	s := &sess{p: p, pr: start(p)}
	t0 := time.Now()
	if shake {
		lb := newLineBuf(s.pr.out, 64<<10, false)
		handshake(p, s.pr, lb)
		// for SDKs that handle notifications/initialized asynchronously
		time.Sleep(30 * time.Millisecond)
	}
	go func() {
		lb := newLineBuf(s.pr.out, 256<<10, false)
		for {
			l, err := lb.next()
			s.mu.Lock()
			if err != nil {
				s.eof = true
				s.mu.Unlock()
				return
			}
			s.total += int64(len(l)) + 1
			keep := l
			if len(keep) > 4096 {
				keep = keep[:4096]
			}
			s.lines = append(s.lines, rline{time.Since(t0), bytes.Clone(keep), len(l)})
			s.mu.Unlock()
		}
	}()
	return s
}

func (s *sess) send(b string) error { return writeAll(s.pr.in, []byte(b)) }

func (s *sess) get() ([]rline, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]rline(nil), s.lines...), s.eof
}

// wait until at least n lines, EOF or the time is over.
func (s *sess) wait(n int, d time.Duration) ([]rline, bool) {
	end := time.Now().Add(d)
	for {
		ls, eof := s.get()
		if len(ls) >= n || eof || time.Now().After(end) {
			return ls, eof
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// alive sends a ping with a fresh id and waits for its reply.
func (s *sess) alive(d time.Duration) (bool, string) {
	if err := s.send(`{"jsonrpc":"2.0","id":"alive-probe","method":"ping"}` + "\n"); err != nil {
		return false, "write: " + err.Error()
	}
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		ls, eof := s.get()
		for _, l := range ls {
			if bytes.Contains(l.b, []byte("alive-probe")) {
				return true, ""
			}
		}
		if eof {
			time.Sleep(30 * time.Millisecond)
			return false, "stdout closed, " + s.pr.exit()
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false, "no reply to ping, " + s.pr.exit()
}

func (s *sess) end() (exit string, took time.Duration) {
	t := time.Now()
	s.pr.closeIn()
	select {
	case <-s.pr.waited:
		exit = s.pr.exit()
	case <-time.After(3 * time.Second):
		exit = "still running 3 s after EOF (killed)"
		s.pr.cmd.Process.Kill()
		<-s.pr.waited
	}
	took = time.Since(t)
	time.Sleep(5 * time.Millisecond)
	s.pr.closeOut()
	return
}

func strs(ls []rline) []string {
	out := []string{}
	for _, l := range ls {
		if bytes.Contains(l.b, []byte("alive-probe")) {
			continue
		}
		out = append(out, trunc(string(l.b), 330))
	}
	return out
}

// brief summarises replies: ok, code numbers, isError.
func brief(ls []rline) string {
	var parts []string
	for _, l := range ls {
		if bytes.Contains(l.b, []byte("alive-probe")) {
			continue
		}
		if l.b[0] == '[' {
			parts = append(parts, "array reply")
			continue
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Error  *struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal(l.b, &m); err != nil {
			if l.n > len(l.b) {
				parts = append(parts, fmt.Sprintf("long line of %d bytes", l.n))
				continue
			}
			parts = append(parts, "INVALID JSON")
			continue
		}
		id := string(m.ID)
		if id == "" {
			id = "absent"
		}
		switch {
		case m.Error != nil:
			parts = append(parts, fmt.Sprintf("%d (id %s)", m.Error.Code, id))
		case m.Method != "":
			parts = append(parts, "sends "+m.Method)
		case bytes.Contains(m.Result, []byte(`"isError":true`)):
			parts = append(parts, fmt.Sprintf("isError (id %s)", id))
		default:
			parts = append(parts, fmt.Sprintf("ok (id %s)", id))
		}
	}
	if len(parts) == 0 {
		return "silent"
	}
	if len(parts) > 4 {
		parts = append(parts[:4], fmt.Sprintf("… %d in all", len(parts)))
	}
	return strings.Join(parts, ", ")
}
