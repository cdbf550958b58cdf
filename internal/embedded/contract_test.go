package embedded

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/openapi"
)

// contract is the description of the Fabro API. Where it is at hand, every JSON answer in the tests of this package is held against it.
type contract struct {
	*openapi.Description
	mu      sync.Mutex
	checked map[string]int // operation and status → how often
}

var theContract = sync.OnceValues(func() (*contract, error) {
	description, err := openapi.Load(exempt)
	if errors.Is(err, openapi.ErrAbsent) {
		return nil, nil
	}
	return &contract{Description: description, checked: map[string]int{}}, err
})

// exempt takes back what the real server does not do either (each with its reason).
func exempt(document map[string]any) {
	schemas := document["components"].(map[string]any)["schemas"].(map[string]any)
	// The settings a run keeps have no list of environments beside its own.
	settings := schemas["WorkflowSettings"].(map[string]any)
	settings["required"] = slices.DeleteFunc(settings["required"].([]any), func(v any) bool { return v == "environments" })
}

// check says how an answer differs from its description.
func (c *contract) check(method, path string, status int, body []byte) error {
	path, _, _ = strings.Cut(path, "?")
	if strings.HasPrefix(path, "/embedded/") {
		return nil // our own
	}
	if path != "/health" {
		path = wire.APIPrefix + path
	}
	if status >= 400 {
		// Errors are one envelope everywhere, also where the description forgets to mention the status.
		return c.validate("/components/schemas/ErrorResponse", body)
	}
	pointer, err := c.Operation(method, path)
	if err != nil {
		return err
	}
	found, _ := c.At(pointer)
	op := found.(map[string]any)
	resp, ok := op["responses"].(map[string]any)[strconv.Itoa(status)].(map[string]any)
	if !ok {
		return fmt.Errorf("%s %s: status %d is not described", method, path, status)
	}
	c.mu.Lock()
	c.checked[fmt.Sprint(op["operationId"], " ", status)]++
	c.mu.Unlock()
	content, _ := resp["content"].(map[string]any)
	if len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("%s %s: a body where none is described: %s", method, path, body)
		}
		return nil
	}
	if _, isJSON := content["application/json"]; !isJSON {
		return nil
	}
	return c.validate(pointer+"/responses/"+strconv.Itoa(status)+"/content/application~1json/schema", body)
}

func (c *contract) validate(pointer string, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
	if err != nil {
		return fmt.Errorf("%w in %s", err, body)
	}
	if err := c.Validate(pointer, value); err != nil {
		return fmt.Errorf("%w\nin %.4000s", err, body)
	}
	return nil
}

// hold makes every answer of p be held against the description. Where that is not at hand it says so once and the tests go on without.
func (p *peer) hold() *peer {
	c, err := theContract()
	if err != nil {
		p.t.Fatal(err)
	}
	if c == nil {
		p.t.Log("FABRO_REFERENCE_DATA is not set: answers are not held against the description of the Fabro API")
		return p
	}
	p.seen = func(method, path string, status int, body []byte) {
		if err := c.check(method, path, status, body); err != nil {
			p.t.Errorf("%s %s → %d: %v", method, path, status, err)
		}
	}
	return p
}

// mustCover fails a test in which an operation was not answered with a status it should have seen.
func mustCover(t *testing.T, want ...string) {
	c, _ := theContract()
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range want {
		if c.checked[w] == 0 {
			t.Errorf("no answer was held against %s", w)
		}
	}
}
