package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/plural"
	"fabro-mcp/protocol"
	"fabro-mcp/tools/plain"
)

// How a gather ends.
const (
	endedTerminal    = "terminal"     // every run has ended
	endedAttention   = "attention"    // every unfinished run waits for a person
	endedDeadline    = "deadline"     // time is up
	endedDeclined    = "declined"     // the person did not answer
	endedAskFailed   = "ask_failed"   // the host could not ask the person
	endedInputClosed = "input_closed" // the host is going away
)

// progressEvery is how often a waiting gather reports, for hosts that give up on a
// silent call.
const progressEvery = 5 * time.Second

// gatherState is what a gather keeps while the peer collects answers.
type gatherState struct {
	Runs    []string  `json:"runs"` // ids, in the order of the arguments
	Started time.Time `json:"started"`
	// Used is the waiting time spent so far; a person's time does not count.
	Used time.Duration `json:"used"`
	// Asked are the questions that the peer is putting to the person, by id, with
	// their runs.
	Asked map[string]string `json:"asked,omitempty"`
	// Answered are those that this gather has answered.
	Answered []string `json:"answered,omitempty"`
}

type gatherResult struct {
	Runs       []runSummary `json:"runs"`
	TimedOut   bool         `json:"timed_out"`
	Elapsed    int64        `json:"elapsed_seconds"`
	EndedBy    string       `json:"ended_by"`
	WaitingFor []waitingFor `json:"waiting_for"`
	Notes      []string     `json:"notes"`
}

const gatherSchema = `{"type":"object","properties":{"runs":{"type":"array","items":` + summarySchema + `},"timed_out":{"type":"boolean"},` +
	`"elapsed_seconds":{"type":"integer","minimum":0},` +
	`"ended_by":{"type":"string","enum":["terminal","attention","deadline","declined","ask_failed","input_closed"]},` +
	`"waiting_for":{"type":"array","description":"Questions that wait for a person","items":` + waitingSchema + `},` +
	`"notes":{"type":"array","items":{"type":"string"}}},` +
	`"required":["runs","timed_out","elapsed_seconds","ended_by","waiting_for","notes"]}`

// gathering is one wait.
type gathering struct {
	r       *request
	p       *gatherParams
	f       *follower
	order   []*followed // as asked for, duplicates included
	state   *gatherState
	window  time.Duration // how long the gather may wait, over all rounds
	capped  bool          // --max-wait ends this round before the window does
	began   time.Time     // of this round
	paused  time.Duration // spent by the person in this round
	endedBy string
	notes   []string
	skip    map[string]bool // questions that make no form, by id
}

