package tools

import (
	"math"

	"github.com/oklog/ulid/v2"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/tools/args"
)

// Actions of fabro_run_pair.
const (
	pairStatus     = "status"
	pairStart      = "start"
	pairGet        = "get"
	pairMessage    = "message"
	pairEnd        = "end"
	pairTranscript = "transcript"
)

// pairParams are the arguments of fabro_run_pair.
type pairParams struct {
	Action          string
	RunID           string
	PairID          string
	StageID         string
	Text            string
	ClientMessageID string
	SinceSeq        args.Opt[int64]
	Limit           args.Opt[int64]
}

func (p *pairParams) fields() args.Fields {
	return args.Fields{
		{Name: "action", Required: true, Type: args.Text(&p.Action).OneOf(pairStatus, pairStart, pairGet, pairMessage, pairEnd, pairTranscript),
			Doc: "status: what can be paired with; start: join the agent of a stage; message: write to it; transcript: read what was said; get: the pair; end: leave."},
		{Name: "run_id", Required: true, Missing: "run_id is required", Type: runSelector(&p.RunID), Doc: runSelectorDoc},
		{Name: "pair_id", Type: args.Text(&p.PairID).Trimmed(), Doc: "The pair, a ULID; required for get, message, end and transcript."},
		{Name: "stage_id", Type: args.Text(&p.StageID).Trimmed(), Doc: "The stage, node@visit, as status lists it; required for start."},
		{Name: "text", Type: args.Text(&p.Text).Trimmed().MaxBytes(wire.MaxSteerLength, "text must be at most 8192 bytes for action message"),
			Doc: "The message, at most 8192 bytes of UTF-8; required for message."},
		{Name: "client_message_id", Type: args.Text(&p.ClientMessageID).Trimmed(), Doc: "For message: the same id sent twice is one message."},
		{Name: "since_seq", Type: args.Count(&p.SinceSeq, 0, math.MaxUint32), Doc: "For transcript: first sequence number to show."},
		{Name: "limit", Type: args.Count(&p.Limit, 0, wire.MaxEventLimit), Doc: "For transcript: how many entries; the server's default is 100."},
	}
}

func (p *pairParams) check() error {
	switch p.Action {
	case pairStatus:
		return nil
	case pairStart:
		if p.StageID == "" {
			return args.Errorf("stage_id is required for action start")
		}
		if _, _, err := wire.ParseStageID(p.StageID); err != nil {
			return args.Errorf("invalid stage_id for action start: %v", err)
		}
		return nil
	}
	if p.PairID == "" {
		return args.Errorf("pair_id is required for action %s", p.Action)
	}
	if reason := badULID(p.PairID); reason != "" {
		return args.Errorf("invalid pair_id for action %s: %s", p.Action, reason)
	}
	if p.Action == pairMessage && p.Text == "" {
		return args.Errorf("text is required for action message")
	}
	return nil
}

func (p *pairParams) mutates() bool {
	return p.Action == pairStart || p.Action == pairMessage || p.Action == pairEnd
}

// badULID says what is wrong with a ULID, "" for a good one.
func badULID(s string) string {
	switch _, err := ulid.ParseStrict(s); {
	case err == nil:
		return ""
	case len(s) != ulid.EncodedSize:
		return "invalid length"
	default:
		return "invalid character"
	}
}

// isULID reports whether a selector is a complete run id.
func isULID(s string) bool { return badULID(s) == "" }
