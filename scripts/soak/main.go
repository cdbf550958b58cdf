// Command soak drives a built server for a long time as a bad host would: bursts,
// cancels at random moments, and a reader that sometimes stops reading. At the end
// every request must have been answered exactly once, or not at all where it was
// cancelled, and the server's memory must not have grown.
//
//	go run ./scripts/soak -requests 1000000 -- bin/mcp-fixture
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	inFlight = 500                    // requests sent and not answered, at the most
	stall    = 200 * time.Millisecond // how long the reader sometimes reads nothing
	patience = 60 * time.Second       // how long nothing may come while something is due
)

func main() {
	requests := flag.Int("requests", 1_000_000, "how many requests")
	seed := flag.Uint64("seed", 1, "of the random choices")
	growth := flag.Float64("growth", 1.5, "memory at the end over memory after a quarter, at the most")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "soak: name the server's command after --")
		os.Exit(2)
	}
	if err := soak(*requests, *seed, *growth, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v\n", err)
		os.Exit(1)
	}
}

// ledger knows what is due and what has come.
type ledger struct {
	mu        sync.Mutex // protects the fields below
	freed     *sync.Cond // an answer came or a cancel was written
	due       map[int]bool
	cancelled map[int]bool // written, and not answered so far
	answered  int
	failure   error
}

func (l *ledger) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		l.failure = err
	}
	l.freed.Broadcast()
}

func soak(requests int, seed uint64, growth float64, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Process.Kill() // fails once it has ended
	l := &ledger{due: map[int]bool{}, cancelled: map[int]bool{}}
	l.freed = sync.NewCond(&l.mu)

	var reader sync.WaitGroup
	reader.Go(func() { l.read(stdout, rand.New(rand.NewPCG(seed, 1))) })
	early, err := l.write(stdin, requests, rand.New(rand.NewPCG(seed, 2)), cmd.Process.Pid)
	if err != nil {
		return err
	}
	late := memory(cmd.Process.Pid)
	if err := stdin.Close(); err != nil {
		return err
	}
	reader.Wait()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("the server: %w", err)
	}
	if l.failure != nil {
		return l.failure
	}
	fmt.Printf("%d requests: %d answered once, %d cancelled and never answered, %d unaccounted for; memory %.1f MiB after a quarter, %.1f MiB at the end\n",
		requests, l.answered, len(l.cancelled), len(l.due), mib(early), mib(late))
	if len(l.due) > 0 {
		return fmt.Errorf("%d requests were never answered", len(l.due))
	}
	if early > 0 && float64(late) > growth*float64(early) {
		return fmt.Errorf("memory grew from %.1f to %.1f MiB", mib(early), mib(late))
	}
	return nil
}

// read checks every frame: whose answer it is, and that it is the first.
func (l *ledger) read(stdout io.Reader, random *rand.Rand) {
	lines := bufio.NewReaderSize(stdout, 1<<16)
	for n := 0; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) || len(line) > 0 {
				l.fail(fmt.Errorf("reading: %w, after %q", err, line))
			}
			return
		}
		var frame struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal(line, &frame); err != nil {
			l.fail(fmt.Errorf("not JSON: %q", line))
			return
		}
		if frame.Method != "" || bytes.Equal(frame.ID, []byte(`"init"`)) {
			continue
		}
		id, err := strconv.Atoi(string(frame.ID))
		l.mu.Lock()
		switch {
		case err != nil:
			l.failure = fmt.Errorf("an answer with the id %s", frame.ID)
		case l.due[id]:
			delete(l.due, id)
			l.answered++
		case l.cancelled[id]:
			// The answer had been written before the cancel was read.
			delete(l.cancelled, id)
			l.answered++
		default:
			l.failure = fmt.Errorf("request %d was answered twice", id)
		}
		l.freed.Broadcast()
		l.mu.Unlock()
		if random.IntN(100_000) == 0 {
			time.Sleep(stall) // a host that reads nothing for a while
		}
	}
}

// write sends the requests and returns the server's memory after a quarter of them.
func (l *ledger) write(stdin io.Writer, requests int, random *rand.Rand, pid int) (early int64, err error) {
	out := bufio.NewWriterSize(stdin, 1<<16)
	fmt.Fprintln(out, `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`)
	fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	burst := 1
	for id := range requests {
		if burst--; burst == 0 {
			burst = 1 + random.IntN(400)
			if err := out.Flush(); err != nil {
				return 0, fmt.Errorf("writing: %w", err)
			}
			if err := l.room(inFlight - burst); err != nil {
				return 0, err
			}
		}
		l.mu.Lock()
		l.due[id] = true
		l.mu.Unlock()
		cancel := -1
		switch random.IntN(20) {
		case 0, 1, 2:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", id)
		case 3:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":"no/such/method","params":{"x":[1,2,3]}}`+"\n", id)
		case 4:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"blob","arguments":{"bytes":%d}}}`+"\n", id, random.IntN(20_000))
		case 5:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"steps","arguments":{"n":5},"_meta":{"progressToken":%d}}}`+"\n", id, id)
		case 6, 7:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow","arguments":{"ms":%d}}}`+"\n", id, random.IntN(20))
			if random.IntN(2) == 0 {
				cancel = id
			}
		default:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q}}}`+"\n", id, strings.Repeat("x", random.IntN(200)))
		}
		if cancel >= 0 {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", cancel)
			l.mu.Lock()
			if l.due[cancel] {
				delete(l.due, cancel)
				l.cancelled[cancel] = true
			}
			l.mu.Unlock()
		}
		if id == requests/4 {
			early = memory(pid)
		}
	}
	if err := out.Flush(); err != nil {
		return 0, fmt.Errorf("writing: %w", err)
	}
	return early, l.room(0)
}

// room waits until no more than n requests are due.
func (l *ledger) room(n int) error {
	alarm := time.AfterFunc(patience, func() {
		l.fail(fmt.Errorf("nothing came for %s while requests were due", patience))
	})
	defer alarm.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.due) > max(n, 0) && l.failure == nil {
		l.freed.Wait()
	}
	return l.failure
}

// memory is the resident size of a process in bytes; 0 where the system does not
// say it in /proc.
func memory(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(kb)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
