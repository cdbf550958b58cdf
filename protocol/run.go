package protocol

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"fabro-mcp/transport"
)

// RunOptions say when a server process ends besides at the end of its input.
type RunOptions struct {
	// Executable is the file to watch: when it is replaced by an upgrade the
	// process ends in order. Empty watches nothing.
	Executable string
	// ParentWatchdog ends the process when its parent dies while something else
	// holds the pipe open.
	ParentWatchdog bool
}

var (
	errSignal     = errors.New("a signal asked for the end")
	errReplaced   = errors.New("the program was replaced")
	errParentGone = errors.New("the parent process is gone")
)

// Run serves the process's own standard input and output until the input ends, a
// signal (SIGTERM, SIGINT, SIGHUP) comes, or what opts names happens. Nil is an orderly
// end; the program exits then, with status 0, since signals stay caught.
func Run(ctx context.Context, s *Server, opts RunOptions) error {
	if err := s.Check(); err != nil {
		return err
	}
	stream, err := transport.Stdio(transport.MaxFrame(s.opts.MaxMessageBytes))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	// Never given back: a signal that comes between the end of Serve and the exit of
	// the process must not turn an orderly end into a death by signal.
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		signal.Notify(signals, syscall.SIGHUP)
	}
	var replaced, orphaned <-chan struct{}
	if opts.Executable != "" {
		if replaced, err = transport.WatchExecutable(ctx, opts.Executable); err != nil {
			s.opts.Logger.Warn("the program file cannot be watched; an upgrade will go unnoticed", "error", err)
		}
	}
	if opts.ParentWatchdog {
		orphaned = transport.WatchParent(ctx)
	}
	go func() {
		select {
		case <-signals:
			cancel(errSignal)
		case <-replaced:
			cancel(errReplaced)
		case <-orphaned:
			cancel(errParentGone)
		case <-ctx.Done():
		}
	}()
	return s.Serve(ctx, stream)
}
