package fabroapi

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"fabro-mcp/fabroapi/wire"
)

// gitTimeout bounds all questions to git together: a manifest is useful without
// the answers.
const gitTimeout = 10 * time.Second

// gitContext describes the repository around dir, or returns nil when there is
// none, no commit in it, or no git. Nothing is fetched, pushed or changed.
// originURL takes the place of the remote's URL unless it is empty.
func gitContext(ctx context.Context, dir, originURL string) *wire.ManifestGit {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	head, err := git(ctx, dir, "rev-parse", "HEAD", "--abbrev-ref", "HEAD")
	sha, branch, ok := strings.Cut(strings.TrimSpace(head), "\n")
	if err != nil || !ok {
		return nil
	}
	out := &wire.ManifestGit{Branch: branch, SHA: &sha, Dirty: wire.GitUnknown, OriginURL: originURL}
	if status, err := git(ctx, dir, "status", "--porcelain"); err == nil {
		out.Dirty = wire.GitClean
		if status != "" {
			out.Dirty = wire.GitDirty
		}
	}
	if out.OriginURL == "" {
		if remote, err := git(ctx, dir, "remote", "get-url", "origin"); err == nil {
			out.OriginURL = normalizeRemote(strings.TrimSpace(remote))
		}
	}
	return out
}

// git asks git something about the repository around dir. It cannot ask anybody
// anything, takes no locks, and runs neither hooks nor a file system monitor of
// the repository. Only the beginning of its output is kept.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull}, args...)...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_ASKPASS", "SSH_ASKPASS":
			// Set by whoever called us from a hook; the repository is the one around dir.
		default:
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "PWD="+dir)
	var out beginning
	cmd.Stdout = &out
	err := cmd.Run()
	return string(out.kept), err
}

// maxGitOutput bounds what is kept of an answer; the status of a large tree is
// long, and one line of it is enough.
const maxGitOutput = 8 << 10

// beginning keeps the first bytes written to it.
type beginning struct{ kept []byte }

func (b *beginning) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(maxGitOutput-len(b.kept), len(p))]...)
	return len(p), nil
}

// normalizeRemote turns the URL of a remote into one to look at: https in place
// of ssh, no credentials, no trailing "/" or ".git". A path stays a path.
func normalizeRemote(remote string) string {
	trim := func(s string) string {
		return strings.TrimRight(strings.TrimSuffix(strings.TrimRight(s, "/"), ".git"), "/")
	}
	if !strings.Contains(remote, "://") {
		// The scp form, user@host:path; a Windows path has its colon after one letter.
		host, path, ok := strings.Cut(remote, ":")
		if ok && len(host) > 1 && !strings.ContainsAny(host, `/\`) {
			host = host[strings.LastIndexByte(host, '@')+1:]
			return "https://" + host + "/" + trim(strings.TrimLeft(path, "/"))
		}
		return trim(remote)
	}
	u, err := url.Parse(remote)
	if err != nil {
		return trim(Redact(remote))
	}
	u.User = nil
	if u.Scheme == "ssh" || u.Scheme == "git+ssh" {
		u.Scheme, u.Host = "https", u.Hostname()
	}
	u.RawQuery, u.Fragment = "", ""
	return trim(u.String())
}
