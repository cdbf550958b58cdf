//go:build unix

package transport

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHungUp: the end of an input shows while bytes are left in it.
func TestHungUp(t *testing.T) {
	sockets := func() (r, w *os.File, err error) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return nil, nil, err
		}
		return os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w"), nil
	}
	for name, open := range map[string]func() (r, w *os.File, err error){"pipe": os.Pipe, "sockets": sockets} {
		t.Run(name, func(t *testing.T) {
			r, w, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := w.WriteString("left"); err != nil {
				t.Fatal(err)
			}
			s := NewLineStream(input{r}, nil)
			if s.HungUp() {
				t.Error("an open input is said to be closed")
			}
			w.Close()
			if !s.HungUp() {
				t.Error("a closed input is not noticed")
			}
		})
	}
}
