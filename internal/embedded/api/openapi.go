package api

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
)

var pathParameter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{([A-Za-z]+)\}`) })

// openAPI describes the operations the embedded server has, by name. Their schemas are those of the Fabro Run API.
func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) error {
	paths := map[string]map[string]any{}
	for _, route := range s.routes() {
		op := map[string]any{"operationId": route.id, "responses": map[string]any{
			"default": map[string]any{"description": "As in the Fabro Run API; errors are the error envelope."}}}
		var parameters []any
		for _, m := range pathParameter().FindAllStringSubmatch(route.path, -1) {
			parameters = append(parameters, map[string]any{"name": m[1], "in": "path", "required": true, "schema": map[string]string{"type": "string"}})
		}
		if parameters != nil {
			op["parameters"] = parameters
		}
		if route.open {
			op["security"] = []any{}
		}
		if paths[route.path] == nil {
			paths[route.path] = map[string]any{}
		}
		paths[route.path][strings.ToLower(route.method)] = op
	}
	return respond(w, http.StatusOK, map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "Fabro Run API, embedded server", "version": s.cfg.Version,
			"description": "What the embedded server answers of the Fabro Run API 0.2.0. Operations it lacks answer 501 with a sentence."},
		"servers":    []any{map[string]string{"url": s.cfg.ServerURL}},
		"security":   []any{map[string]any{"bearer": []any{}}},
		"components": map[string]any{"securitySchemes": map[string]any{"bearer": map[string]string{"type": "http", "scheme": "bearer"}}},
		"paths":      paths,
	})
}
