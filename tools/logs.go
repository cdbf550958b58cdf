package tools

import (
	"context"
	"fmt"
	"strings"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/plural"
	"fabro-mcp/tools/args"
	"fabro-mcp/tools/plain"
)

// Limits of fabro_run_logs.
const (
	maxLogBytes    = 64 << 10 // of one answer
	maxLogScan     = 16 << 20 // bytes that one search reads
	maxLogMatches  = 100
	maxTailLines   = 1000
	maxLogContext  = 20
	logSearchChunk = 256 << 10
)

// logsParams are the arguments of fabro_run_logs.
type logsParams struct {
	RunID     string
	StageID   string
	TailLines args.Opt[int64]
	Offset    args.Opt[int64]
	MaxBytes  args.Opt[int64]
	Query     string
	Context   args.Opt[int64]
}

func (p *logsParams) fields() args.Fields {
	return args.Fields{
		{Name: "run_id", Required: true, Missing: "run_id is required", Type: runSelector(&p.RunID), Doc: runSelectorDoc},
		{Name: "stage_id", Type: args.Text(&p.StageID).Trimmed(), Doc: "The stage, node@visit. Default: the stage that failed last, else the one that started last."},
		{Name: "tail_lines", Type: args.Count(&p.TailLines, 1, maxTailLines).Default(100), Doc: "The last lines of the log; used when neither offset nor query is given."},
		{Name: "offset", Type: args.Count(&p.Offset, 0, 1<<50), Doc: "Read from this byte on: next_offset of the answer before. With query: search from here on."},
		{Name: "max_bytes", Type: args.Count(&p.MaxBytes, 256, maxLogBytes).Default(16_000), Doc: "With offset: how much to read."},
		{Name: "query", Type: args.Text(&p.Query), Doc: "Show only lines that contain this text, with their surroundings. Upper and lower case differ."},
		{Name: "context_lines", Type: args.Count(&p.Context, 0, maxLogContext).Default(2), Doc: "With query: lines shown before and after a match."},
	}
}

func (p *logsParams) check() error {
	if p.TailLines.Set && (p.Offset.Set || p.Query != "") {
		return args.Errorf("tail_lines cannot be combined with offset or query")
	}
	if p.StageID != "" {
		if _, _, err := wire.ParseStageID(p.StageID); err != nil {
			return args.Errorf("invalid stage_id: %v", err)
		}
	}
	return nil
}

type logsResult struct {
	RunID      string `json:"run_id"`
	StageID    string `json:"stage_id"`
	Text       string `json:"text"`
	Offset     int64  `json:"offset"`
	NextOffset *int64 `json:"next_offset"` // null at the end of a finished log
	TotalBytes int64  `json:"total_bytes"`
	EOF        bool   `json:"eof"`
	Matches    *int   `json:"matches"`
}

const logsSchema = `{"type":"object","properties":{"run_id":{"type":"string"},"stage_id":{"type":"string"},"text":{"type":"string"},"offset":{"type":"integer","minimum":0},` +
	`"next_offset":{"type":["integer","null"],"description":"Pass as offset to go on; null when the stage has ended and all was read"},"total_bytes":{"type":"integer","minimum":0},` +
	`"eof":{"type":"boolean","description":"The stage has ended and nothing follows"},"matches":{"type":["integer","null"]}},` +
	`"required":["run_id","stage_id","text","offset","next_offset","total_bytes","eof","matches"]}`

