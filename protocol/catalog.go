package protocol

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
)

func itoa(n int) string { return strconv.Itoa(n) }

// rendered is a list as the peers of one revision see it: each entry, and all of
// them joined.
type rendered struct {
	names []string // what each entry is found by
	items [][]byte
	all   []byte // a JSON array
}

// renderedByRevision renders a list once a revision.
type renderedByRevision struct {
	mu    sync.Mutex // protects byRev
	byRev map[*revision]*rendered
}

func (c *renderedByRevision) get(rev *revision, n int, item func(i int, b []byte) (name string, out []byte, err error)) (*rendered, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if list := c.byRev[rev]; list != nil {
		return list, nil
	}
	list := &rendered{all: []byte{'['}}
	for i := range n {
		name, one, err := item(i, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list.names, list.items = append(list.names, name), append(list.items, one)
		list.all = append(comma(list.all), one...)
	}
	list.all = append(list.all, ']')
	if c.byRev == nil {
		c.byRev = make(map[*revision]*rendered)
	}
	c.byRev[rev] = list
	return list, nil
}

// toolSet is one state of the set of tools; it never changes.
type toolSet struct {
	tools  []Tool
	byName map[string]*compiledTool
	waits  bool // some of them only wait
	lists  renderedByRevision
}

type compiledTool struct {
	*Tool
	input, output lazySchema
}

func newToolSet(tools []Tool, tasks bool) (*toolSet, error) {
	set := &toolSet{tools: append([]Tool(nil), tools...), byName: make(map[string]*compiledTool, len(tools))}
	for i := range set.tools {
		t := &set.tools[i]
		if err := t.check(); err != nil {
			return nil, err
		}
		if set.byName[t.Name] != nil {
			return nil, fmt.Errorf("two tools are named %s", t.Name)
		}
		if t.Task == TaskRequired && !tasks {
			return nil, fmt.Errorf("tool %s requires a task, but the server has no Tasks", t.Name)
		}
		set.byName[t.Name] = &compiledTool{Tool: t, input: lazySchema{text: t.InputSchema}, output: lazySchema{text: t.OutputSchema}}
		set.waits = set.waits || t.Waits
	}
	return set, nil
}

// called is the tool that a tools/call names, nil where there is none.
func (set *toolSet) called(r *request) *compiledTool {
	raw := r.param("name")
	if !isString(raw) {
		return nil
	}
	if name := raw[1 : len(raw)-1]; bytes.IndexByte(name, '\\') < 0 {
		return set.byName[string(name)]
	}
	name, _ := stringValue(raw)
	return set.byName[name]
}

// promptSet is one state of the set of prompts; it never changes.
type promptSet struct {
	prompts []Prompt
	byName  map[string]*Prompt
	lists   renderedByRevision
}

func newPromptSet(prompts []Prompt) (*promptSet, error) {
	set := &promptSet{prompts: append([]Prompt(nil), prompts...), byName: make(map[string]*Prompt, len(prompts))}
	for i := range set.prompts {
		p := &set.prompts[i]
		if p.Name == "" || p.Get == nil {
			return nil, fmt.Errorf("prompt %q: Name and Get are required", p.Name)
		}
		if set.byName[p.Name] != nil {
			return nil, fmt.Errorf("two prompts are named %s", p.Name)
		}
		set.byName[p.Name] = p
	}
	return set, nil
}

func serveToolsList(r *request, b []byte) ([]byte, error) {
	s := r.conn.server
	set := s.tools.Load()
	list, err := set.lists.get(r.rev, len(set.tools), func(i int, b []byte) (string, []byte, error) {
		t := &set.tools[i]
		b, err := t.append(b, r.rev, s.Tasks != nil)
		return t.Name, b, err
	})
	if err != nil {
		return b, err
	}
	r.ttl, r.scope = s.opts.ListTTL, ScopePublic
	return r.appendPage(b, "tools", list)
}

func servePromptsList(r *request, b []byte) ([]byte, error) {
	s := r.conn.server
	set := s.prompts.Load()
	list, err := set.lists.get(r.rev, len(set.prompts), func(i int, b []byte) (string, []byte, error) {
		p := &set.prompts[i]
		return p.Name, p.append(b, r.rev), nil
	})
	if err != nil {
		return b, err
	}
	r.ttl, r.scope = s.opts.ListTTL, ScopePublic
	return r.appendPage(b, "prompts", list)
}
