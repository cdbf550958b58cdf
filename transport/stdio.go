package transport

import (
	"fmt"
	"os"
	"sync"
)

var stdioOnce struct {
	sync.Mutex
	taken bool
}

// Stdio takes the process's standard input and output for a stream, once. From
// then on whatever prints to standard output (fmt.Print, os.Stdout, a library, a
// child that inherits it) reaches standard error instead, and whoever reads
// standard input finds it empty: only the stream's own frames travel on the
// protocol's channel.
func Stdio(opts ...Option) (*LineStream, error) {
	stdioOnce.Lock()
	defer stdioOnce.Unlock()
	if stdioOnce.taken {
		return nil, fmt.Errorf("transport: standard input and output are taken already")
	}
	in, out, err := takeStdio()
	if err != nil {
		return nil, fmt.Errorf("transport: cannot guard standard output: %w", err)
	}
	stdioOnce.taken = true
	return NewLineStream(input{in}, out, append(opts[:len(opts):len(opts)], OnClose(in), OnClose(out))...), nil
}

// input is a standard input that tells whether it was closed at the other end.
type input struct{ *os.File }

func (i input) hungUp() bool { return hungUp(i.File) }

func devNull() (*os.File, error) { return os.OpenFile(os.DevNull, os.O_RDWR, 0) }
