package workflow

import (
	"sort"
	"unicode/utf8"
)

// Source is the text of one file, with what is needed to turn a byte offset
// into a line and a column.
type Source struct {
	// Path is the name shown in messages: a manifest key or a path on disk.
	Path string
	Text string

	lines []int // byte offset at which each line starts
	runes []int // number of characters before each multiple of runeStride; nil when the text is ASCII
}

// runeStride bounds the work for one column: workflow files written by programs
// may have everything on one line.
const runeStride = 1024

// NewSource indexes text, once, in linear time.
func NewSource(path, text string) *Source {
	s := &Source{Path: path, Text: text, lines: []int{0}}
	ascii := true
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
		ascii = ascii && text[i] < utf8.RuneSelf
	}
	if !ascii {
		count := 0
		for i := 0; i < len(text); i++ {
			if i%runeStride == 0 {
				s.runes = append(s.runes, count)
			}
			if utf8.RuneStart(text[i]) {
				count++
			}
		}
	}
	return s
}

// LineColumn gives the 1-based line and column of a byte offset. Columns count
// characters, not bytes, and a tab is one character.
func (s *Source) LineColumn(offset int) (line, column int) {
	offset = min(max(offset, 0), len(s.Text))
	line = sort.Search(len(s.lines), func(i int) bool { return s.lines[i] > offset })
	start := s.lines[line-1]
	return line, s.runesBefore(offset) - s.runesBefore(start) + 1
}

func (s *Source) runesBefore(offset int) int {
	if len(s.runes) == 0 {
		return offset
	}
	block := min(offset/runeStride, len(s.runes)-1)
	n := s.runes[block]
	for i := block * runeStride; i < offset; i++ {
		if utf8.RuneStart(s.Text[i]) {
			n++
		}
	}
	return n
}

// Position is a place in a source file. The zero value is no place at all: it
// belongs to what was never written in a file.
type Position struct {
	Source *Source
	Offset int // in bytes
}

// Known reports whether the position is a place in a file.
func (p Position) Known() bool { return p.Source != nil }

// Line is the 1-based line, 0 when the position is unknown.
func (p Position) Line() int {
	line, _ := p.LineColumn()
	return line
}

// Column is the 1-based column in characters, 0 when the position is unknown.
func (p Position) Column() int {
	_, column := p.LineColumn()
	return column
}

// LineColumn is Line and Column in one.
func (p Position) LineColumn() (line, column int) {
	if p.Source == nil {
		return 0, 0
	}
	return p.Source.LineColumn(p.Offset)
}
