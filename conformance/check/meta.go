package check

import (
	"math/big"
	"net/url"
	"regexp"
	"strings"
	"time"

	"fabro-mcp/conformance/strictjson"
)

var (
	metaName  = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$`)
	metaLabel = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?$`)
)

var metaChecks = []one{
	{
		name: "meta-keys", title: "keys of _meta have the form the specification gives them",
		rules: []string{"meta.key.prefix-labels", "meta.key.name-chars", "meta.key.reserved-second-label", "meta.key.reserved-any-label"},
		run: func(s *suspect) {
			s.everyResult(func(where string, v *strictjson.Value) {
				walk(v, func(v *strictjson.Value) {
					if meta := v.Get("_meta"); meta.Is(strictjson.Object) {
						for _, m := range meta.Members {
							checkMetaKey(s, where, m.Name)
						}
					}
				})
			})
		},
	},
	{
		name: "server-info", title: "results identify the server, always in the same way",
		rules: []string{"meta.server-info.every-result", "meta.server-info.shape", "meta.server-info.constant"},
		run: func(s *suspect) {
			first := ""
			s.everyResult(func(where string, v *strictjson.Value) {
				info := v.At("_meta", "io.modelcontextprotocol/serverInfo")
				switch {
				case info == nil:
					s.broken("meta.server-info.every-result", "the result of %s does not name the server in _meta", where)
				case !info.Get("name").Is(strictjson.String) || !info.Get("version").Is(strictjson.String):
					s.broken("meta.server-info.shape", "the serverInfo of %s lacks a name or version: %s", where, info.Raw)
				case first != "" && first != string(info.Raw):
					s.broken("meta.server-info.constant", "the serverInfo of %s differs from the one before", where)
				default:
					first = string(info.Raw)
				}
			})
		},
	},
	{
		name: "icons", title: "icons have a source that clients may load",
		rules: []string{"schema.icon.src", "schema.icon.src-https"},
		needs: func(s *suspect) string {
			for _, t := range s.listed() {
				if t.value.Get("icons") != nil {
					return ""
				}
			}
			return "nothing listed has icons"
		},
		run: func(s *suspect) {
			for _, t := range s.listed() {
				icons := t.value.Get("icons")
				if icons == nil {
					continue
				}
				for _, icon := range icons.Items {
					u, err := url.Parse(icon.Get("src").Str())
					switch {
					case err != nil || u.Scheme == "":
						s.broken("schema.icon.src", "an icon of %s has the source %q, which is no URI", t, icon.Get("src").Str())
					case u.Scheme != "https" && u.Scheme != "data":
						s.broken("schema.icon.src-https", "an icon of %s has the source %q; https and data are what clients load", t, u.Scheme)
					}
				}
			}
		},
	},
	{
		name: "annotations", title: "annotations have values in their ranges",
		rules: []string{"resources.annotations.audience", "resources.annotations.priority", "resources.annotations.last-modified"},
		needs: func(s *suspect) string {
			for _, r := range append(append([]*strictjson.Value{}, s.Resources...), s.Templates...) {
				if r.Get("annotations") != nil {
					return ""
				}
			}
			return "no resource has annotations"
		},
		run: func(s *suspect) {
			for _, t := range s.listed() {
				if t.kind != "tool" && t.kind != "prompt" {
					checkAnnotations(s, t)
				}
			}
		},
	},
}

// everyResult visits the first result and every page.
func (s *suspect) everyResult(visit func(where string, v *strictjson.Value)) {
	visit("the first reply", s.First)
	for _, l := range listMethods {
		for _, page := range s.Pages[l.method] {
			visit(l.method, page)
		}
	}
}

func checkMetaKey(s *suspect, where, key string) {
	name := key
	if i := strings.LastIndex(key, "/"); i >= 0 {
		name = key[i+1:]
		labels := strings.Split(key[:i], ".")
		for _, label := range labels {
			if !metaLabel.MatchString(label) {
				s.broken("meta.key.prefix-labels", "the prefix of the _meta key %q in %s has the label %q", key, where, label)
				return
			}
		}
		ours := strings.HasPrefix(key, "io.modelcontextprotocol/")
		if len(labels) > 1 && (labels[1] == "modelcontextprotocol" || labels[1] == "mcp") && !ours {
			s.broken("meta.key.reserved-second-label", "the _meta key %q in %s has a reserved prefix", key, where)
		}
		for _, label := range labels[:len(labels)-1] {
			if (label == "modelcontextprotocol" || label == "mcp") && !ours {
				s.broken("meta.key.reserved-any-label", "the _meta key %q in %s has a reserved prefix", key, where)
			}
		}
	}
	if !metaName.MatchString(name) {
		s.broken("meta.key.name-chars", "the _meta key %q in %s has a name outside letters, digits, '-', '_', '.'", key, where)
	}
}

func checkAnnotations(s *suspect, t thing) {
	a := t.value.Get("annotations")
	if a == nil {
		return
	}
	if audience := a.Get("audience"); audience != nil {
		for _, who := range audience.Items {
			if who.Str() != "user" && who.Str() != "assistant" {
				s.broken("resources.annotations.audience", "the audience of %s holds %s", t, who.Raw)
			}
		}
		if !audience.Is(strictjson.Array) {
			s.broken("resources.annotations.audience", "the audience of %s is %s", t, audience.Raw)
		}
	}
	if priority := a.Get("priority"); priority != nil {
		r, ok := priority.Rat()
		if !ok || r.Sign() < 0 || r.Cmp(big.NewRat(1, 1)) > 0 {
			s.broken("resources.annotations.priority", "the priority of %s is %s", t, priority.Raw)
		}
	}
	if modified := a.Get("lastModified"); modified != nil {
		if _, err := time.Parse(time.RFC3339Nano, modified.Str()); err != nil {
			s.broken("resources.annotations.last-modified", "lastModified of %s is %s, which is no ISO 8601 time", t, modified.Raw)
		}
	}
}
