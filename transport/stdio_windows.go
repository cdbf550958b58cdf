package transport

import (
	"os"

	"golang.org/x/sys/windows"
)

// takeStdio keeps the two handles for the stream and points the process's
// standard handles elsewhere.
func takeStdio() (in, out *os.File, err error) {
	in, out = os.Stdin, os.Stdout
	null, err := devNull()
	if err != nil {
		return nil, nil, err
	}
	if err := windows.SetStdHandle(windows.STD_INPUT_HANDLE, windows.Handle(null.Fd())); err != nil {
		return nil, nil, err
	}
	if err := windows.SetStdHandle(windows.STD_OUTPUT_HANDLE, windows.Handle(os.Stderr.Fd())); err != nil {
		return nil, nil, err
	}
	os.Stdin, os.Stdout = null, os.Stderr
	return in, out, nil
}

// hungUp: Windows does not tell while there are bytes left to be read.
func hungUp(*os.File) bool { return false }
