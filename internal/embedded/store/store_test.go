package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func open(t testing.TB) *Store {
	t.Helper()
	s, err := Open(context.Background(), filepath.Join(t.TempDir(), "fabro.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newRow(id string) *Row {
	now := time.Now()
	return &Row{ID: id, Kind: "submitted", Title: id, Slug: "slug", Name: "Name of " + id, Created: now, Updated: now, Doc: []byte("{}")}
}

func recs(from int64, n int) []Record {
	list := make([]Record, n)
	for i := range list {
		list[i] = Record{Seq: from + int64(i), Name: "x.y", Body: fmt.Appendf(nil, `{"seq":%d,"properties":{}}`, from+int64(i))}
	}
	return list
}

func create(t testing.TB, s *Store, id string) *Row {
	t.Helper()
	row := newRow(id)
	if err := s.Create(row, recs(1, 2)); err != nil {
		t.Fatal(err)
	}
	return row
}

func TestAppendHasNoGaps(t *testing.T) {
	s := open(t)
	row := create(t, s, "A")
	if err := s.Create(newRow("A"), recs(1, 1)); !errors.Is(err, ErrExists) {
		t.Errorf("second create: %v", err)
	}
	for _, bad := range [][]Record{recs(2, 1), recs(4, 1), append(recs(3, 1), recs(5, 1)...)} {
		if err := s.Append(row.Num, bad, row); !errors.Is(err, ErrGap) {
			t.Errorf("append from %d: %v", bad[0].Seq, err)
		}
	}
	if err := s.Append(99, recs(1, 1), row); !errors.Is(err, ErrNotFound) {
		t.Errorf("append to nothing: %v", err)
	}
	if err := s.Append(row.Num, recs(3, 3), &Row{Updated: time.Now()}); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	got, err := s.Events(ctx, row.Num, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	for _, r := range got {
		seqs = append(seqs, r.Seq)
	}
	if diff := cmp.Diff([]int64{2, 3, 4}, seqs); diff != "" {
		t.Error(diff)
	}
	seqs = nil
	got, err = s.EventsBefore(ctx, row.Num, 5, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got {
		seqs = append(seqs, r.Seq)
	}
	if diff := cmp.Diff([]int64{4, 3}, seqs); diff != "" {
		t.Error(diff)
	}
	after, err := s.Run(ctx, "A")
	if err != nil || after.Seq != 5 || after.Kind != "submitted" || string(after.Doc) != "{}" {
		t.Errorf("%+v, %v", after, err)
	}
}

// A request that fails does not take down those that were committed with it, and none of these is done twice.
func TestOneFailureIsNobodyElses(t *testing.T) {
	s := open(t)
	const runs = 20
	rows := make([]*Row, runs)
	for i := range rows {
		rows[i] = create(t, s, fmt.Sprintf("R%02d", i))
	}
	var wg sync.WaitGroup
	errs := make([]error, 2*runs)
	for i, row := range rows {
		wg.Add(2)
		go func() { defer wg.Done(); errs[2*i] = s.Append(row.Num, recs(3, 2), &Row{Updated: time.Now()}) }()
		go func() { defer wg.Done(); errs[2*i+1] = s.Append(row.Num, recs(50, 1), &Row{Updated: time.Now()}) }()
	}
	wg.Wait()
	for i := range rows {
		if errs[2*i] != nil {
			t.Errorf("good append: %v", errs[2*i])
		}
		if !errors.Is(errs[2*i+1], ErrGap) {
			t.Errorf("bad append: %v", errs[2*i+1])
		}
		if row, err := s.Run(context.Background(), rows[i].ID); err != nil || row.Seq != 4 {
			t.Errorf("%+v, %v", row, err)
		}
	}
	if err := s.Check(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestBlobsAndDelete(t *testing.T) {
	s := open(t)
	ctx := context.Background()
	a, b := create(t, s, "A"), create(t, s, "B")
	shared, err := s.PutBlob(a.Num, []byte("shared"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.PutBlob(b.Num, []byte("shared")); err != nil || again != shared || shared != Hash([]byte("shared")) {
		t.Fatalf("%s %v", again, err)
	}
	own, err := s.PutBlob(a.Num, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.BlobOf(ctx, b.Num, own); !errors.Is(err, ErrNotFound) {
		t.Errorf("another run's blob: %v", err)
	}
	if err := s.Delete(a.Num); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blob(ctx, own); !errors.Is(err, ErrNotFound) {
		t.Errorf("blob of a deleted run: %v", err)
	}
	if text, err := s.BlobOf(ctx, b.Num, shared); err != nil || string(text) != "shared" {
		t.Errorf("%s %v", text, err)
	}
	if list, err := s.Events(ctx, a.Num, 1, 10); err != nil || len(list) != 0 {
		t.Errorf("%d events of a deleted run, %v", len(list), err)
	}
	if _, err := s.Run(ctx, "A"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	if list, err := s.Events(ctx, b.Num, 1, 10); err != nil || len(list) != 2 {
		t.Errorf("%d events of the other run, %v", len(list), err)
	}
	if err := s.Vacuum(ctx); err != nil {
		t.Error(err)
	}
}

// A database of a newer program is refused and not touched, whether its version is in the file or still in the write-ahead log.
func TestNewerSchemaIsLeftAlone(t *testing.T) {
	for _, inLog := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "fabro.db")
		s, err := Open(context.Background(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		create(t, s, "A")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", dsn(path))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("PRAGMA user_version = 99"); err != nil {
			t.Fatal(err)
		}
		if !inLog {
			db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
			db.Close()
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var newer *NewerSchemaError
		if _, err := Open(context.Background(), path, Options{}); !errors.As(err, &newer) || newer.Found != 99 || newer.Known != len(migrations) {
			t.Fatalf("open: %v", err)
		}
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(before, after) {
			t.Error("the file was changed")
		}
		db.Close()
	}
}

// What deleted runs took is given back.
func TestDeleteShrinks(t *testing.T) {
	s := open(t)
	row := create(t, s, "A")
	for i := range 50 {
		if _, err := s.PutBlob(row.Num, fmt.Appendf(make([]byte, 100_000), "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Vacuum(context.Background()); err != nil { // everything into the file
		t.Fatal(err)
	}
	full := fileSize(t, s.path)
	if err := s.Delete(row.Num); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left := fileSize(t, s.path); full < 5_000_000 || left > full/10 {
		t.Errorf("%d bytes, after deleting %d", full, left)
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A closed store is one file.
func TestCloseLeavesOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fabro.db")
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s, "A")
	if _, err := s.Events(context.Background(), 1, 1, 10); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(path + "*"); err != nil || len(files) != 1 {
		t.Errorf("%v %v", files, err)
	}
	if err := s.Append(1, recs(3, 1), &Row{Updated: time.Now()}); !errors.Is(err, ErrClosed) {
		t.Errorf("append to a closed store: %v", err)
	}
}

func TestNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fabro.db")
	if err := os.WriteFile(path, []byte("these are somebody's notes, and not few of them: more than a header's worth"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), path, Options{}); err == nil {
		t.Fatal("opened")
	}
	if _, err := Open(context.Background(), filepath.Join(t.TempDir(), "x.db"), Options{Synchronous: "off"}); err == nil {
		t.Fatal("opened with synchronous off")
	}
}

func TestLists(t *testing.T) {
	s := open(t)
	ctx := context.Background()
	for i, k := range []string{"submitted", "running", "paused", "succeeded", "failed", "removing"} {
		row := newRow(fmt.Sprintf("R%d", i))
		row.Kind, row.Title, row.Archived = k, fmt.Sprint(9-i), k == "failed"
		if i > 3 {
			row.Parent = "R0"
		}
		if err := s.Create(row, recs(1, 1)); err != nil {
			t.Fatal(err)
		}
	}
	yes, no := true, false
	for _, c := range []struct {
		name string
		q    Query
		want []string
	}{
		{"newest first", Query{}, []string{"R5", "R4", "R3", "R2", "R1", "R0"}},
		{"by title", Query{Sort: SortTitle, Ascending: true}, []string{"R5", "R4", "R3", "R2", "R1", "R0"}},
		{"by column", Query{Sort: SortStatus, Ascending: true}, []string{"R0", "R1", "R2", "R3", "R4", "R5"}},
		{"not archived, not removing", Query{Archived: &no, ExcludeKinds: []string{"removing"}}, []string{"R3", "R2", "R1", "R0"}},
		{"archived", Query{Archived: &yes}, []string{"R4"}},
		{"archived or running", Query{ArchivedOrKinds: true, Kinds: []string{"running", "paused"}}, []string{"R4", "R2", "R1"}},
		{"children", Query{Parent: "R0"}, []string{"R5", "R4"}},
		{"second page", Query{Limit: 2, Offset: 2}, []string{"R3", "R2"}},
	} {
		if c.q.Limit == 0 {
			c.q.Limit = 100
		}
		page, total, err := s.List(ctx, c.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range page {
			got = append(got, r.ID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if c.q.Offset == 0 && total != len(c.want) || c.q.Offset > 0 && total != 6 {
			t.Errorf("%s: total %d", c.name, total)
		}
	}
	if n, err := s.Children(ctx, "R0", "R1"); err != nil || !cmp.Equal(n, map[string]int64{"R0": 2}) {
		t.Errorf("%v %v", n, err)
	}
}

// Events a second on the group commit, by how many runs write at once, one event an append.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 10, 50} {
		b.Run(fmt.Sprintf("runs=%d", writers), func(b *testing.B) {
			s := open(b)
			rows := make([]*Row, writers)
			for i := range rows {
				rows[i] = create(b, s, fmt.Sprintf("R%02d", i))
			}
			body := make([]byte, 600)
			for i := range body {
				body[i] = 'x'
			}
			b.ResetTimer()
			var wg sync.WaitGroup
			for i, row := range rows {
				n := b.N / writers
				if i == 0 {
					n += b.N % writers
				}
				wg.Add(1)
				go func() {
					defer wg.Done()
					for seq := int64(3); seq < int64(3+n); seq++ {
						if err := s.Append(row.Num, []Record{{Seq: seq, Name: "stage.started", Stage: "a@1", Body: body}}, &Row{Updated: time.Now()}); err != nil {
							b.Error(err)
							return
						}
					}
				}()
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
