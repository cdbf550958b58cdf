package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/api"
	"fabro-mcp/internal/embedded/runs"
	"fabro-mcp/internal/embedded/store"
)

// ErrRunning means that a server of this storage directory lives already.
var ErrRunning = errors.New("an embedded server of this storage directory is already running")

// Times of an orderly start and end.
const (
	lockPatience = 3 * time.Second  // for a server that is just ending
	stopPatience = 10 * time.Second // for runs to end
	lastRequests = 2 * time.Second  // for requests to be answered
)

// Serve is the server. It returns nil after an orderly end: ctx ended, a signal came, it was asked to stop, or it was idle for long enough.
func Serve(ctx context.Context, cfg Config) (err error) {
	ctx, cancel := signal.NotifyContext(ctx, stopSignals()...)
	defer cancel()
	if err := cfg.makeDir(); err != nil {
		return err
	}
	lock, err := cfg.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	log := cfg.Logger
	if log == nil {
		file, err := openLog(cfg.logPath(), maxLogBytes)
		if err != nil {
			return err
		}
		defer file.Close()
		log = slog.New(slog.NewTextHandler(file, nil))
	}
	// From here on somebody may wait for this server and look into its log for the reason it did not come.
	defer func() {
		if err != nil {
			log.Error("the server ends", "error", err)
		}
	}()
	s := &server{cfg: cfg, log: log, lock: lock, stopping: make(chan struct{})}
	if err := s.open(ctx); err != nil {
		return errors.Join(err, s.close())
	}
	log.Info("serving", "endpoint", endpoint(s.record), "pid", os.Getpid(), "version", cfg.Version)
	why := s.wait(ctx)
	log.Info("stopping", "reason", why)
	return s.close()
}

// lock takes the lock that only one server of a storage directory can hold.
func (c *Config) lock(ctx context.Context) (*flock.Flock, error) {
	lock := flock.New(c.lockPath(), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	if got, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil || !got {
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		return nil, ErrRunning
	}
	return lock, nil
}

// tryLock takes the lock, or returns nil when somebody holds it.
func (c *Config) tryLock() (*flock.Flock, error) {
	lock := flock.New(c.lockPath(), flock.SetPermissions(0o600))
	got, err := lock.TryLock()
	if err != nil || !got {
		return nil, err
	}
	return lock, nil
}

// server is a serving process and what it has opened.
type server struct {
	cfg    Config
	log    *slog.Logger
	lock   *flock.Flock
	store  *store.Store
	runs   *runs.Manager
	http   *http.Server
	base   context.CancelFunc // ends all requests
	serve  chan error         // what http.Serve returned
	record *wire.ServerRecord
	prune  sync.WaitGroup
	quit   context.CancelFunc // ends prune

	listener net.Listener
	socket   os.FileInfo // the file of the listener, nil for a port

	stopping chan struct{} // closed when somebody asked to stop
	stopOnce sync.Once
	requests atomic.Int64 // under way
	last     atomic.Int64 // end of the last request, in nanoseconds since 1970
}

func (s *server) open(ctx context.Context) (err error) {
	cfg := &s.cfg
	token, err := cfg.token()
	if err != nil {
		return err
	}
	if s.store, err = store.Open(ctx, cfg.dbPath(), store.Options{Synchronous: cfg.Synchronous}); err != nil {
		return err
	}
	environ := newEnvironment(cfg, s.log)
	s.runs, err = runs.Open(ctx, runs.Config{Store: s.store, Dir: cfg.runsDir(), Version: cfg.Version, MaxConcurrent: cfg.MaxConcurrentRuns,
		MaxRunBytes: cfg.MaxRunBytes, AgentCommand: cfg.AgentCommand, Environ: environ.get, Logger: s.log})
	if err != nil {
		return err
	}
	// A dead server's record would be taken for ours as soon as we listen where it did.
	os.Remove(cfg.recordPath())
	bind, err := s.listen()
	if err != nil {
		return err
	}
	s.record = &wire.ServerRecord{PID: os.Getpid(), Bind: bind, LogPath: cfg.logPath(), StartedAt: time.Now().UTC(), Version: cfg.Version, TokenPath: cfg.tokenPath()}
	url := endpoint(s.record)
	if bind.Unix != "" {
		url = "unix://" + url
	}
	handler := api.New(api.Config{Manager: s.runs, Token: token, Version: cfg.Version, StorageDir: cfg.StorageDir, ServerURL: url, Started: s.record.StartedAt,
		Stop: s.askToStop, Refused: func() { s.keepToken(token) }, Logger: s.log})
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.base = cancel
	s.http = &http.Server{Handler: s.counted(handler), BaseContext: func(net.Listener) context.Context { return base }, ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout: 5 * time.Minute, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
	s.serve = make(chan error, 1)
	s.last.Store(time.Now().UnixNano())
	s.accept()
	if err := cfg.writeRecord(s.record); err != nil {
		return err
	}
	s.startPruning(base)
	return nil
}

// listen opens the server's socket or port.
func (s *server) listen() (wire.ServerBind, error) {
	listener, bind, err := s.cfg.listen()
	if err != nil {
		return bind, err
	}
	var socket os.FileInfo
	if bind.Unix != "" {
		if socket, err = os.Lstat(bind.Unix); err != nil {
			listener.Close()
			return bind, err
		}
	}
	s.listener, s.socket = listener, socket
	return bind, nil
}

// accept serves what comes to the listener. A listener that is replaced is closed, which is no failure.
func (s *server) accept() {
	listener := s.listener
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, net.ErrClosed) {
			s.serve <- err
		}
	}()
}

