package workflow

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Condition is a parsed condition of an edge or of a manager loop:
//
//	expr   := and ("||" and)*
//	and    := unary ("&&" unary)*
//	unary  := "!" unary | clause
//	clause := KEY [ OP [VALUE] ]
//	OP     := "=" | "!=" | ">" | "<" | ">=" | "<=" | "contains" | "matches"
//
// There are no parentheses. The empty text is true.
type Condition struct {
	any [][]clause // alternatives, each a list of clauses that must all hold
}

type clause struct {
	negated bool
	key     string
	op      string // "" asks whether the key is truthy
	value   string
	pattern *regexp.Regexp // for matches
	size    int            // of the compiled pattern, in instructions
}

// maxPatternSize bounds a compiled regular expression, in instructions; nested
// repetitions multiply them.
const maxPatternSize = 50_000

// ConditionError says why a text is no condition. Offset is a byte offset in
// the text.
type ConditionError struct {
	Text    string
	Offset  int
	Message string
}

func (e *ConditionError) Error() string {
	return fmt.Sprintf("%s (at character %d of the condition)", e.Message, utf8.RuneCountInString(e.Text[:e.Offset])+1)
}

// ParseCondition reads a condition, in time linear in its length. Errors are
// *ConditionError.
func ParseCondition(text string) (*Condition, error) {
	l := &conditionLexer{text: text}
	c := &Condition{}
	if l.next().kind == conditionEnd {
		return c, nil
	}
	all := []clause{}
	for {
		cl, err := l.clause()
		if err != nil {
			return nil, err
		}
		all = append(all, cl)
		switch t := l.take(); t.kind {
		case conditionAnd:
		case conditionOr:
			c.any = append(c.any, all)
			all = nil
		case conditionEnd:
			c.any = append(c.any, all)
			return c, nil
		default:
			return nil, l.fail(t, "expected && or ||, found "+t.describe()+hintAfterClause(cl, t))
		}
	}
}

func hintAfterClause(c clause, t conditionToken) string {
	if t.kind == conditionWord && c.op != "" && c.op != "contains" {
		return "; a value with spaces needs quotes"
	}
	return ""
}

type conditionKind uint8

const (
	conditionEnd conditionKind = iota
	conditionWord
	conditionQuoted
	conditionOperator // = != > < >= <=
	conditionAnd
	conditionOr
	conditionNot
	conditionBad
)

type conditionToken struct {
	kind conditionKind
	text string
	at   int
	bad  string // why a conditionBad is one
}

func (t conditionToken) describe() string {
	switch t.kind {
	case conditionEnd:
		return "the end"
	case conditionQuoted:
		return fmt.Sprintf("%.40q", t.text)
	case conditionBad:
		return t.bad
	default:
		return fmt.Sprintf("`%.40s`", t.text)
	}
}

type conditionLexer struct {
	text   string
	pos    int
	ahead  conditionToken
	peeked bool
}

// next is the next token without taking it.
func (l *conditionLexer) next() conditionToken {
	if !l.peeked {
		l.ahead, l.peeked = l.scan(), true
	}
	return l.ahead
}

func (l *conditionLexer) take() conditionToken {
	t := l.next()
	l.peeked = false
	return t
}

func (l *conditionLexer) fail(t conditionToken, message string) error {
	if t.kind == conditionBad {
		message = t.bad
	}
	return &ConditionError{Text: l.text, Offset: t.at, Message: message}
}

var conditionSymbols = []struct {
	text string
	kind conditionKind
}{
	{"&&", conditionAnd}, {"||", conditionOr}, {"!=", conditionOperator}, {">=", conditionOperator},
	{"<=", conditionOperator}, {"=", conditionOperator}, {">", conditionOperator}, {"<", conditionOperator}, {"!", conditionNot},
}

