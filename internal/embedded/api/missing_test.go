package api

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"fabro-mcp/internal/openapi"
)

// Every operation of the Fabro API is answered: by the embedded server, or with a sentence that says what it lacks.
// Outside of /api/v1 there are only the pages of a real server's installation and login.
func TestEveryOperationIsAnswered(t *testing.T) {
	description, err := openapi.Load()
	if errors.Is(err, openapi.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{[^}]+\}`)
	plain := func(method, path string) string { return method + " " + parameter.ReplaceAllString(path, "{}") }
	ours := map[string]string{}
	for _, r := range new(Server).routes() {
		ours[plain(r.method, r.path)] = r.id
	}
	operations := 0
	for path, methods := range description.Document["paths"].(map[string]any) {
		for method, op := range methods.(map[string]any) {
			operation, _ := op.(map[string]any) // parameters are a list
			name, ok := operation["operationId"].(string)
			if !ok || !strings.HasPrefix(path, v1+"/") {
				continue
			}
			operations++
			if got := ours[plain(strings.ToUpper(method), path)]; got != name {
				t.Errorf("%s %s is %s, here %q", strings.ToUpper(method), path, name, got)
			}
		}
	}
	if operations < 100 {
		t.Errorf("only %d operations are described", operations)
	}
}

// No two operations have one name, and what is missing is not there as well.
func TestRoutes(t *testing.T) {
	names := map[string]bool{}
	mux := http.NewServeMux()
	for _, r := range new(Server).routes() {
		if names[r.id] {
			t.Errorf("%s is there twice", r.id)
		}
		names[r.id] = true
		mux.Handle(r.method+" "+r.path, http.NotFoundHandler()) // panics when two are in each other's way
	}
}