// counted keeps account of requests for the idle stop.
func (s *server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		defer func() {
			s.last.Store(time.Now().UnixNano())
			s.requests.Add(-1)
		}()
		next.ServeHTTP(w, r)
	})
}

func (s *server) askToStop() { s.stopOnce.Do(func() { close(s.stopping) }) }

// wait returns why the server ends.
func (s *server) wait(ctx context.Context) string {
	limit := s.cfg.idleStop()
	timer := time.NewTimer(max(limit, 0))
	defer timer.Stop()
	if limit < 0 {
		timer.Stop()
	}
	look := time.NewTicker(s.cfg.lookEvery())
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return "asked by a signal"
		case <-s.stopping:
			return "asked over the API"
		case err := <-s.serve:
			s.serve <- err
			return fmt.Sprintf("the listener failed: %v", err)
		case <-look.C:
			if !s.ours() {
				return "the storage directory was removed"
			}
			s.keepSocket()
			s.keepRecord()
		case <-timer.C:
			idle := time.Since(time.Unix(0, s.last.Load()))
			busy := s.requests.Load() > 0 || s.runs.Busy() > 0
			if !busy && idle >= limit {
				return fmt.Sprintf("nothing to do for %s", limit)
			}
			if busy {
				idle = 0
			}
			timer.Reset(max(limit-idle, 10*time.Millisecond))
		}
	}
}

// close ends everything in the opposite order. Runs end first, so that whoever follows one sees its end.
func (s *server) close() error {
	var errs []error
	if s.quit != nil {
		s.quit()
		s.prune.Wait()
	}
	if s.runs != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		errs = append(errs, s.runs.Close(ctx))
		cancel()
	}
	if s.http != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lastRequests)
		stop := time.AfterFunc(lastRequests/2, s.base) // streams of all runs never end by themselves
		if err := s.http.Shutdown(ctx); err != nil {
			s.http.Close()
		}
		stop.Stop()
		s.base()
		cancel()
		<-s.serve
	}
	if s.record != nil && s.ours() {
		if s.record.Bind.Unix != "" {
			os.Remove(s.record.Bind.Unix)
		}
		os.Remove(s.cfg.recordPath())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}
