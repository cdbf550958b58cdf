package auth_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/auth"
)

func TestStoreKeepsWhatItDoesNotKnow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.json")
	before := `{"future": {"x": 1.50}, "servers": {
		"https://z.example": {"kind": "passkey", "blob": [1, 2]},
		"https://b.example": {"kind": "dev-token", "token": "old", "note": "mine"}}}`
	if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	store := auth.Store{Path: path}
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	for _, server := range []string{"https://b.example", "https://a.example"} {
		if err := store.Put(t.Context(), server, auth.Entry{Kind: auth.KindDevToken, Token: "new", LoggedInAt: &at}); err != nil {
			t.Fatal(err)
		}
	}
	want := `{
  "future": {
    "x": 1.50
  },
  "servers": {
    "https://a.example": {
      "kind": "dev-token",
      "token": "new",
      "logged_in_at": "2026-08-01T10:00:00Z"
    },
    "https://b.example": {
      "kind": "dev-token",
      "logged_in_at": "2026-08-01T10:00:00Z",
      "note": "mine",
      "token": "new"
    },
    "https://z.example": {
      "kind": "passkey",
      "blob": [
        1,
        2
      ]
    }
  }
}
`
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	list, err := store.List(t.Context())
	if err != nil || len(list) != 2 || list[0].Server != "https://a.example" {
		t.Errorf("list %v, %v", list, err)
	}
	if removed, err := store.Delete(t.Context(), "https://a.example", "other"); removed || err != nil {
		t.Errorf("removed another login: %v, %v", removed, err)
	}
	if removed, err := store.Delete(t.Context(), "https://a.example", ""); !removed || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".auth*"))
	if len(files) > 0 {
		t.Errorf("left over: %v", files)
	}
}

func TestStoreAtOnce(t *testing.T) {
	store := auth.Store{Path: filepath.Join(t.TempDir(), "auth.json")}
	var group sync.WaitGroup
	for _, name := range strings.Split("abcdefgh", "") {
		group.Go(func() {
			if err := store.Put(t.Context(), "https://"+name, auth.Entry{Kind: auth.KindDevToken, Token: name}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if list, err := store.List(t.Context()); err != nil || len(list) != 8 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestStoreBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.json")
	for _, text := range []string{"", "{", `{"servers": [1]}`, "null garbage"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		store := auth.Store{Path: path}
		if _, _, err := store.Get(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "failed to parse auth store at "+path) {
			t.Errorf("%q: %v", text, err)
		}
		if err := store.Put(t.Context(), "x", auth.Entry{Kind: auth.KindDevToken}); err == nil {
			t.Errorf("%q: overwritten", text)
		}
	}
}

func TestStoreBehindLink(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real.json")
	link := filepath.Join(dir, "auth.json")
	if err := os.WriteFile(real, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	if err := (auth.Store{Path: link}).Put(t.Context(), "x", auth.Entry{Kind: auth.KindDevToken, Token: "t"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
}
