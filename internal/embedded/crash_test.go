package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fabro-mcp/fabroapi/wire"
)

// crashGraph has commands that a kill may hit, and two gates, one after the other. Each command notes its process in the file pids.
const crashGraph = `digraph Crash { graph [goal="Survive"] start [shape=Mdiamond] exit [shape=Msquare]
	one [shape=parallelogram, script="echo $$ >> pids; sleep 0.05; echo one"]
	ask [shape=hexagon, label="First?"] two [shape=parallelogram, script="echo $$ >> pids; sleep 0.1; echo two"]
	again [shape=hexagon, label="Second?"] three [shape=parallelogram, script="echo $$ >> pids; sleep 30 >/dev/null 2>&1 & echo $! >> pids; echo three"]
	start -> one -> ask  ask -> two [label="[Y] Yes"]  ask -> one [label="[N] No"]
	two -> again  again -> three [label="[Y] Yes"]  again -> two [label="[N] No"]  three -> exit }`

// The server is killed at random moments while many runs go on. Nothing that it acknowledged may be lost or happen twice.
func TestKilledAtRandomMoments(t *testing.T) {
	needsUnix(t)
	total, together := 12, 6
	if os.Getenv("FABRO_LONG") != "" {
		total, together = 200, 10
	}
	c := &crash{site: newSite(t), acked: map[string]*ackedRun{}}
	c.settings("[runs]\nmax_concurrent = 10\n")
	c.connect()
	stop, killed := make(chan struct{}), make(chan struct{})
	go c.killer(stop, killed)
	work := make(chan int)
	var wg sync.WaitGroup
	for range together {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range work {
				c.one()
			}
		}()
	}
	for i := range total {
		work <- i
	}
	close(work)
	wg.Wait()
	close(stop)
	<-killed
	c.check()
	t.Logf("%d runs, %d kills, %d answers acknowledged, %d runs resumed", len(c.acked), c.kills, c.answers, c.resumes)
}

// crash is what the clients of the test know to be so, because the server said so.
type crash struct {
	*site
	life sync.RWMutex // held for writing while the server is killed and restarted

	progress atomic.Int64 // checkpoints seen since the last kill

	mu      sync.Mutex
	acked   map[string]*ackedRun
	kills   int
	answers int
	resumes int
}

type ackedRun struct {
	events  map[int64]string // sequence number → event id
	answers []string         // question ids
}

// killer kills the server again and again, and looks each time whether it left processes behind.
func (c *crash) killer(stop, done chan struct{}) {
	defer close(done)
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rand.IntN(150)) * time.Millisecond):
		}
		// However slow the machine is, every life gets something done.
		for want := rand.IntN(8); c.progress.Load() < int64(want); {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
		c.life.Lock()
		if rec := c.cfg.readRecord(); rec != nil {
			p, _ := os.FindProcess(rec.PID)
			p.Kill()
			if err := c.gone(); err != nil {
				c.t.Error(err)
			}
			before := c.processes()
			if _, err := c.tryConnect(); err != nil {
				c.t.Error(err)
			}
			c.mustEnd(before)
			c.kills++
			c.progress.Store(0)
		}
		c.life.Unlock()
	}
}

// processes are those that commands have noted.
func (c *crash) processes() (pids []int) {
	text, _ := os.ReadFile(filepath.Join(c.cwd, "pids"))
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// mustEnd fails the test when a process goes on living. What was killed may take a moment to be gone.
func (c *crash) mustEnd(pids []int) {
	deadline := time.Now().Add(patience)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				c.t.Errorf("process %d of a killed server's run is alive after the restart", pid)
				break
			}
			c.pause()
		}
	}
}

