package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/conformance/fakeserver"
	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/transcript"
)

// TestPatience holds how long is waited for what, after what has been seen.
func TestPatience(t *testing.T) {
	a, again, b := hope{"a", "file:1"}, hope{"a", "file:2"}, hope{"b", "file:3"}
	for _, c := range []struct {
		name   string
		inVain []hope
		met    []hope
		after  time.Duration
		hopes  []hope
		want   time.Duration
	}{
		{"nothing is known", nil, nil, 0, []hope{a}, 10 * time.Second},
		{"one wait in vain proves nothing", []hope{a}, nil, 0, []hope{a}, 10 * time.Second},
		{"two do", []hope{a, a}, nil, 0, []hope{a}, time.Second},
		{"at other steps too", []hope{a, a}, nil, 0, []hope{again}, time.Second},
		{"not for another thing", []hope{a, a}, nil, 0, []hope{b}, 10 * time.Second},
		{"one of two may still come", []hope{a, a}, nil, 0, []hope{a, b}, 10 * time.Second},
		{"both are given up", []hope{a, a, b, b}, nil, 0, []hope{a, b}, time.Second},
		{"what was answered elsewhere may come", []hope{a, a}, []hope{again}, 0, []hope{again}, 10 * time.Second},
		{"but not where it did not come before", []hope{a, a}, []hope{again}, 0, []hope{a}, time.Second},
		{"a slow server gets ten times what it needed", []hope{a, a}, []hope{b}, 300 * time.Millisecond, []hope{a}, 3 * time.Second},
		{"but never more than it would have had", []hope{a, a}, []hope{b}, 5 * time.Second, []hope{a}, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newPatience()
			for _, one := range c.inVain {
				s.failed([]hope{one}, false)
			}
			s.met(c.met, c.after)
			if got := s.bound(10*time.Second, c.hopes); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestSilenceAboutOneMethod plays many transcripts against a server that never answers
// tools/list: the probe waits for it in full, and so does the first transcript; the others
// say what they did instead.
func TestSilenceAboutOneMethod(t *testing.T) {
	var ts []*transcript.Transcript
	for range 10 {
		ts = append(ts, parse(t, "t.txt", listTools))
	}
	rep := against(t, fakeserver.Mute, Config{Timeout: 2 * time.Second, Jobs: 1}, ts...)
	if diff := cmp.Diff([]report.ShortWaits{{For: "the reply to tools/list", Waits: 9, After: 2}}, rep.ShortWaits); diff != "" {
		t.Errorf("%s\n%s", diff, explain(rep))
	}
	for i, c := range rep.Cases {
		const cut = "since nothing came for the same in 2 full waits before"
		if said := c.Findings[0].Message; c.Outcome != report.Fail || strings.Contains(said, cut) != (i > 0) {
			t.Errorf("case %d: %s, %s", i, c.Outcome, said)
		}
	}
}

// TestOutlook counts the cases that will start the server, and how long that takes.
func TestOutlook(t *testing.T) {
	played, needy := parse(t, "t.txt", listTools), parse(t, "u.txt", strings.Replace(listTools, "\nopen", "\nneeds: tool nope\n\nopen", 1))
	jobs := []job{{played, "2026-07-28"}, {played, "2026-07-28"}, {played, "2026-07-28"}, {needy, "2026-07-28"}, {played, "2025-11-25"}}
	offers := map[string]*Offer{"2026-07-28": {Spoken: true, firstReply: 20 * time.Second}, "2025-11-25": {firstReply: time.Minute}}
	want := Progress{Start: 20 * time.Second, Starting: 3, Expected: 40 * time.Second}
	if diff := cmp.Diff(want, outlook(&Config{Jobs: 2}, jobs, offers)); diff != "" {
		t.Error(diff)
	}
}
