//go:build unix

package main_test

import (
	"bufio"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDeafHost plays a host that asks for far more than a pipe holds and reads
// nothing of it. However it then ends the server, the server ends.
func TestDeafHost(t *testing.T) {
	const (
		hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}` + "\n"
		list  = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"
	)
	ways := []struct {
		name string
		end  func(stdin io.Closer, stdout io.Closer, process *os.Process) error
	}{
		{"end of input", func(stdin, _ io.Closer, _ *os.Process) error { return stdin.Close() }},
		{"SIGTERM", func(_, _ io.Closer, p *os.Process) error { return p.Signal(syscall.SIGTERM) }},
		{"SIGHUP", func(_, _ io.Closer, p *os.Process) error { return p.Signal(syscall.SIGHUP) }},
		{"both at once", func(stdin, _ io.Closer, p *os.Process) error {
			stdin.Close()
			return p.Signal(syscall.SIGINT)
		}},
		{"the reader goes away", func(_, stdout io.Closer, _ *os.Process) error { return stdout.Close() }},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			cmd := command([]string{"HOME=" + t.TempDir()}, "mcp", "start")
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(stdin, hello); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReaderSize(stdout, 16).ReadSlice('{'); err != nil {
				t.Fatal(err) // it lives
			}
			if _, err := io.WriteString(stdin, strings.Repeat(list, 200)); err != nil {
				t.Fatal(err)
			}
			if err := way.end(stdin, stdout, cmd.Process); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := cmd.Process.Wait() // cmd.Wait would close the pipe that nobody reads
				ended <- err
			}()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(patience):
				cmd.Process.Kill()
				t.Error("it does not end")
			}
			stdin.Close()
			stdout.Close()
		})
	}
}
