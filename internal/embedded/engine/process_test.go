//go:build unix

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// groupGone reports whether no process of the group runs, waiting a little for the system to notice.
func groupGone(t *testing.T, id int) bool {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		members, known := membersOf(id)
		running := 0
		for _, m := range members {
			if !m.ended {
				running++
			}
		}
		if known && running == 0 || !known && syscall.Kill(-id, 0) == syscall.ESRCH {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Logf("group %d: %+v", id, members)
			return false
		}
	}
}

// groupOf reads the process group that a script wrote into a file of its directory.
func groupOf(t *testing.T, dir string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "group"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func outputText(t *testing.T, tr *trial, l line) string {
	t.Helper()
	raw, err := tr.journal.Blob(t.Context(), strings.TrimPrefix(l.Props["output"].(string), blobScheme))
	if err != nil {
		t.Fatal(err)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		t.Fatal(err)
	}
	return text
}

// What a command prints beyond the cap is counted and dropped, but for its end.
func TestCommandPrintsTooMuch(t *testing.T) {
	const cap = 1 << 20
	tr := newTrial(t, frame(`a [script="echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last"] start -> a -> exit`))
	tr.spec.MaxOutput = cap
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result, got := tr.run()
	runtime.ReadMemStats(&after)
	if status(result) != "succeeded(completed)" {
		t.Fatal(status(result))
	}
	completed := only(got, "command.completed")[0]
	if n := completed.Props["output_bytes"]; n != 20000012.0 {
		t.Errorf("output_bytes is %v", n)
	}
	text := outputText(t, tr, completed)
	if len(text) > cap+keptTail+200 || !strings.HasPrefix(text, "first\nxxx") || !strings.HasSuffix(text, "xxx\nlast\n") ||
		!strings.Contains(text, "\n[output capped: 20000012 bytes in all, the first 1048576 above, the last 65536 below]\n") {
		t.Errorf("%d bytes kept, from %.20q to %q", len(text), text, text[len(text)-20:])
	}
	log, err := os.ReadFile(StageLogPath(tr.spec.RunDir, "a@1"))
	if err != nil || string(log) != text {
		t.Errorf("the log has %d bytes, the blob %d (%v)", len(log), len(text), err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 60<<20 {
		t.Errorf("%d MiB were allocated for it", grown>>20)
	}
}

// A command that ignores SIGTERM, and whose children do, gets SIGKILL after the grace.
func TestCommandIgnoresTerm(t *testing.T) {
	tr := newTrial(t, frame(`a [script="echo $$ > group; trap '' TERM; (trap '' TERM; while true; do sleep 0.1; done) & echo ready; while true; do sleep 0.1; done"] start -> a -> exit`))
	tr.start()
	awaitLog(t, tr, "a@1", "ready")
	began := time.Now()
	tr.cancel(ErrCancelled)
	result, _ := tr.wait()
	if took := time.Since(began); took < termGrace {
		t.Errorf("killed after %s, before the grace was over", took)
	}
	if !strings.HasPrefix(status(result), "failed(cancelled)") || !groupGone(t, groupOf(t, tr.spec.Cwd)) {
		t.Errorf("%s, or its processes are still there", status(result))
	}
}

// awaitLog waits until the live log of a stage holds a text.
func awaitLog(t *testing.T, tr *trial, stage, text string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if log, err := os.ReadFile(StageLogPath(tr.spec.RunDir, stage)); err == nil && strings.Contains(string(log), text) {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%s never said %q", stage, text)
		}
	}
}

// A command that closes its output and goes on is waited for.
func TestCommandClosesOutput(t *testing.T) {
	tr := newTrial(t, frame(`a [script="echo before; exec >&- 2>&-; sleep 0.2; touch after; exit 4"] start -> a -> exit`))
	_, got := tr.run()
	completed := only(got, "command.completed")[0]
	if _, err := os.Stat(filepath.Join(tr.spec.Cwd, "after")); err != nil || completed.Props["exit_code"] != 4.0 {
		t.Errorf("%v, %v", completed.Props, err)
	}
	if text := outputText(t, tr, completed); text != "before\n" {
		t.Errorf("the output is %q", text)
	}
}

// What a command leaves running does not hold its stage up, serves later stages, and ends with the run.
func TestCommandLeavesServer(t *testing.T) {
	tr := newTrial(t, frame(`a [script="echo $$ > group; (while true; do sleep 0.05; date +%N > beat; done) & echo started"]
  b [script="rm -f beat; for i in $(seq 100); do sleep 0.1; test -s beat && exit 0; done; exit 1"]
  start -> a -> b
  b -> exit [condition="outcome=succeeded"]
  b -> a`))
	result, got := tr.run()
	if order(got) != "start a b exit" || status(result) != "succeeded(completed)" {
		t.Errorf("%s: %s", order(got), status(result))
	}
	if !groupGone(t, groupOf(t, tr.spec.Cwd)) {
		t.Error("the server outlives the run")
	}
	if _, err := os.Stat(recordPath(tr.spec.RunDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record of processes is left behind: %v", err)
	}
}

// A cancel ends the leader's whole family.
func TestCommandForks(t *testing.T) {
	tr := newTrial(t, frame(`a [script="echo $$ > group; for i in 1 2 3 4 5 6 7 8 9; do (sleep 1000; echo) & done; echo ready; wait"] start -> a -> exit`))
	tr.start()
	awaitLog(t, tr, "a@1", "ready")
	tr.cancel(ErrCancelled)
	tr.wait()
	if !groupGone(t, groupOf(t, tr.spec.Cwd)) {
		t.Error("children are left")
	}
}

// Standard input is empty, or what stdin_source names; a command that does not read it is not held up by it.
func TestCommandInput(t *testing.T) {
	big := strings.Repeat("x", 5<<20)
	tr := newTrial(t, frame(`none [script="wc -c"] emit [script="cat big", output_schema=routing] text [script="wc -c", stdin_source="k"] object [script="cat", stdin_source="o"]
  unread [script="true", stdin_source="k"] missing [script="cat", stdin_source="nowhere"]
  start -> none -> emit -> text -> object -> unread -> missing -> exit`))
	raw, err := marshal(map[string]any{"context_updates": map[string]any{"k": "y", "o": map[string]any{"n": 1, "s": "<&>"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tr.spec.Cwd, "big"), append([]byte(big+"\n"), raw...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, got := tr.run()
	var outputs []string
	for _, l := range only(got, "command.completed") {
		if l.Node != "emit" {
			outputs = append(outputs, l.Node+": "+strings.TrimSpace(outputText(t, tr, l)))
		}
	}
	if diff := cmp.Diff([]string{"none: 0", "text: 1", `object: {"n":1,"s":"<&>"}`, "unread: "}, outputs); diff != "" {
		t.Error(diff)
	}
	failed := only(got, "stage.failed")
	if len(failed) != 1 || failed[0].Node != "missing" {
		t.Errorf("failed: %v", failed)
	}
}

// Commands see the daemon's environment without what looks like a secret, and the environment table over it.
func TestCommandEnvironment(t *testing.T) {
	c := compileText(t, frame(`a [script="env | grep '^TRY_\\|BASH_ENV' | sort; pwd -P"] start -> a -> exit`))
	c.Settings.Environment.Env = map[string]string{"TRY_TABLE": "yes", "TRY_PLAIN": "over", "TRY_TABLE_TOKEN": "no"}
	tr := trialOf(t, c)
	tr.spec.Env = append(tr.spec.Env, "TRY_PLAIN=1", "TRY_API_KEY=x", "TRY_my_secret=x", "TRY_Token=x", "TRY_PASSWORD=x", "TRY_CREDENTIAL=x", "TRY_TOKENS=seen", "BASH_ENV=/dev/null")
	_, got := tr.run()
	dir, err := filepath.EvalSymlinks(tr.spec.Cwd)
	if err != nil {
		t.Fatal(err)
	}
	want := "TRY_PLAIN=over\nTRY_TABLE=yes\nTRY_TOKENS=seen\n" + dir + "\n"
	if diff := cmp.Diff(want, outputText(t, tr, only(got, "command.completed")[0])); diff != "" {
		t.Error(diff)
	}
}

func TestCommandWithoutBash(t *testing.T) {
	tr := newTrial(t, frame(`a [script="true"] start -> a -> exit`))
	tr.spec.Env = []string{"PATH=" + t.TempDir()}
	if result, _ := tr.run(); status(result) != "failed(workflow_error): command stages need bash, which is not to be found in PATH" {
		t.Error(status(result))
	}
}

// Both streams are one, in the order of writing; bytes that are no text are replaced.
func TestCommandOutputMerged(t *testing.T) {
	tr := newTrial(t, frame(`a [script="echo one; echo two >&2; printf '\\377\\n'; echo three"] start -> a -> exit`))
	_, got := tr.run()
	completed := only(got, "command.completed")[0]
	if diff := cmp.Diff("one\ntwo\n\uFFFD\nthree\n", outputText(t, tr, completed)); diff != "" {
		t.Error(diff)
	}
}

// Python scripts are handed to python3 whatever quotes they hold.
func TestCommandPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 on this machine")
	}
	tr := newTrial(t, frame(`a [language=python, script="print('it''s', \"2\" + '3')"] b [language=cobol, script="x"] start -> a -> b -> exit`))
	_, got := tr.run()
	if diff := cmp.Diff("its 23\n", outputText(t, tr, only(got, "command.completed")[0])); diff != "" {
		t.Error(diff)
	}
	if f := only(got, "stage.failed")[0].Props["failure"].(map[string]any); f["message"] != "Invalid language: cobol" {
		t.Error(f)
	}
}

// A log that cannot be written ends the run with a sentence.
func TestCommandLogUnwritable(t *testing.T) {
	tr := newTrial(t, frame(`a [script="true"] start -> a -> exit`))
	if err := os.MkdirAll(filepath.Join(tr.spec.RunDir, "runtime"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tr.spec.RunDir, "runtime", "stages"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if result, _ := tr.run(); !strings.HasPrefix(status(result), "failed(workflow_error): cannot make the stage's log directory") {
		t.Error(status(result))
	}
}

// The settings may name another directory; one of a container is not looked for here, and a notice says where the run is.
func TestWorkingDirectoryOfSettings(t *testing.T) {
	c := compileText(t, frame(`a [script="pwd -P"] start -> a -> exit`))
	c.Settings.WorkingDir = "sub"
	tr := trialOf(t, c)
	if err := os.Mkdir(filepath.Join(tr.spec.Cwd, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, got := tr.run()
	dir, _ := filepath.EvalSymlinks(tr.spec.Cwd)
	if text := outputText(t, tr, only(got, "command.completed")[0]); text != filepath.Join(dir, "sub")+"\n" {
		t.Error(text)
	}
	c = compileText(t, frame(`a [script="pwd -P"] start -> a -> exit`))
	c.Settings.Environment.ID, c.Settings.Environment.Provider, c.Settings.Environment.Cwd = "cloud", "docker", "/workspace"
	tr = trialOf(t, c)
	result, got := tr.run()
	notice := only(got, "run.notice")
	if status(result) != "succeeded(completed)" || len(notice) != 1 || notice[0].Props["message"] != `environment "cloud" asks for docker; this server runs everything on its own machine` {
		t.Errorf("%s %v", status(result), notice)
	}
}

// Programs are looked for in the PATH of their own environment.
func TestPathOfTheRun(t *testing.T) {
	tr := newTrial(t, frame(`think [prompt="x"] start -> think -> exit`))
	if err := os.WriteFile(filepath.Join(tr.spec.Cwd, "my-agent"), []byte("#!/bin/sh\ncat > /dev/null\necho found\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"my-agent", "./my-agent"} {
		tr.journal = newMemory()
		tr.spec.AgentCommand = []string{command}
		tr.spec.Env = append(tr.spec.Env, "PATH="+tr.spec.Cwd+":/bin:/usr/bin")
		_, got := tr.run()
		if done := only(got, "prompt.completed"); len(done) == 0 || done[len(done)-1].Props["response"] != "found" {
			t.Errorf("%s: %s", command, names(got))
		}
	}
}

// A process that cannot be put on record does not run, and a full disk ends the run with a sentence.
func TestDiskTrouble(t *testing.T) {
	tr := newTrial(t, frame(`a [script="touch ran"] start -> a -> exit`))
	if err := os.MkdirAll(recordPath(tr.spec.RunDir), 0o700); err != nil { // a directory in the record's place
		t.Fatal(err)
	}
	result, _ := tr.run()
	if !strings.HasPrefix(status(result), "failed(workflow_error): cannot take charge of a process: open ") {
		t.Error(status(result))
	}
	if _, err := os.Stat(filepath.Join(tr.spec.Cwd, "ran")); err == nil {
		t.Error("it ran all the same")
	}

	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full on this system to stand for a full disk")
	}
	tr = newTrial(t, frame(`a [script="echo x; echo y"] start -> a -> exit`))
	log := StageLogPath(tr.spec.RunDir, "a@1")
	if err := errors.Join(os.MkdirAll(filepath.Dir(log), 0o700), os.Symlink("/dev/full", log)); err != nil {
		t.Fatal(err)
	}
	if result, _ := tr.run(); !strings.HasPrefix(status(result), "failed(workflow_error): cannot write the stage's log: ") || !strings.HasSuffix(status(result), "no space left on device") {
		t.Error(status(result))
	}
}

func TestWorkingDirectoryMissing(t *testing.T) {
	tr := newTrial(t, frame(`a [script="true"] start -> a -> exit`))
	tr.spec.Cwd = filepath.Join(tr.spec.Cwd, "gone")
	result, got := tr.run()
	if status(result) != "failed(sandbox_init_failed): the working directory "+tr.spec.Cwd+" does not exist" {
		t.Error(status(result))
	}
	want := strings.Fields("run.starting sandbox.initializing sandbox.failed run.failed")
	if diff := cmp.Diff(want, strings.Fields(names(got))); diff != "" {
		t.Error(diff)
	}
}

// The engine as a daemon that is killed: this test's own binary runs a workflow in a child process, which gets SIGKILL.
// What its command left is found by the record and ended; a group that is not the one on record is left alone.
func TestKillLeftovers(t *testing.T) {
	if dir := os.Getenv("ENGINE_TEST_VICTIM"); dir != "" {
		victim(t, dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKillLeftovers$")
	// The victim is killed and clears nothing up: its files go where ours do.
	cmd.Env = append(os.Environ(), "ENGINE_TEST_VICTIM="+dir, "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("the victim never started")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	id := groupOf(t, dir)
	if syscall.Kill(-id, 0) != nil {
		t.Fatal("nothing was left over")
	}

	bystander := exec.Command("sleep", "1000")
	bystander.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	}()
	f, err := os.OpenFile(recordPath(dir), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	real, _ := newGroup(bystander)
	stale := real
	stale.started = "another-boot/1"
	if _, err := f.WriteString(stale.note() + "\nnonsense\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	killed, err := KillLeftovers(dir)
	if killed != 1 || err != nil {
		t.Errorf("%d groups killed, %v", killed, err)
	}
	if !groupGone(t, id) {
		t.Error("the leftovers are still there")
	}
	if !real.alive() {
		t.Error("a bystander was killed")
	}
	if n, err := KillLeftovers(dir); n != 0 || err != nil {
		t.Errorf("the second time: %d, %v", n, err)
	}
}

func victim(t *testing.T, dir string) {
	tr := newTrial(t, frame(`a [script="echo $$ > group; (trap '' TERM HUP; sleep 1000) & touch ready; sleep 1000"] start -> a -> exit`))
	tr.spec.Cwd, tr.spec.RunDir = dir, dir
	_, _ = Run(context.Background(), tr.spec, tr.journal, tr.desk)
}
