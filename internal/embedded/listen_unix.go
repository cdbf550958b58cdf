//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"syscall"

	"fabro-mcp/fabroapi/wire"
)

// stopSignals end a server in an orderly way. The end of the terminal of one in the foreground does, unless it was
// started to outlive that (nohup).
func stopSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// isSocket reports whether path is a socket: what a record names may be anything, after all.
func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSocket != 0
}

// listen opens the server's socket. What lies at its place is left from a server that died: the lock is held.
func (c *Config) listen() (net.Listener, wire.ServerBind, error) {
	path, err := c.socketPath()
	if err != nil {
		return nil, wire.ServerBind{}, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, wire.ServerBind{}, err
	}
	// The socket is made by nobody but its owner from the first moment on: the directory is private.
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, wire.ServerBind{}, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, wire.ServerBind{}, err
	}
	return l, wire.ServerBind{Unix: path}, nil
}

// checkPrivate says why a directory in a place that others can write to is not ours alone.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return errors.New("it is not a directory")
	case ok && int(st.Uid) != os.Getuid():
		return fmt.Errorf("it belongs to user %d", st.Uid)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others may use it (mode %o); remove it", info.Mode().Perm())
	}
	return nil
}
