package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"fabro-mcp/conformance/check"
	"fabro-mcp/conformance/runner"
	"fabro-mcp/conformance/transcript"
	"fabro-mcp/conformance/transcripts"
)

type checkCmd struct {
	playFlags
}

// Help is shown by check --help.
func (c *checkCmd) Help() string {
	return `Framing, ids, lifecycle, both eras, errors, schemas of everything listed, pagination, shutdown, process behaviour. No tool of the server is called. What the server does not offer is "not covered", never a failure:

  mcp-conformance check -- npx -y @modelcontextprotocol/server-everything`
}

// Run judges any server with what needs no fixture.
func (c *checkCmd) Run(w *world) error {
	all, err := runner.LoadFS(transcripts.FS(), ".")
	if err != nil {
		return err
	}
	cfg, err := c.config(w)
	if err != nil {
		return err
	}
	for _, t := range all {
		if generic(t) {
			cfg.Transcripts = append(cfg.Transcripts, t)
		}
	}
	cfg.Inspect = check.Inspect(compileSchema)
	rep, err := c.play(w, cfg)
	if err != nil {
		return err
	}
	return c.finish(w, rep)
}

// generic reports whether a transcript can be played against any server: it
// needs no fixture and is not about our own.
func generic(t *transcript.Transcript) bool {
	return !aboutFabro(t) && !slices.ContainsFunc(t.Needs, transcript.Need.Fixture)
}

// noNetwork refuses to load a schema from anywhere.
type noNetwork struct{}

func (noNetwork) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %s, and nothing is fetched", url)
}

// compileSchema checks a JSON Schema of a third party, with all of 2020-12.
func compileSchema(schema []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noNetwork{})
	const here = "https://schema.invalid/listed.json"
	if err := c.AddResource(here, doc); err != nil {
		return err
	}
	_, err = c.Compile(here)
	return err
}
