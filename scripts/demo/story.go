package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// say prints one line of the story.
func (s *stage) say(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}

// chapter begins a host's part.
func (s *stage) chapter(title string) {
	s.say("\n%s\n%s", title, strings.Repeat("=", len(title)))
}

// step says what happens next.
func (s *stage) step(format string, args ...any) {
	s.say("\n * "+format, args...)
}

// sent shows a request: a method, or a tool with its arguments.
func (s *stage) sent(name string, arguments map[string]any) {
	if len(arguments) == 0 {
		s.say("   → %s", name)
		return
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // literals of this program
	}
	s.say("   → %s %s", name, text)
}

// came shows an answer, each of its lines.
func (s *stage) came(text string) {
	mark := "←"
	for line := range strings.Lines(strings.TrimSpace(text)) {
		s.say("   %s %s", mark, strings.TrimRight(line, "\n"))
		mark = " "
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