func (p *gatherParams) run(ctx context.Context, r *request) (*reply, error) {
	g := &gathering{r: r, p: p, began: r.now(), state: r.state.Gather, skip: map[string]bool{}}
	g.window = time.Duration(p.Timeout.Value) * time.Second
	client, err := r.client(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.find(ctx, client); err != nil {
		return nil, err
	}
	g.f.start(ctx)
	defer g.f.close()
	if err := g.takeAnswers(ctx); err != nil {
		return nil, err
	}
	if err := g.wait(ctx); err != nil {
		return nil, err
	}
	return g.reply(), nil
}

// find resolves the runs, or takes up those of the earlier rounds.
func (g *gathering) find(ctx context.Context, client *fabroapi.Client) error {
	var runs []*wire.Run
	if g.state != nil {
		for _, id := range g.state.Runs {
			runs = append(runs, bareRun(id))
		}
		g.f = newFollower(client, distinct(runs), g.r.now)
		if err := g.f.lookAnew(ctx); err != nil {
			return err
		}
	} else {
		var err error
		if runs, err = resolve(ctx, client, g.p.RunIDs.Value); err != nil {
			return err
		}
		g.state = &gatherState{Started: g.began}
		for _, run := range runs {
			g.state.Runs = append(g.state.Runs, run.ID)
		}
		g.f = newFollower(client, distinct(runs), g.r.now)
	}
	byID := map[string]*followed{}
	for _, w := range g.f.runs {
		byID[w.id] = w
		for _, q := range g.state.Answered {
			w.answered[q] = true
		}
	}
	for _, run := range runs {
		g.order = append(g.order, byID[run.ID])
	}
	g.r.state.Gather = g.state
	return nil
}

// left is the waiting time that remains.
func (g *gathering) left() time.Duration {
	left, rest := g.window-g.used(), g.r.rest()
	g.capped = rest < left
	return min(left, rest)
}

// used is the waiting time spent in all rounds, without the person's.
func (g *gathering) used() time.Duration { return g.state.Used + g.here() }

// here is the waiting time spent in this round.
func (g *gathering) here() time.Duration { return g.r.now().Sub(g.began) - g.paused }

// wait looks, asks and waits until one of the ends is reached.
func (g *gathering) wait(ctx context.Context) error {
	poll := time.Duration(g.p.Poll.Value) * time.Second
	progress := time.NewTicker(progressEvery)
	defer progress.Stop()
	last := false // the look at the deadline has been made
	for {
		g.f.look(ctx, poll, last)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		g.tellTrouble()
		if ended := g.ended(); ended != "" {
			g.endedBy = ended
		}
		if g.endedBy != "" { // or what was asked ended it
			return nil
		}
		if asked, err := g.askOpen(ctx); err != nil {
			return err
		} else if asked {
			continue // what was answered is read again, even if asking ended the wait
		}
		if g.attention() {
			g.endedBy = endedAttention
			return nil
		}
		if g.left() <= 0 {
			if last || g.window == 0 {
				g.endedBy = endedDeadline
				return nil
			}
			last = true
			continue
		}
		g.report()
		timer := time.NewTimer(min(g.left(), g.f.nextLook(poll)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-g.r.call.InputClosed():
			g.endedBy = endedInputClosed
			timer.Stop()
			return nil
		case <-g.f.wake:
		case <-progress.C:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// ended reports whether every run has ended.
func (g *gathering) ended() string {
	for _, w := range g.f.runs {
		if !w.ended() {
			return ""
		}
	}
	return endedTerminal
}

// attention reports whether until is attention and every unfinished run waits for
// a person.
func (g *gathering) attention() bool {
	if g.p.Until != untilAttention {
		return false
	}
	for _, w := range g.f.runs {
		if !w.ended() && !w.waitsForPerson() {
			return false
		}
		if !w.ended() && w.goesOn() {
			return false
		}
	}
	return true
}

// report tells the host how far the runs are.
func (g *gathering) report() {
	if !g.r.call.HasProgress() {
		return
	}
	window := g.window
	if limit := g.r.cfg.MaxWait; limit > 0 {
		window = min(window, g.state.Used+limit)
	}
	g.r.call.Progress(g.used().Seconds(), window.Seconds(), statusLine(g.f.runs))
}

// tellTrouble logs to the host when a run cannot be read, and when it can again.
func (g *gathering) tellTrouble() {
	for _, w := range g.f.runs {
		if trouble := w.err != nil; trouble != w.told {
			w.told = trouble
			data := map[string]any{"run_id": w.id, "reading": "works again"}
			level := protocol.LevelInfo
			if trouble {
				data["reading"], level = "fails: "+plain.Line(w.err.Error(), 300), protocol.LevelWarning
			}
			g.r.call.Log(level, "fabro.gather", data)
		}
	}
}

// statusLine says in a line how far some runs are.
func statusLine(runs []*followed) string {
	ended := 0
	var parts []string
	for _, w := range runs {
		if w.ended() {
			ended++
			continue
		}
		if len(parts) == 3 {
			continue
		}
		part := fmt.Sprintf("%s %s", workflowLabel(w.run), w.run.Lifecycle.Status)
		if open := w.open(); len(open) > 0 {
			part = fmt.Sprintf("%s (%s) waits for an answer: %s", workflowLabel(w.run), w.id, plain.Line(open[0].Text, 120))
		} else if stage := w.currentStage(); stage != "" && w.run.Lifecycle.Status.Kind == wire.StatusRunning {
			part += ": " + plain.Line(stage, 60)
		}
		parts = append(parts, part)
	}
	if rest := len(runs) - ended - len(parts); rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", rest))
	}
	line := fmt.Sprintf("%d of %s ended", ended, plural.Count(len(runs), "run"))
	if len(parts) > 0 {
		line += "; " + strings.Join(parts, "; ")
	}
	return line
}

// result is where the runs stand.
func (g *gathering) result() gatherResult {
	out := gatherResult{
		Runs: []runSummary{}, WaitingFor: []waitingFor{}, Notes: append([]string{}, g.notes...),
		EndedBy: g.endedBy, TimedOut: g.endedBy == endedDeadline,
		Elapsed: int64(g.r.now().Sub(g.state.Started) / time.Second),
	}
	for _, w := range g.order {
		s := summarize(w.run)
		if w.gone {
			gone := "deleted"
			s.Status, s.StatusReason = "gone", &gone
		}
		out.Runs = append(out.Runs, s)
	}
	for _, w := range g.f.runs {
		if w.gone {
			out.Notes = append(out.Notes, w.id+" was deleted meanwhile")
		}
		if w.err != nil {
			out.Notes = append(out.Notes, fmt.Sprintf("%s could not be read just now (%s); its last known state is shown", w.id, plain.Line(w.err.Error(), 200)))
		}
		for _, q := range w.open() {
			out.WaitingFor = append(out.WaitingFor, g.r.waiting(w.id, &q))
		}
	}
	return out
}

func (g *gathering) reply() *reply {
	out := g.result()
	return &reply{text: g.r.gatherText(&out, g.f.runs, g.capped), structured: out, links: runLinks(g.f.runs)}
}

// gatherText is the result for who reads no structured values.
func (h *host) gatherText(out *gatherResult, runs []*followed, capped bool) string {
	page := &plain.Page{Rest: "The structured result has all runs; gather fewer runs at a time, or read one with " + nameGet + "."}
	ended := 0
	for _, w := range runs {
		if w.ended() {
			ended++
		}
	}
	page.Line("%s", gatherHeadline(out, ended, len(runs), capped))
	for _, w := range runs {
		if w.gone {
			page.Line("%s: gone, it was deleted meanwhile", w.id)
			continue
		}
		if w.goesOn() {
			page.Line("%s", h.runLineWith(w.run, "No question is open any more; wait for what it does next."))
		} else {
			page.Line("%s", h.shownLine(w.run, len(w.open())))
		}
		quoteError(page, w.run)
	}
	for i := range out.WaitingFor {
		h.pageQuestion(page, &out.WaitingFor[i])
	}
	for _, note := range out.Notes {
		page.Line("Note: %s.", strings.TrimSuffix(note, "."))
	}
	return page.String()
}

func gatherHeadline(out *gatherResult, ended, all int, capped bool) string {
	s := fmt.Sprintf("%d of %s ended, waited %d s.", ended, plural.Count(all, "run"), out.Elapsed)
	switch out.EndedBy {
	case endedAttention:
		s += " Every unfinished run waits for a person."
	case endedDeadline:
		s += " Time is up"
		if capped {
			s += ": this server caps one call (--max-wait)"
		}
		if len(out.WaitingFor) > 0 {
			s += fmt.Sprintf(", and a person has to answer %s, see below. Call %s again to go on waiting.", plural.Count(len(out.WaitingFor), "question"), nameGather)
		} else {
			s += ". Call " + nameGather + " again to go on waiting."
		}
	case endedDeclined:
		s += " The person left a question unanswered (see the notes); nothing was answered for them."
	case endedAskFailed:
		s += " The host could not ask the person (see the notes); nothing was answered for them."
	case endedInputClosed:
		s += " The host is going away; the runs go on."
	}
	return s
}
