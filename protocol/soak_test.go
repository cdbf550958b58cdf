package protocol_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"fabro-mcp/protocol"
	"fabro-mcp/transport"
)

var soak = flag.Int("soak", 20_000, "how many requests TestSoak makes")

// slowReader lets the host read in uneven pieces.
type slowReader struct {
	r io.Reader
	n int
}

func (s *slowReader) Read(p []byte) (int, error) {
	if s.n++; s.n%16 == 0 {
		p = p[:min(len(p), 100)]
	}
	for range s.n % 7 {
		runtime.Gosched()
	}
	return s.r.Read(p)
}

// TestSoak makes many requests in bursts of changing size, cancels some of them,
// reads slowly at times, and checks that each is answered exactly once, or, when it
// was cancelled, at most once, and that memory does not grow.
func TestSoak(t *testing.T) {
	f := newFullServer()
	f.Options.MaxHandlers, f.Options.MaxQueued = 16, 1<<20
	f.SetTools(append(f.Tools, protocol.Tool{Name: "nap", InputSchema: anyObject, Call: func(ctx context.Context, _ *protocol.ToolCall) (*protocol.ToolResult, error) {
		timer := time.NewTimer(200 * time.Microsecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		return &protocol.ToolResult{}, nil
	}}))
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- f.Serve(context.Background(), transport.NewLineStream(inR, outW, transport.OnClose(outW)))
	}()
	total := *soak
	const answered, cancelled = 1, 2
	state := make([]atomic.Uint32, total)
	inFlight := make(chan struct{}, 500)
	random := rand.New(rand.NewPCG(1, uint64(total)))
	go func() {
		defer inW.Close()
		var burst bytes.Buffer
		for i := range total {
			select {
			case inFlight <- struct{}{}:
			default: // nothing more fits: what was gathered has to go out first
				inW.Write(burst.Bytes())
				burst.Reset()
				inFlight <- struct{}{}
			}
			id := fmt.Sprint(i)
			switch random.IntN(8) {
			case 0:
				burst.WriteString(modern(id, "tools/list", ""))
			case 1:
				burst.WriteString(modern(id, "tools/call", `"name":"nap"`))
			case 2:
				burst.WriteString(modern(id, "no/such/method", ""))
			case 3:
				burst.WriteString(modern(id, "resources/read", `"uri":"test://a"`))
			default:
				burst.WriteString(modern(id, "tools/call", `"name":"echo","arguments":{"text":"`+id+`"}`))
			}
			burst.WriteByte('\n')
			if random.IntN(20) == 0 {
				state[i].Or(cancelled)
				fmt.Fprintf(&burst, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", i)
				<-inFlight // it may never be answered
			}
			if random.IntN(64) == 0 {
				inW.Write(burst.Bytes())
				burst.Reset()
			}
		}
		inW.Write(burst.Bytes())
	}()
	host := transport.NewLineStream(&slowReader{r: outR}, io.Discard)
	var early, late runtime.MemStats
	for n := 0; ; n++ {
		frame, err := host.ReadFrame()
		if err != nil {
			break
		}
		var m struct{ ID int }
		if err := json.Unmarshal(frame, &m); err != nil {
			t.Fatalf("%s: %v", frame, err)
		}
		before := state[m.ID].Or(answered)
		if before&answered != 0 {
			t.Fatalf("a second answer: %s", frame)
		}
		if before&cancelled == 0 {
			<-inFlight
		}
		if n == total/5 {
			runtime.GC()
			runtime.ReadMemStats(&early)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&late)
	for i := range state {
		if state[i].Load() == 0 {
			t.Errorf("no answer for %d", i)
		}
	}
	grown := int64(late.HeapAlloc) - int64(early.HeapAlloc)
	t.Logf("%d requests; the heap is %d KiB larger than after a fifth of them", total, grown/1024)
	if grown > 8<<20 {
		t.Errorf("the heap has grown by %d KiB", grown/1024)
	}
}
