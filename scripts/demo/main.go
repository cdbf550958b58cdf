// Command demo plays one real conversation between MCP hosts and a built fabro
// binary, in a throw-away HOME, and tells it as a story.
//
//	go run ./scripts/demo -fabro bin/fabro -example examples/release
//
// It stops what it started and leaves nothing behind. Exit code 0 means that
// everything went as told.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"
)

// limit bounds the whole demo: something hangs when it takes this long.
const limit = 2 * time.Minute

func main() {
	fabro := flag.String("fabro", "bin/fabro", "the built binary")
	example := flag.String("example", "examples/release", "folder of the workflow to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := play(ctx, os.Stdout, *fabro, *example); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// play sets up the stage, lets both hosts have their conversation and clears up.
func play(ctx context.Context, out io.Writer, fabro, example string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	fabro, err = filepath.Abs(fabro)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fabro-demo-")
	if err != nil {
		return err
	}
	s := &stage{
		out:     out,
		fabro:   fabro,
		home:    filepath.Join(dir, "home"),
		project: filepath.Join(dir, "project"),
		started: time.Now(),
	}
	defer func() {
		if cerr := s.clear(dir); err == nil {
			err = cerr
		}
	}()
	if err := os.Mkdir(s.home, 0o700); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(s.project, filepath.Base(example)), os.DirFS(example)); err != nil {
		return fmt.Errorf("cannot copy the example: %w", err)
	}

	s.chapter("A host of revision 2026-07-28, which cannot ask its user")
	if err := s.modernHost(ctx); err != nil {
		return err
	}
	s.chapter("A host of revision 2025-06-18, which asks its user in a form")
	if err := s.legacyHost(ctx); err != nil {
		return err
	}
	return nil
}

// stage is the throw-away machine on which the story plays.
type stage struct {
	out           io.Writer
	fabro         string // absolute path of the binary
	home, project string
	started       time.Time
}

// env is what a host gives to the servers it starts: little.
func (s *stage) env() []string {
	return []string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH")}
}

// clear stops the embedded server, which would otherwise live on for half an
// hour, and removes everything.
func (s *stage) clear(dir string) error {
	stop := exec.Command(s.fabro, "server", "stop")
	stop.Env = s.env()
	text, err := stop.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("the embedded server did not stop: %w\n%s", err, text)
	}
	if rerr := os.RemoveAll(dir); err == nil {
		err = rerr
	}
	if err == nil {
		s.say("")
		s.say("The embedded server is stopped and everything removed. %.1f s in all.", time.Since(s.started).Seconds())
	}
	return err
}
