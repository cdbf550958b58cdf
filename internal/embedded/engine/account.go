package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

const (
	// accountStage is how much of one stage's text the account of a run quotes, from its end, in characters.
	accountStage = 2000

	// accountTotal bounds the quotations of all stages together; the latest ones come first in being quoted.
	accountTotal = 12_000
)

// account is what an agent command is told before its prompt: the goal, and what the stages so far came to.
func (s *stage) account(ctx context.Context) string {
	var b strings.Builder
	if goal := s.w.compiled.Goal; goal != "" {
		fmt.Fprintf(&b, "# Goal\n\n%s\n\n", goal)
	}
	entries := s.w.stagesSoFar(ctx)
	if len(entries) > 0 {
		b.WriteString("# Stages so far\n\n")
		for _, e := range slices.Backward(entries) {
			b.WriteString(e)
		}
	}
	b.WriteString("# Task\n\n")
	return b.String()
}

// stagesSoFar describes the stages, the latest first, each node once. What no room is left for is named only; names
// alone may take up the room again.
func (w *walk) stagesSoFar(ctx context.Context) []string {
	var entries []string
	seen := map[string]bool{}
	quoted, named := 0, 0
	for _, id := range slices.Backward(w.completed) {
		o := w.outcomes[id]
		if seen[id] || o == nil {
			continue
		}
		seen[id] = true
		name := id
		if n := w.graph.Node(id); n != nil && n.Label() != id {
			name = n.Label() + " (" + id + ")"
		}
		head := fmt.Sprintf("## %s: %s\n\n", name, o.Status)
		if named += len(head); named > accountTotal {
			break
		}
		text := ""
		if room := min(accountStage, accountTotal-quoted); room > 0 {
			text = lastCharacters(strings.TrimSpace(w.textOf(ctx, id, o)), room)
			quoted += len([]rune(text))
		}
		if text != "" {
			text += "\n\n"
		}
		entries = append(entries, head+text)
	}
	return entries
}

// textOf is what a stage said: its response, its output, the answer of a person, or why it failed.
func (w *walk) textOf(ctx context.Context, id string, o *Outcome) string {
	for _, key := range []string{"response." + id, "command.output", "human.gate." + id + ".answer"} {
		value, ok := o.ContextUpdates[key]
		if !ok {
			continue
		}
		value, err := w.r.blobs.resolve(ctx, value)
		if text, ok := value.(string); ok && err == nil && strings.TrimSpace(text) != "" {
			return text
		}
	}
	if value, ok := o.ContextUpdates["parallel.results"]; ok {
		if value, err := w.r.blobs.resolve(ctx, value); err == nil {
			if raw, err := marshal(value); err == nil {
				return string(raw)
			}
		}
	}
	if o.Failure != nil {
		return o.Failure.Message
	}
	return ""
}
