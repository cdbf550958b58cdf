package protocol

import (
	"context"
	"time"
)

// Resources is what a server lets the client read.
type Resources interface {
	ListResources(ctx context.Context, x *Exchange) ([]Resource, error)
	ListTemplates(ctx context.Context, x *Exchange) ([]ResourceTemplate, error)
	// ReadResource returns ErrResourceNotFound for a uri that names nothing.
	ReadResource(ctx context.Context, uri string, x *Exchange) (*ReadResult, error)
}

// ResourceWatcher is implemented by Resources whose changes can be followed; the
// server then declares resources.subscribe. WatchResource is called when a uri
// gets its first subscriber and stop when it loses its last one; in between the
// program calls [Server.ResourceUpdated]. An error refuses the subscription.
type ResourceWatcher interface {
	WatchResource(ctx context.Context, uri string) (stop func(), err error)
}

// ResourceListCacher is implemented by Resources whose lists a client may keep for a
// while. Without it they are stale at once, and private.
type ResourceListCacher interface {
	CacheResources() (ttl time.Duration, scope CacheScope) // the list of resources
	CacheTemplates() (ttl time.Duration, scope CacheScope) // the list of templates
}

// Resource is an entry of the list. URI and Name are required.
type Resource struct {
	URI, Name, Title, Description, MIMEType string
	Size                                    *int64 // bytes of the content, before encoding
	Icons                                   []Icon
	Annotations                             *Annotations
	Meta                                    map[string]any
}

// ResourceTemplate is an RFC 6570 template of resources. URITemplate and Name are
// required.
type ResourceTemplate struct {
	URITemplate, Name, Title, Description, MIMEType string
	Icons                                           []Icon
	Annotations                                     *Annotations
	Meta                                            map[string]any
}

// ReadResult is the content of a resource.
type ReadResult struct {
	Contents []ResourceContents
	TTL      time.Duration // how long a client may keep it
	Scope    CacheScope    // empty is private
	Meta     map[string]any
}

func (res *Resource) appendMembers(b []byte, rev *revision) []byte {
	b = keyString(b, "uri", res.URI)
	b = keyString(b, "name", res.Name)
	if rev.has(featTitles) {
		b = keyText(b, "title", res.Title)
	}
	b = keyText(b, "description", res.Description)
	b = keyText(b, "mimeType", res.MIMEType)
	if res.Size != nil {
		b = keyInt(b, "size", *res.Size)
	}
	if rev.has(featIcons) {
		b = appendIcons(b, res.Icons)
	}
	return b
}

func (res *Resource) append(b []byte, rev *revision) []byte {
	return appendDefinitionEnd(res.appendMembers(append(b, '{'), rev), rev, res.Annotations, res.Meta)
}

func appendDefinitionEnd(b []byte, rev *revision, a *Annotations, meta map[string]any) []byte {
	b = appendAnnotations(b, rev, a)
	if rev.has(featTitles) {
		b = keyMeta(b, meta)
	}
	return append(b, '}')
}

func (t *ResourceTemplate) append(b []byte, rev *revision) []byte {
	b = keyString(append(b, '{'), "uriTemplate", t.URITemplate)
	b = keyString(b, "name", t.Name)
	if rev.has(featTitles) {
		b = keyText(b, "title", t.Title)
	}
	b = keyText(b, "description", t.Description)
	b = keyText(b, "mimeType", t.MIMEType)
	if rev.has(featIcons) {
		b = appendIcons(b, t.Icons)
	}
	return appendDefinitionEnd(b, rev, t.Annotations, t.Meta)
}

func serveResourcesList(r *request, b []byte) ([]byte, error) {
	found, err := guard(r, func() ([]Resource, error) {
		return r.conn.server.Resources.ListResources(&r.ctx, &r.x)
	})
	if err != nil {
		return b, err
	}
	list := &rendered{}
	for i := range found {
		list.add(found[i].URI, found[i].append(nil, r.rev))
	}
	if cacher, ok := r.conn.server.Resources.(ResourceListCacher); ok {
		r.cache(cacher.CacheResources())
	}
	return r.appendPage(b, "resources", list.join())
}

func serveTemplatesList(r *request, b []byte) ([]byte, error) {
	found, err := guard(r, func() ([]ResourceTemplate, error) {
		return r.conn.server.Resources.ListTemplates(&r.ctx, &r.x)
	})
	if err != nil {
		return b, err
	}
	list := &rendered{}
	for i := range found {
		list.add(found[i].URITemplate, found[i].append(nil, r.rev))
	}
	if cacher, ok := r.conn.server.Resources.(ResourceListCacher); ok {
		r.cache(cacher.CacheTemplates())
	}
	return r.appendPage(b, "resourceTemplates", list.join())
}

// cache sets how long, and for whom, a client may keep the result.
func (r *request) cache(ttl time.Duration, scope CacheScope) {
	r.ttl, r.scope = max(0, ttl), scope
}

func (l *rendered) add(name string, item []byte) {
	l.names, l.items = append(l.names, name), append(l.items, item)
}

func (l *rendered) join() *rendered {
	l.all = []byte{'['}
	for _, item := range l.items {
		l.all = append(comma(l.all), item...)
	}
	l.all = append(l.all, ']')
	return l
}

func serveResourcesRead(r *request, b []byte) ([]byte, error) {
	uri, bad := r.uriParam()
	if bad != nil {
		return b, bad
	}
	if err := r.x.openState(); err != nil {
		return b, err
	}
	result, err := guard(r, func() (*ReadResult, error) {
		return r.conn.server.Resources.ReadResource(&r.ctx, uri, &r.x)
	})
	if asked := asInputRequired(err); asked != nil {
		return r.appendInputRequired(b, asked)
	}
	if err == nil && (result == nil || len(result.Contents) == 0) {
		err = ErrResourceNotFound{URI: uri}
	}
	if err != nil {
		return b, err
	}
	r.cache(result.TTL, result.Scope)
	r.resultMeta = result.Meta
	b = append(key(b, "contents"), '[')
	for i := range result.Contents {
		b = result.Contents[i].append(comma(b), r.rev)
	}
	return append(b, ']'), nil
}

// uriParam returns the required uri, which must be absolute.
func (r *request) uriParam() (string, *Error) {
	uri, err := r.stringParam("uri")
	if err != nil {
		return "", err
	}
	if !validURI(uri) {
		return "", invalidParams("Parameter uri must be an absolute URI: %s", clip(uri))
	}
	return uri, nil
}

// validURI checks what RFC 3986 asks of every absolute URI: a scheme, and no
// character that must be percent-encoded.
func validURI(s string) bool {
	scheme := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c <= ' ' || c == 0x7f || c == '"' || c == '<' || c == '>' || c == '\\' || c == '^' || c == '`' {
			return false
		}
		if scheme {
			continue
		}
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		switch {
		case c == ':' && i > 0:
			scheme = true
		case letter || i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return scheme
}
