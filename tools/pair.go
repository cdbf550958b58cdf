package tools

import (
	"context"
	"fmt"
	"strings"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/plural"
	"fabro-mcp/tools/plain"
)

type pairResult struct {
	RunID  string `json:"run_id"`
	Action string `json:"action"`
	Result any    `json:"result"`
}

const pairSchema = `{"type":"object","properties":{"run_id":{"type":"string"},"action":{"type":"string"},` +
	`"result":{"type":"object","description":"status: current_pair and targets; start, get, end: the pair; message: the accepted message; transcript: data and meta"}},` +
	`"required":["run_id","action","result"]}`

func (p *pairParams) run(ctx context.Context, r *request) (*reply, error) {
	client, run, err := r.resolveOne(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	result, text, err := p.do(ctx, client, run)
	if err != nil {
		return nil, err
	}
	return &reply{text: text, structured: pairResult{RunID: run.ID, Action: p.Action, Result: result}, links: linksTo(run, "")}, nil
}

func (p *pairParams) do(ctx context.Context, client *fabroapi.Client, run *wire.Run) (result any, text string, err error) {
	page := &plain.Page{Rest: "Read on with since_seq."}
	switch p.Action {
	case pairStatus:
		status, err := client.PairStatus(ctx, run.ID)
		if err != nil {
			return nil, "", err
		}
		if status.Targets == nil {
			status.Targets = []wire.PairTarget{}
		}
		pageStatus(page, run, status)
		return status, page.String(), nil
	case pairStart:
		pair, err := client.PairStart(ctx, run.ID, p.StageID)
		return pair, pairText("Paired", run, pair) + nextMessage(pair), err
	case pairGet:
		pair, err := client.PairGet(ctx, run.ID, p.PairID)
		return pair, pairText("Pair", run, pair), err
	case pairEnd:
		pair, err := client.PairEnd(ctx, run.ID, p.PairID)
		return pair, pairText("Ended", run, pair), err
	case pairMessage:
		message, err := client.PairMessage(ctx, run.ID, p.PairID, p.Text, p.ClientMessageID)
		if err != nil {
			return nil, "", err
		}
		return message, fmt.Sprintf("Message %s was accepted for %s. Read the answer with action transcript.", message.MessageID, run.ID), nil
	}
	transcript, err := client.PairTranscript(ctx, run.ID, p.PairID, p.SinceSeq.Value, int(p.Limit.Value))
	if err != nil {
		return nil, "", err
	}
	if transcript.Data == nil {
		transcript.Data = []wire.PairEntry{}
	}
	pageTranscript(page, transcript)
	return transcript, page.String(), nil
}

func pageStatus(page *plain.Page, run *wire.Run, status *wire.PairStatus) {
	if pair := status.CurrentPair; pair != nil {
		page.Line("%s", pairText("Active", run, pair)+nextMessage(pair))
	}
	if len(status.Targets) == 0 {
		page.Line("%s (%s): no stage can be paired with now.", run.ID, run.Lifecycle.Status)
	}
	for _, target := range status.Targets {
		page.Line(`Can be paired with: %s {"action":"start","run_id":"%s","stage_id":"%s"} (%s)`, namePair, run.ID, target.StageID, plain.Line(target.NodeLabel, 80))
	}
}

func pairText(what string, run *wire.Run, pair *wire.PairRecord) string {
	if pair == nil {
		return ""
	}
	s := fmt.Sprintf("%s: pair %s of %s at stage %s is %s.", what, pair.PairID, run.ID, plain.Line(pair.Target.StageID, 80), pair.Status)
	if pair.FailureReason != nil {
		s += " Reason: " + plain.Line(*pair.FailureReason, 200) + "."
	}
	return s
}

func nextMessage(pair *wire.PairRecord) string {
	if pair == nil {
		return ""
	}
	return fmt.Sprintf(` Write to it: %s {"action":"message","run_id":"%s","pair_id":"%s","text":"…"}`, namePair, pair.RunID, pair.PairID)
}

// pageTranscript quotes what was said, entry by entry.
func pageTranscript(page *plain.Page, transcript *wire.PairTranscript) {
	page.Line("%s.", plural.Count(len(transcript.Data), "transcript entry", "transcript entries"))
	var b strings.Builder
	for _, e := range transcript.Data {
		text := ""
		for _, candidate := range []*string{e.Text, e.Summary, e.Message} {
			if candidate != nil {
				text = *candidate
				break
			}
		}
		fmt.Fprintf(&b, "#%d %s", e.Seq, e.Kind)
		if e.ToolName != "" {
			fmt.Fprintf(&b, " %s %s", e.ToolName, e.Status)
		}
		fmt.Fprintf(&b, ": %s\n", plain.Clip(text, 2000))
	}
	page.Quote("Transcript", b.String())
	if transcript.Meta.HasMore {
		page.Line("More follows: since_seq %d.", transcript.Meta.NextSinceSeq)
	}
}
