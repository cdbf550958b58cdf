package runs

import (
	"context"
	"testing"

	"fabro-mcp/fabroapi/wire"
)

// However a log is read (whole pages, small ones, backwards, from any place, followed), an event is the same.
func TestOneLogManyReaders(t *testing.T) {
	m := newManager(t)
	ctx := context.Background()
	id := begin(t, m, creation(t, loop(80), dry))
	var followed []Event
	if err := m.Follow(ctx, id, 1, func(ev Event) error { followed = append(followed, ev); return nil }, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	want := map[int64]string{}
	for i, ev := range followed {
		if ev.Seq != int64(i+1) {
			t.Fatalf("event %d at place %d", ev.Seq, i+1)
		}
		want[ev.Seq] = string(ev.JSON)
	}
	if last := followed[len(followed)-1]; last.Name != wire.EventRunCompleted || len(followed) < 330 {
		t.Fatalf("%d events, the last is %s", len(followed), last.Name)
	}
	same := func(how string, page []Event) {
		t.Helper()
		for _, ev := range page {
			if w, ok := want[ev.Seq]; ok && w != string(ev.JSON) {
				t.Fatalf("%s: event %d is\n%s\nand was\n%s", how, ev.Seq, ev.JSON, w)
			}
		}
	}
	for _, limit := range []int{7, 100, 1000} {
		n := 0
		for since := int64(1); ; {
			page, more, err := m.Events(ctx, id, PageQuery{Since: since, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			same("ascending", page)
			n += len(page)
			if !more {
				break
			}
			since = page[len(page)-1].Seq + 1
		}
		back := 0
		for before := int64(0); ; {
			page, more, err := m.Events(ctx, id, PageQuery{Desc: true, Before: before, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			same("descending", page)
			back += len(page)
			if !more {
				break
			}
			before = page[len(page)-1].Seq
		}
		if n < len(followed) || back != n {
			t.Errorf("limit %d: %d forwards, %d backwards, %d followed", limit, n, back, len(followed))
		}
	}
	for _, at := range []int64{300, 3, 170, 175, 160, 300} {
		page, _, err := m.Events(ctx, id, PageQuery{Since: at, Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		same("anywhere", page)
	}
	page, _, err := m.Events(ctx, id, PageQuery{Since: 1, Stage: "work@50", Limit: 50})
	if err != nil || len(page) == 0 {
		t.Fatal(len(page), err)
	}
	same("by stage", page)
}