// alive reports whether a process is one of ours and lives. Elsewhere than on Linux nobody is asked.
func alive(pid int) bool {
	if runtime.GOOS != "linux" {
		return false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(text), "sleep") {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// ask does a request as often as it takes to get an answer.
func (c *crash) ask(method, path string, body any) (status int, text []byte) {
	for {
		c.life.RLock()
		p, err := c.tryConnect()
		if err == nil {
			status, text, err = p.try(method, path, body)
			p.http.CloseIdleConnections()
		}
		c.life.RUnlock()
		if err == nil {
			return status, text
		}
	}
}

// one takes a run through its life.
func (c *crash) one() {
	fail := func(what string, status int, text []byte) {
		c.t.Errorf("%s: status %d: %s", what, status, text)
	}
	status, text := c.ask("POST", "/runs", c.manifest(crashGraph))
	var run wire.Run
	if status != http.StatusCreated || json.Unmarshal(text, &run) != nil {
		fail("create", status, text)
		return
	}
	a := &ackedRun{events: map[int64]string{}}
	c.mu.Lock()
	c.acked[run.ID] = a
	c.mu.Unlock()
	// A start whose answer was lost may have happened.
	if status, text = c.ask("POST", "/runs/"+run.ID+"/start", nil); status != http.StatusOK && status != http.StatusConflict {
		fail("start", status, text)
	}
	for {
		status, text = c.ask("GET", "/runs/"+run.ID+"/events?limit=1000", nil)
		var page wire.List[wire.EventEnvelope]
		if status != http.StatusOK || json.Unmarshal(text, &page) != nil {
			fail("events", status, text)
			return
		}
		for _, e := range page.Data {
			if id, seen := a.events[e.Seq]; seen && id != e.ID {
				c.t.Errorf("run %s: event %d was %s and is now %s", run.ID, e.Seq, id, e.ID)
			}
			if a.events[e.Seq] == "" && e.Event == "checkpoint.completed" {
				c.progress.Add(1)
			}
			a.events[e.Seq] = e.ID
		}
		if status, text = c.ask("GET", "/runs/"+run.ID, nil); status != http.StatusOK || json.Unmarshal(text, &run) != nil {
			fail("get", status, text)
			return
		}
		switch run.Lifecycle.Status.Kind {
		case wire.StatusSucceeded:
			return
		case wire.StatusFailed:
			if run.Lifecycle.Status.Reason != wire.FailedTerminated {
				c.t.Errorf("run %s ended as %s: %+v", run.ID, run.Lifecycle.Status, run.Lifecycle.Error)
				return
			}
			status, text = c.ask("POST", "/runs/"+run.ID+"/start", `{"resume":true}`)
			if status == http.StatusConflict && strings.Contains(string(text), "no checkpoint to resume from") {
				return // it ended before it had begun
			}
			if status != http.StatusOK && status != http.StatusConflict {
				fail("resume", status, text)
				return
			}
			c.mu.Lock()
			c.resumes++
			c.mu.Unlock()
		case wire.StatusBlocked:
			status, text = c.ask("GET", "/runs/"+run.ID+"/questions", nil)
			var list wire.List[wire.Question]
			if status != http.StatusOK || json.Unmarshal(text, &list) != nil {
				fail("questions", status, text)
				return
			}
			for _, q := range list.Data {
				status, text = c.ask("POST", "/runs/"+run.ID+"/questions/"+q.ID+"/answer", wire.AnswerOfOption("Y"))
				switch status {
				case http.StatusNoContent:
					a.answers = append(a.answers, q.ID)
					c.mu.Lock()
					c.answers++
					c.mu.Unlock()
				case http.StatusConflict, http.StatusServiceUnavailable: // its run was closed meanwhile, or an answer was lost on its way back
				default:
					fail("answer", status, text)
				}
			}
		default:
			c.pause()
		}
	}
}

// pause lets others do something before the next look.
func (c *crash) pause() { <-time.After(5 * time.Millisecond) }

// check compares what the server holds with what it said.
func (c *crash) check() {
	p := c.connect()
	for id, a := range c.acked {
		done := map[string]int{}
		log := p.log(id)
		byseq := map[int64]string{}
		for _, e := range log {
			byseq[e.Seq] = e.ID
			if e.Event == wire.EventInterviewCompleted {
				var props struct {
					QuestionID string `json:"question_id"`
				}
				if err := json.Unmarshal(e.Properties, &props); err != nil {
					c.t.Error(err)
				}
				done[props.QuestionID]++
			}
		}
		for seq, want := range a.events {
			if byseq[seq] != want {
				c.t.Errorf("run %s: event %d %s is lost", id, seq, want)
			}
		}
		for _, q := range a.answers {
			if done[q] != 1 {
				c.t.Errorf("run %s: the acknowledged answer to %s is there %d times", id, q, done[q])
			}
		}
		for q, n := range done {
			if n > 1 {
				c.t.Errorf("run %s: question %s was answered %d times", id, q, n)
			}
		}
		if run := p.run(id); !run.Lifecycle.Status.Terminal() {
			c.t.Errorf("run %s is %s", id, run.Lifecycle.Status)
		}
	}
	c.stopUndamaged()
}

// One kill, looked at closely: the run in the middle of a command is closed with all its events, its command is gone,
// the run that waited for its turn goes on, and the closed one can be resumed.
func TestKilledOnce(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	s.settings("[runs]\nmax_concurrent = 1\n")
	p := s.connect()
	id := s.start(p, `digraph K { start [shape=Mdiamond] exit [shape=Msquare] first [shape=parallelogram, script="echo first"]
		nap [shape=parallelogram, script="echo $$ > pids; [ -e fast ] || exec sleep 600"] start -> first -> nap -> exit }`)
	p.await(id, "command.started")
	p.follow(id, 1, func(e wire.EventEnvelope) bool { return e.Event == "command.started" && e.NodeID == "nap" })
	waiting := s.start(p, oneCommand)
	if run := p.run(waiting); run.Lifecycle.Status.Kind != wire.StatusRunnable || run.Lifecycle.QueuePosition == nil || *run.Lifecycle.QueuePosition != 1 {
		t.Fatalf("%+v", run.Lifecycle)
	}
	before := p.log(id)
	c := &crash{site: s}
	for len(c.processes()) == 0 {
		c.pause()
	}
	pids := c.processes()
	s.kill()
	p = s.connect()
	c.mustEnd(pids)
	run := p.run(id)
	if run.Lifecycle.Status != (wire.RunStatus{Kind: wire.StatusFailed, Reason: wire.FailedTerminated}) || run.Lifecycle.Error.Message != "Fabro server restarted before the run reached a terminal state." {
		t.Fatalf("%+v %+v", run.Lifecycle.Status, run.Lifecycle.Error)
	}
	after := p.log(id)
	if len(after) != len(before)+1 {
		t.Errorf("%d events before, %d after", len(before), len(after))
	}
	for i, e := range before {
		if after[i].ID != e.ID {
			t.Errorf("event %d is another", e.Seq)
		}
	}
	if run := p.ended(waiting); run.Lifecycle.Status.Kind != wire.StatusSucceeded {
		t.Errorf("%+v", run.Lifecycle)
	}
	if err := os.WriteFile(filepath.Join(s.cwd, "fast"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.call(200, "POST", "/runs/"+id+"/start", `{"resume":true}`, nil)
	p.follow(id, int64(len(after))+1, func(e wire.EventEnvelope) bool { return wire.TerminalEvent(e.Event) })
	if run := p.run(id); run.Lifecycle.Status.Kind != wire.StatusSucceeded {
		t.Fatalf("%+v %+v", run.Lifecycle.Status, run.Lifecycle.Error)
	}
	var stages wire.List[wire.RunStage]
	p.call(200, "GET", "/runs/"+id+"/stages", nil, &stages)
	var ids []string
	for _, st := range stages.Data {
		ids = append(ids, st.ID)
	}
	if got := strings.Join(ids, " "); got != "start@1 first@1 nap@1 nap@2 exit@1" {
		t.Errorf("stages %s", got)
	}
}

// A disk that is full: the run fails and says why as soon as there is room to say it, and the database is sound.
func TestDiskFull(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	// No file of the server may grow beyond this: a full disk that a test can have.
	t.Setenv("FABRO_TEST_FSIZE", "600000")
	p := s.connect()
	id := s.start(p, `digraph F { graph [goal="Fill it", max_node_visits=100000] start [shape=Mdiamond] exit [shape=Msquare] fill [shape=parallelogram, script="head -c 60000 /dev/urandom | base64"]
		start -> fill  fill -> fill [condition="outcome=succeeded"]  fill -> exit }`)
	for {
		status, text, err := p.try("GET", "/runs/"+id, nil)
		if err != nil {
			t.Fatalf("the server died: %v", err)
		}
		if status >= 500 {
			break // even reading needs a little room
		}
		var run wire.Run
		if err := json.Unmarshal(text, &run); err != nil {
			t.Fatal(err)
		}
		if run.Lifecycle.Status.Terminal() {
			if !strings.Contains(run.Lifecycle.Error.Message, "write the run's events: ") && !strings.Contains(run.Lifecycle.Error.Message, "keep the run's output: ") {
				t.Errorf("%+v", run.Lifecycle.Error)
			}
			break
		}
		if strings.Contains(tail(s.cfg.logPath(), 0, 50), "cannot close a run") {
			break // it waits for room
		}
		(&crash{}).pause()
	}
	if err := Stop(context.Background(), s.cfg); err != nil {
		t.Fatal(err)
	}
	// With room again.
	t.Setenv("FABRO_TEST_FSIZE", "")
	p = s.connect()
	run := p.run(id)
	if run.Lifecycle.Status.Kind != wire.StatusFailed {
		t.Fatalf("%+v", run.Lifecycle)
	}
	t.Logf("the run says: %s", run.Lifecycle.Error.Message)
	p.log(id)
	s.stopUndamaged()
}

// A run that fills its log beyond the limit fails and says so.
func TestRunTooLarge(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	s.settings("[runs]\nmax_run_bytes = 50000\n")
	p := s.connect()
	id := s.start(p, `digraph L { graph [max_node_visits=100000] start [shape=Mdiamond] exit [shape=Msquare] loop [shape=parallelogram, script="true"]
		start -> loop  loop -> loop [condition="outcome=succeeded"]  loop -> exit }`)
	run := p.ended(id)
	if run.Lifecycle.Status != (wire.RunStatus{Kind: wire.StatusFailed, Reason: wire.FailedWorkflowError}) || !strings.Contains(run.Lifecycle.Error.Message, "50000 bytes") {
		t.Fatalf("%+v %+v", run.Lifecycle.Status, run.Lifecycle.Error)
	}
}
