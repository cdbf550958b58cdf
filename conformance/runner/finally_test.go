package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fabro-mcp/conformance/report"
)

// theEnd is the test binary as a finally step starts it: it appends a word and a variable
// to a file, or fails when the word is "fail".
func theEnd(args []string) {
	file, err := os.OpenFile(args[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	fmt.Fprintln(file, args[1], os.Getenv("PLACE"))
	if args[1] == "fail" {
		fmt.Fprintln(os.Stderr, "cannot stop")
		os.Exit(3)
	}
}

func TestFinally(t *testing.T) {
	const head = "title: t\nrevisions: 2025-11-25\nneeds: setting out\ntimeout: 20s\n\n"
	for _, c := range []struct {
		name, script string
		outcome      report.Outcome
		ran          string
		says         string
	}{
		{"after a script that passes, the last one first, each with its own environment", `
env PLACE "here"
finally "be-the-end" "${out}" "one"
env PLACE "there"
finally "be-the-end" "${out}" "two"
open
call 1 ping
expect result 1
`, report.Pass, "two there\none here\n", ""},
		{"after a script that fails", `
finally "be-the-end" "${out}" "one"
open
call 1 ping
expect error 1
`, report.Fail, "one \n", "expected error"},
		{"not when the script stopped before it", `
open
call 1 ping
expect error 1
finally "be-the-end" "${out}" "one"
`, report.Fail, "", "expected error"},
		{"one that fails is a failure", `
finally "be-the-end" "${out}" "fail"
open
call 1 ping
expect result 1
`, report.Fail, "fail \n", "the closing command ended with exit code 3; its last words: cannot stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			rep := against(t, "", Config{Settings: map[string]string{"out": out}}, parse(t, "finally.txtar", head+c.script))
			if got := rep.Cases[0].Outcome; got != c.outcome {
				t.Errorf("%s, want %s\n%s", got, c.outcome, explain(rep))
			}
			if text := explain(rep); !strings.Contains(text, c.says) {
				t.Errorf("the report does not say %q:\n%s", c.says, text)
			}
			ran, err := os.ReadFile(out)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if string(ran) != c.ran {
				t.Errorf("ran %q, want %q", ran, c.ran)
			}
		})
	}
}
