package embedded

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// loginPatience is how long the login shell may take to say its PATH.
const loginPatience = 3 * time.Second

// environment is what commands of runs start from: the server's own, with a PATH that finds the person's programs. A
// graphical host is started with the PATH of the system alone; the person's is known to their login shell.
type environment struct {
	cfg  *Config
	log  *slog.Logger
	once sync.Once
	list []string
}

// newEnvironment begins to find out the PATH when it is needed, so that neither the start of the server nor its first
// run waits for a slow shell.
func newEnvironment(cfg *Config, log *slog.Logger) *environment {
	e := &environment{cfg: cfg, log: log}
	if !cfg.KeepPath && poorPath(os.Getenv("PATH")) {
		go e.get()
	}
	return e
}

func (e *environment) get() []string {
	e.once.Do(func() {
		// A client inside a stage shall find the server that runs the stage.
		e.list = append(without(os.Environ(), "FABRO_STORAGE_DIR"), "FABRO_STORAGE_DIR="+e.cfg.StorageDir)
		if e.cfg.KeepPath || !poorPath(os.Getenv("PATH")) {
			return
		}
		path := loginPath()
		if path == "" {
			e.log.Warn("PATH is that of the system alone, and the login shell does not tell another", "PATH", os.Getenv("PATH"))
			return
		}
		e.log.Info("took PATH from the login shell", "PATH", path)
		e.list = append(without(e.list, "PATH"), "PATH="+path)
	})
	return e.list
}

func without(list []string, name string) []string {
	out := list[:0:0]
	for _, entry := range list {
		if !strings.HasPrefix(entry, name+"=") {
			out = append(out, entry)
		}
	}
	return out
}

// systemDirs are the directories of a PATH that nobody has set.
var systemDirs = map[string]bool{"/bin": true, "/sbin": true, "/usr/bin": true, "/usr/sbin": true, "/usr/local/bin": true, "/usr/local/sbin": true}

// poorPath reports whether a PATH has nothing beside the directories of the system.
func poorPath(path string) bool {
	if runtime.GOOS == "windows" {
		return false
	}
	for _, dir := range filepath.SplitList(path) {
		if dir != "" && !systemDirs[dir] {
			return false
		}
	}
	return true
}

// loginPath asks the person's login shell for its PATH. What else the shell's files print is ignored; "" means that it
// could not be had in time.
func loginPath() string {
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
		if u, err := user.Current(); err == nil && runtime.GOOS == "darwin" && u.Uid != "0" {
			shell = "/bin/zsh"
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), loginPatience)
	defer cancel()
	const mark = "_fabro_path_"
	cmd := exec.CommandContext(ctx, shell, "-l", "-c", `printf '\n`+mark+`%s`+mark+`\n' "$PATH"`)
	cmd.Dir = rootDir
	cmd.WaitDelay = 100 * time.Millisecond
	if attr := detached(); attr != nil {
		cmd.SysProcAttr = attr // a shell without a terminal cannot stop itself for one
	}
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		return ""
	}
	_, rest, ok := bytes.Cut(out, []byte(mark))
	path, _, closed := bytes.Cut(rest, []byte(mark))
	if !ok || !closed || len(path) > 32<<10 || bytes.ContainsAny(path, "\n\x00") {
		return ""
	}
	return string(path)
}
