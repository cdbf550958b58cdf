package protocol

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestSeal(t *testing.T) {
	s := newEphemeralSealer()
	sealed, err := s.Seal("purpose", []byte("plain"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := s.Open("purpose", sealed); err != nil || string(plain) != "plain" {
		t.Errorf("%s %v", plain, err)
	}
	if again, _ := s.Seal("purpose", []byte("plain"), time.Hour); again == sealed {
		t.Error("two seals are the same")
	}
	if strings.Trim(sealed, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		t.Errorf("not safe in a URL: %s", sealed)
	}
	refused := map[string]func() ([]byte, error){
		"other purpose": func() ([]byte, error) { return s.Open("purpose2", sealed) },
		"other key":     func() ([]byte, error) { return newEphemeralSealer().Open("purpose", sealed) },
		"empty":         func() ([]byte, error) { return s.Open("purpose", "") },
		"cut":           func() ([]byte, error) { return s.Open("purpose", sealed[:len(sealed)-1]) },
		"longer":        func() ([]byte, error) { return s.Open("purpose", sealed+"A") },
		"line feed":     func() ([]byte, error) { return s.Open("purpose", sealed[:10]+"\n"+sealed[10:]) },
	}
	for i := range sealed {
		c := byte('A')
		if sealed[i] == c {
			c = 'B'
		}
		changed := sealed[:i] + string(c) + sealed[i+1:]
		refused["byte "+itoa(i)] = func() ([]byte, error) { return s.Open("purpose", changed) }
	}
	for name, open := range refused {
		if _, err := open(); !errors.Is(err, ErrSealInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSealExpires(t *testing.T) {
	k, _ := newSealKey(make([]byte, keySize))
	now := time.Unix(1000, 0)
	k.now = func() time.Time { return now }
	sealed, _ := k.Seal("p", nil, time.Minute)
	now = now.Add(time.Minute - time.Millisecond)
	if _, err := k.Open("p", sealed); err != nil {
		t.Error(err)
	}
	now = now.Add(time.Millisecond)
	if _, err := k.Open("p", sealed); !errors.Is(err, ErrSealInvalid) {
		t.Errorf("after its time: %v", err)
	}
}

// TestFileSealer: many first starters agree on one key, readable by nobody else.
func TestFileSealer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "state.key")
	var wg sync.WaitGroup
	sealed := make([]string, 20)
	for i := range sealed {
		wg.Go(func() {
			var err error
			if sealed[i], err = NewFileSealer(path).Seal("p", []byte("x"), time.Hour); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, text := range sealed {
		if _, err := NewFileSealer(path).Open("p", text); err != nil {
			t.Error(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// TestFileSealerWithoutAFile: where nothing can be written the key is ephemeral, and
// a damaged file is left alone.
func TestFileSealerWithoutAFile(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{blocked, filepath.Join(blocked, "below", "state.key")} {
		s := NewFileSealer(path)
		sealed, err := s.Seal("p", []byte("x"), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Open("p", sealed); err != nil {
			t.Error(err)
		}
	}
	if raw, _ := os.ReadFile(blocked); string(raw) != "short" {
		t.Errorf("the file was changed: %q", raw)
	}
}

// FuzzOpen: whatever comes back, opening it never does more than fail.
func FuzzOpen(f *testing.F) {
	secret := make([]byte, keySize)
	k, _ := newSealKey(secret)
	good, _ := k.Seal("requestState", []byte(`{"b":"x"}`), 100*365*24*time.Hour)
	for _, seed := range []string{"", "s1.", good, good[:20], "s1.AAAA", "s2." + good[3:], good + "=", strings.Repeat("A", 200)} {
		f.Add(seed, "requestState")
	}
	f.Fuzz(func(t *testing.T, sealed, purpose string) {
		plain, err := k.Open(purpose, sealed)
		if err == nil && (purpose != "requestState" || string(plain) != `{"b":"x"}`) {
			t.Fatalf("a forgery was accepted: %q for %q", sealed, purpose)
		}
	})
}

// FuzzCursor: a cursor of the client's making ends in an error or in the list.
func FuzzCursor(f *testing.F) {
	s := &Server{Info: Implementation{Name: "t", Version: "1"}}
	if err := s.Check(); err != nil {
		f.Fatal(err)
	}
	c := newConn(s, nil)
	list := &rendered{}
	for _, name := range []string{"a", "b", "c"} {
		list.add(name, []byte(`"`+name+`"`))
	}
	list.join()
	r := &request{conn: c, rev: revisions[0], method: methodNamed([]byte("tools/list"))}
	good, err := r.sealCursor(2, "b")
	if err != nil {
		f.Fatal(err)
	}
	gone, _ := r.sealCursor(99, "gone")
	f.Add(good)
	f.Add(gone)
	f.Add("")
	f.Add("bogus")
	f.Fuzz(func(t *testing.T, cursor string) {
		r := &request{conn: c, rev: r.rev, method: r.method}
		r.params = append(keyString([]byte{'{'}, "cursor", cursor), '}')
		start, err := r.pageStart(list)
		if err == nil && (start < 0 || start > 3 || cursor != good && cursor != gone) {
			t.Fatalf("cursor %q starts at %d", cursor, start)
		}
	})
}
