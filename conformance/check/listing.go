package check

import (
	"slices"

	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

var listMethods = []struct{ method, member, key, hints string }{
	{"tools/list", "tools", "name", "caching.hints.tools-list"},
	{"prompts/list", "prompts", "name", "caching.hints.prompts-list"},
	{"resources/list", "resources", "uri", "caching.hints.resources-list"},
	{"resources/templates/list", "resourceTemplates", "uriTemplate", "caching.hints.templates-list"},
}

func anythingListed(s *suspect) string {
	if len(s.Pages) == 0 {
		return "the server declares no tools, prompts or resources"
	}
	return ""
}

var listingChecks = []one{
	{
		name: framesCheck, title: "everything said while listing is well formed and fits the schema",
		rules: []string{"framing.stdout-only-mcp", "framing.stdout-schema-valid", "framing.utf8", "framing.newline-delimited", "framing.no-embedded-newline",
			"framing.single-message-per-line", "jsonrpc.version-tag", "jsonrpc.id.echoed", "jsonrpc.response.exactly-one", "jsonrpc.response.result-or-error", "jsonrpc.response.result-object"},
		run: func(*suspect) {},
	},
	{
		name: "lists-answered", title: "every list of a declared capability is answered with a result",
		rules: []string{"tools.list.result", "tools.list.answered", "prompts.list.result", "prompts.list.answered", "resources.list.result", "resources.list.answered", "resources.templates.result"},
		needs: anythingListedOrDeclared,
		run: func(s *suspect) {
			rules := map[string][]string{
				"tools/list": {"tools.list.result", "tools.list.answered"}, "prompts/list": {"prompts.list.result", "prompts.list.answered"},
				"resources/list": {"resources.list.result", "resources.list.answered"}, "resources/templates/list": {"resources.templates.result"},
			}
			capability := map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resources"}
			for _, l := range listMethods {
				if s.Capabilities.Get(capability[l.method]) == nil {
					continue
				}
				if len(s.Pages[l.method]) == 0 {
					for _, rule := range rules[l.method] {
						s.broken(rule, "%s got no result although the server declares %s", l.method, capability[l.method])
					}
				}
			}
		},
	},
	{
		name: "pagination", title: "cursors lead through every list once and end",
		rules: []string{"pagination.next-cursor.string", "pagination.next-cursor.continues", "pagination.last-page", "pagination.stable"},
		needs: anythingListed,
		run: func(s *suspect) {
			for _, l := range listMethods {
				checkPages(s, l.method, l.member, l.key)
			}
		},
	},
	{
		name: "list-order", title: "a list asked for twice is the same, in the same order",
		rules: []string{"tools.list.deterministic"},
		needs: func(s *suspect) string {
			if len(s.Pages["tools/list"]) == 0 {
				return "the server lists no tools"
			}
			return ""
		},
		run: func(s *suspect) {
			again := s.session.Ask("tools/list", "").Get("result")
			first, second := names(s.Pages["tools/list"][0].Get("tools"), "name"), names(again.Get("tools"), "name")
			if !slices.Equal(first, second) {
				s.broken("tools.list.deterministic", "tools/list answered first %q, then %q", first, second)
			}
		},
	},
	{
		name: "cache-hints", title: "cacheable results carry ttlMs and cacheScope",
		rules: []string{"caching.hints.tools-list", "caching.hints.prompts-list", "caching.hints.resources-list", "caching.hints.templates-list", "caching.hints.discover",
			"caching.ttl.integer", "caching.scope.enum", "caching.scope.same-on-pages"},
		run: func(s *suspect) {
			checkHints(s, "server/discover", "caching.hints.discover", []*strictjson.Value{s.First})
			for _, l := range listMethods {
				checkHints(s, l.method, l.hints, s.Pages[l.method])
			}
		},
	},
}

func anythingListedOrDeclared(s *suspect) string {
	for _, c := range []string{"tools", "prompts", "resources"} {
		if s.Capabilities.Get(c) != nil {
			return ""
		}
	}
	return "the server declares no tools, prompts or resources"
}

func names(list *strictjson.Value, key string) []string {
	var out []string
	if list != nil {
		for _, v := range list.Items {
			out = append(out, v.Get(key).Str())
		}
	}
	return out
}

func checkPages(s *suspect, method, member, key string) {
	seen := map[string]int{}
	cursors := map[string]bool{}
	for i, page := range s.Pages[method] {
		for _, name := range names(page.Get(member), key) {
			if on, ok := seen[name]; ok && on != i {
				s.broken("pagination.stable", "%s lists %q on page %d and again on page %d", method, name, on+1, i+1)
			}
			seen[name] = i
		}
		cursor := page.Get("nextCursor")
		if cursor != nil && !cursor.Is(strictjson.String) {
			s.broken("pagination.next-cursor.string", "the nextCursor of %s is %s", method, cursor.Raw)
			continue
		}
		if c := cursor.Str(); c != "" && cursors[c] {
			s.broken("pagination.next-cursor.continues", "%s gave the cursor %q twice: following it goes in a circle", method, c)
			return
		} else if c != "" {
			cursors[c] = true
		}
	}
	pages := s.Pages[method]
	if s.Endless[method] {
		s.broken("pagination.last-page", "%s still has a nextCursor after %d pages", method, len(pages))
	} else if n := len(pages); n > 0 && pages[n-1].Get("nextCursor").Is(strictjson.String) {
		s.broken("pagination.next-cursor.continues", "%s refused the cursor %s that it had just given", method, pages[n-1].Get("nextCursor").Raw)
	}
}

func checkHints(s *suspect, method, rule string, pages []*strictjson.Value) {
	if !transcript.Modern(s.Revision) {
		return
	}
	scope := ""
	for i, page := range pages {
		ttl, scopeValue := page.Get("ttlMs"), page.Get("cacheScope")
		if ttl == nil || scopeValue == nil {
			s.broken(rule, "the result of %s lacks ttlMs or cacheScope", method)
			continue
		}
		if n, ok := ttl.Int(); !ok || n.Sign() < 0 {
			s.broken("caching.ttl.integer", "the ttlMs of %s is %s", method, ttl.Raw)
		}
		if v := scopeValue.Str(); v != "public" && v != "private" {
			s.broken("caching.scope.enum", "the cacheScope of %s is %s", method, scopeValue.Raw)
		}
		if i > 0 && scope != scopeValue.Str() {
			s.broken("caching.scope.same-on-pages", "the pages of %s differ in cacheScope", method)
		}
		scope = scopeValue.Str()
	}
}