func (l *conditionLexer) scan() conditionToken {
	rest := strings.TrimLeftFunc(l.text[l.pos:], unicode.IsSpace)
	l.pos = len(l.text) - len(rest)
	t := conditionToken{at: l.pos}
	if rest == "" {
		return t
	}
	if rest[0] == '"' {
		return l.quoted(t)
	}
	for _, s := range conditionSymbols {
		if strings.HasPrefix(rest, s.text) {
			t.kind, t.text = s.kind, s.text
			l.pos += len(s.text)
			return t
		}
	}
	if rest[0] == '&' || rest[0] == '|' {
		t.kind, t.bad = conditionBad, fmt.Sprintf("a single `%c` is no operator; write it twice", rest[0])
		l.pos++
		return t
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"=!><&|`, r) })
	if end < 0 {
		end = len(rest)
	}
	t.kind, t.text = conditionWord, rest[:end]
	l.pos += end
	return t
}

// quoted takes a word in quotes; a backslash makes the next character literal,
// except that \n and \t are what they are elsewhere.
func (l *conditionLexer) quoted(t conditionToken) conditionToken {
	var b strings.Builder
	for i := l.pos + 1; i < len(l.text); i++ {
		switch c := l.text[i]; c {
		case '"':
			t.kind, t.text = conditionQuoted, b.String()
			l.pos = i + 1
			return t
		case '\\':
			if i++; i == len(l.text) {
				break
			}
			switch l.text[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '"', '\\':
				b.WriteByte(l.text[i])
			default: // keeps regular expressions such as "\d+" whole
				b.WriteByte('\\')
				b.WriteByte(l.text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	t.kind, t.bad = conditionBad, "a quote is never closed"
	l.pos = len(l.text)
	return t
}

func (l *conditionLexer) clause() (clause, error) {
	var c clause
	for l.next().kind == conditionNot {
		l.take()
		c.negated = !c.negated
	}
	key := l.take()
	if key.kind != conditionWord && key.kind != conditionQuoted {
		return c, l.fail(key, "expected a key such as outcome or context.name, found "+key.describe())
	}
	if strings.HasPrefix(key.text, "(") && key.kind == conditionWord {
		return c, l.fail(key, "conditions have no parentheses; && binds tighter than ||")
	}
	c.key = key.text
	op := l.next()
	switch {
	case op.kind == conditionOperator:
	case op.kind == conditionWord && (op.text == "contains" || op.text == "matches"):
	default:
		return c, nil
	}
	l.take()
	c.op = op.text
	value := l.next()
	switch {
	case value.kind == conditionWord || value.kind == conditionQuoted:
		l.take()
		c.value = value.text
	case c.op == "=" && value.kind == conditionOperator && value.text == "=":
		return c, l.fail(value, "equality is written with a single =")
	case (c.op == "=" || c.op == "!=") && (value.kind == conditionEnd || value.kind == conditionAnd || value.kind == conditionOr):
		return c, nil // compares with the empty text
	default:
		return c, l.fail(value, fmt.Sprintf("expected a value after `%s`, found %s", c.op, value.describe()))
	}
	if c.op == "matches" {
		pattern, err := regexp.Compile(c.value)
		if err != nil {
			return c, l.fail(value, fmt.Sprintf("bad regular expression %.60q: %s", c.value, strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
		}
		if c.size = patternSize(c.value); c.size > maxPatternSize {
			return c, l.fail(value, "the regular expression is too large: its repetitions multiply")
		}
		c.pattern = pattern
	}
	return c, nil
}

// patternSize is the number of instructions a valid regular expression compiles
// to.
func patternSize(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// Keys are the keys the condition looks at, in order, with repetitions.
func (c *Condition) Keys() []string {
	var keys []string
	for _, all := range c.any {
		for i := range all {
			keys = append(keys, all[i].key)
		}
	}
	return keys
}

// comparesOutcome reports whether a clause has the form `outcome=…`.
func (c *Condition) comparesOutcome() bool {
	for _, all := range c.any {
		for i := range all {
			if all[i].key == "outcome" && all[i].op == "=" {
				return true
			}
		}
	}
	return false
}
