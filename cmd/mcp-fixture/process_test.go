package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// waitLimit bounds every wait; it only matters when something is wrong.
const waitLimit = time.Minute

// process is the fixture as a process of its own: this test binary, run again.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *os.File // read end of its standard output
	lines  chan string
	exited chan struct{}

	mu     sync.Mutex // protects the fields below
	stderr bytes.Buffer
	raw    bytes.Buffer // everything on standard output
}

type startOptions struct {
	program string // this test binary where empty
	args    []string
	env     []string // replaces the environment where not nil
	dir     string
	quiet   bool // nobody reads standard output
	deaf    bool // nobody reads standard error
}

func start(t *testing.T, o startOptions) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if o.program != "" {
		exe = o.program
	}
	p := &process{t: t, cmd: exec.Command(exe, o.args...), lines: make(chan string, 100_000), exited: make(chan struct{})}
	p.cmd.Dir = o.dir
	if o.env == nil {
		o.env = os.Environ()
	}
	p.cmd.Env = append(o.env, childVariable+"=1")
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr, p.in, p.out = inR, outW, errW, inW, outR
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inR.Close()
	outW.Close()
	errW.Close()
	var readers sync.WaitGroup
	if !o.deaf {
		readers.Go(func() {
			io.Copy(lockedWriter{&p.mu, &p.stderr}, errR)
			errR.Close()
		})
	} else {
		t.Cleanup(func() { errR.Close() })
	}
	if !o.quiet {
		readers.Go(p.read)
	}
	go func() {
		p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		inW.Close()
		p.cmd.Process.Kill()
		<-p.exited
		readers.Wait()
		outR.Close()
	})
	return p
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// read passes whole lines on and keeps every byte.
func (p *process) read() {
	defer close(p.lines)
	r := bufio.NewReaderSize(io.TeeReader(p.out, lockedWriter{&p.mu, &p.raw}), 1<<20)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			if line != "" {
				p.lines <- "PARTIAL: " + line
			}
			return
		}
		p.lines <- strings.TrimSuffix(line, "\n")
	}
}

func (p *process) write(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) send(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		p.write(l + "\n")
	}
}

func (p *process) next() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatalf("standard output is closed; standard error: %s", p.errors())
		}
		return line
	case <-time.After(waitLimit):
		p.t.Fatal("no line from the server")
	}
	return ""
}

type response struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	line string
}

func parse(t *testing.T, line string) response {
	t.Helper()
	var r response
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatalf("no message: %.300q: %v", line, err)
	}
	r.line = line
	return r
}

// answer returns the response to an id, dropping what comes before.
func (p *process) answer(id string) response {
	p.t.Helper()
	for {
		if r := parse(p.t, p.next()); r.Method == "" && string(r.ID) == id {
			return r
		}
	}
}

// call sends a request and returns its response.
func (p *process) call(id, method, params string) response {
	p.t.Helper()
	p.send(req(id, method, params))
	return p.answer(id)
}

func (p *process) tool(id, name, args string) response {
	p.t.Helper()
	return p.call(id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
}

func (p *process) open(version string) {
	p.t.Helper()
	if r := p.call(`"open"`, "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"elicitation":{},"sampling":{},"roots":{}},"clientInfo":{"name":"t","version":"0"}}`, version)); r.Error != nil {
		p.t.Fatalf("initialize: %s", r.line)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// quiet checks that nothing but the answer to a new request is on its way.
func (p *process) quiet() {
	p.t.Helper()
	p.send(req(`"witness"`, "no/such/method", ""))
	if line := p.next(); !strings.Contains(line, `"witness"`) {
		p.t.Errorf("unexpected: %.300s", line)
	}
}

// exit waits for the end and returns the exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(waitLimit):
		p.t.Fatal("the process does not end")
	}
	return -1
}

func (p *process) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw.String()
}

func req(id, method, params string) string {
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q%s}`, id, method, params)
}

func modern(id, method, members string) string {
	if members != "" {
		members += ","
	}
	return req(id, method, `{`+members+`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`)
}

// TestReplacedWhileRunning: when the program's file is replaced the process finishes
// what it has begun and ends with status 0.
func TestReplacedWhileRunning(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fixture")
	for _, name := range []string{path, path + ".new"} {
		if err := os.WriteFile(name, program, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, startOptions{program: path, args: []string{"--watch-executable"}})
	p.open("2025-11-25")
	p.send(modern("1", "subscriptions/listen", `"notifications":{}`))
	p.next()
	if err := os.Rename(path+".new", path); err != nil {
		t.Skipf("a running program cannot be replaced here: %v", err)
	}
	p.answer("1") // the listen is closed in order
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestSignals: SIGTERM and SIGINT end the process with status 0 while a call runs,
// and the call gets its reply.
func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals")
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := start(t, startOptions{})
		p.open("2025-11-25")
		p.send(req("1", "tools/call", `{"name":"hang","arguments":{}}`), req("2", "ping", ""))
		p.answer("2")
		p.cmd.Process.Signal(signal)
		if r := p.answer("1"); r.Error == nil {
			t.Errorf("%v: %s", signal, r.line)
		}
		if code := p.exit(); code != 0 {
			t.Errorf("%v: exit code %d", signal, code)
		}
	}
}