func (p *logsParams) run(ctx context.Context, r *request) (*reply, error) {
	client, run, err := r.resolveOne(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	stage := p.StageID
	if stage == "" {
		if stage, err = stageOfInterest(ctx, client, run.ID); err != nil {
			return nil, err
		}
	}
	out := &logsResult{RunID: run.ID, StageID: stage}
	switch {
	case p.Query != "":
		err = p.search(ctx, client, out)
	case p.Offset.Set:
		err = p.from(ctx, client, out)
	default:
		err = p.tail(ctx, client, out)
	}
	if err != nil {
		return nil, stageError(ctx, client, run.ID, stage, err)
	}
	return &reply{text: p.text(run, out), structured: out, links: linksTo(run, "logs/"+stage)}, nil
}

// stageOfInterest is the stage that failed last, or started last.
func stageOfInterest(ctx context.Context, client *fabroapi.Client, runID string) (string, error) {
	stages, err := client.Stages(ctx, runID)
	if err != nil {
		return "", err
	}
	best := ""
	for _, s := range stages {
		if s.Status == wire.StageFailed {
			best = s.ID
		}
	}
	for i := len(stages) - 1; best == "" && i >= 0; i-- {
		if h := stages[i].Handler; h == "command" || h == "agent" {
			best = stages[i].ID
		}
	}
	if best == "" {
		return "", fmt.Errorf("%w; %s so far", errNoStage, plural.Count(len(stages), "stage"))
	}
	return best, nil
}

// stageError names the stages there are when one was not found.
func stageError(ctx context.Context, client *fabroapi.Client, runID, stage string, err error) error {
	if !isGone(err) {
		return err
	}
	stages, listErr := client.Stages(ctx, runID)
	if listErr != nil {
		return err
	}
	ids := make([]string, len(stages))
	for i, s := range stages {
		ids[i] = s.ID
	}
	near := ""
	if n := args.Nearest(stage, ids); n != "" {
		near = fmt.Sprintf(" Did you mean %q?", n)
	}
	return fmt.Errorf("%s has no log of stage %q (%w). Stages: %s.%s", runID, stage, err, plain.Clip(strings.Join(ids, ", "), 2000), near)
}

func (out *logsResult) take(log *wire.CommandLog) {
	out.TotalBytes, out.EOF = log.TotalBytes, log.EOF
	if !log.EOF {
		out.NextOffset = &log.NextOffset
	}
}

func (p *logsParams) tail(ctx context.Context, client *fabroapi.Client, out *logsResult) error {
	log, err := client.StageLog(ctx, out.RunID, out.StageID, 0, maxLogBytes)
	if err != nil {
		return err
	}
	if log.TotalBytes > int64(len(log.Bytes)) {
		out.Offset = log.TotalBytes - maxLogBytes
		if log, err = client.StageLog(ctx, out.RunID, out.StageID, out.Offset, maxLogBytes); err != nil {
			return err
		}
	}
	out.take(log)
	text := lastLines(string(log.Bytes), int(p.TailLines.Value))
	out.Offset += int64(len(strings.TrimRight(string(log.Bytes), "\n")) - len(text))
	out.Text = plain.Clean(text)
	return nil
}

func (p *logsParams) from(ctx context.Context, client *fabroapi.Client, out *logsResult) error {
	out.Offset = p.Offset.Value
	log, err := client.StageLog(ctx, out.RunID, out.StageID, out.Offset, int(p.MaxBytes.Value))
	if err != nil {
		return err
	}
	out.take(log)
	out.Text = plain.Clean(string(log.Bytes))
	return nil
}

// search reads the log in chunks and keeps the lines that match, with line numbers
// counted from where it began.
func (p *logsParams) search(ctx context.Context, client *fabroapi.Client, out *logsResult) error {
	out.Offset = p.Offset.Value
	at := out.Offset
	s := &lineSearch{query: p.Query, context: int(p.Context.Value)}
	for read := 0; read < maxLogScan; {
		log, err := client.StageLog(ctx, out.RunID, out.StageID, at, logSearchChunk)
		if err != nil {
			return err
		}
		out.take(log)
		s.feed(log.Bytes)
		read += len(log.Bytes)
		at = log.NextOffset
		if len(log.Bytes) == 0 || log.EOF || at >= log.TotalBytes || s.matches >= maxLogMatches || s.out.Len() > maxLogBytes {
			break
		}
	}
	s.end()
	out.Text, out.Matches = plain.Clean(s.out.String()), &s.matches
	if at < out.TotalBytes {
		out.NextOffset = &at
	}
	return nil
}

// lineSearch finds lines in a text that comes in pieces.
type lineSearch struct {
	query   string
	context int

	out     strings.Builder
	matches int
	line    int      // number of the current line
	rest    string   // beginning of a line whose end is still to come
	before  []string // lines before, for context
	after   int      // lines still to be shown after a match
	shown   int      // number of the line shown last
}

func (s *lineSearch) feed(data []byte) {
	text := s.rest + string(data)
	for {
		line, rest, whole := strings.Cut(text, "\n")
		if !whole {
			s.rest = text
			return
		}
		s.add(line)
		text = rest
	}
}

func (s *lineSearch) end() {
	if s.rest != "" {
		s.add(s.rest)
		s.rest = ""
	}
}

func (s *lineSearch) add(line string) {
	s.line++
	if s.matches >= maxLogMatches {
		return
	}
	if strings.Contains(line, s.query) {
		s.matches++
		for i, earlier := range s.before {
			s.show(s.line-len(s.before)+i, earlier, "-")
		}
		s.before = s.before[:0]
		s.show(s.line, line, ":")
		s.after = s.context
		return
	}
	if s.after > 0 {
		s.after--
		s.show(s.line, line, "-")
		return
	}
	if s.context > 0 {
		if len(s.before) == s.context {
			s.before = append(s.before[:0], s.before[1:]...)
		}
		s.before = append(s.before, line)
	}
}

func (s *lineSearch) show(number int, line, mark string) {
	if s.shown > 0 && number > s.shown+1 {
		s.out.WriteString("--\n")
	}
	s.shown = number
	fmt.Fprintf(&s.out, "%d%s %s\n", number, mark, plain.Clip(line, 2000))
}

func (p *logsParams) text(run *wire.Run, out *logsResult) string {
	page := &plain.Page{Rest: "Ask for fewer lines, or read on with offset."}
	what := fmt.Sprintf("%s stage %s, %s in all", run.ID, plain.Line(out.StageID, 80), plural.Count(out.TotalBytes, "byte"))
	switch {
	case out.Matches != nil:
		page.Line("%s: %s from byte %d on.", what, plural.Count(*out.Matches, "match", "matches"), out.Offset)
	default:
		page.Line("%s: from byte %d on.", what, out.Offset)
	}
	if out.Text == "" {
		page.Line("Nothing to show.")
	}
	page.Quote("Log", out.Text)
	switch {
	case out.NextOffset == nil:
		page.Line("The stage has ended; that is the end of its log.")
	case *out.NextOffset >= out.TotalBytes:
		page.Line(`That is all so far; what is written later: "offset":%d.`, *out.NextOffset)
	default:
		page.Line(`More follows: "offset":%d.`, *out.NextOffset)
	}
	return page.String()
}
