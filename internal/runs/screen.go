package runs

import (
	"bytes"
	"io"

	"fabro-mcp/tools/plain"
)

// maxLine bounds the unfinished line that a screen keeps back, in bytes.
const maxLine = 64 << 10

// screen is a terminal that what a run printed must not act on: sequences that
// move, colour or retitle are removed line by line. The line that has no end yet
// waits for it, or for Flush.
type screen struct {
	w    io.Writer
	rest []byte
}

func (s *screen) Write(b []byte) (int, error) {
	s.rest = append(s.rest, b...)
	end := bytes.LastIndexByte(s.rest, '\n') + 1
	if end == 0 && len(s.rest) > maxLine {
		end = len(s.rest)
	}
	if end == 0 {
		return len(b), nil
	}
	_, err := io.WriteString(s.w, plain.Clean(string(s.rest[:end])))
	s.rest = append(s.rest[:0], s.rest[end:]...)
	return len(b), err
}

// Flush prints the line without an end, and ends it.
func (s *screen) Flush() error {
	if len(s.rest) == 0 {
		return nil
	}
	_, err := io.WriteString(s.w, plain.Clean(string(s.rest))+"\n")
	s.rest = nil
	return err
}
