package protocol

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// Content is one block of a tool result or prompt message: [TextContent],
// [ImageContent], [AudioContent], [ResourceLink] or [EmbeddedResource]. A block
// that the peer's revision does not know is replaced by a line of text.
type Content interface {
	appendContent(b []byte, rev *revision) []byte
}

// Annotations tell a client what to do with a piece of content.
type Annotations struct {
	Audience     []string  // "user", "assistant"
	Priority     *float64  // 0 (optional) to 1 (required)
	LastModified time.Time // zero is absent
}

// TextContent is a block of text.
type TextContent struct {
	Text        string
	Annotations *Annotations
	Meta        map[string]any
}

// ImageContent is a picture.
type ImageContent struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        map[string]any
}

// AudioContent is a sound.
type AudioContent struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        map[string]any
}

// ResourceLink points to a resource that the client may read. URI and Name are
// required.
type ResourceLink struct {
	URI, Name, Title, Description, MIMEType string
	Size                                    *int64 // bytes
	Icons                                   []Icon
	Annotations                             *Annotations
	Meta                                    map[string]any
}

// EmbeddedResource carries a resource along.
type EmbeddedResource struct {
	Resource    ResourceContents
	Annotations *Annotations
	Meta        map[string]any
}

// ResourceContents is the content of a resource: text, or bytes where Blob is not
// nil.
type ResourceContents struct {
	URI, MIMEType string
	Text          string
	Blob          []byte
	Meta          map[string]any
}

// Text returns a block of text.
func Text(s string) Content { return TextContent{Text: s} }

func (c TextContent) appendContent(b []byte, rev *revision) []byte {
	b = append(b, `{"type":"text","text":`...)
	b = quote(b, c.Text)
	return appendContentEnd(b, rev, c.Annotations, c.Meta)
}

func (c ImageContent) appendContent(b []byte, rev *revision) []byte {
	b = append(b, `{"type":"image"`...)
	b = keyBase64(b, "data", c.Data)
	b = keyString(b, "mimeType", c.MIMEType)
	return appendContentEnd(b, rev, c.Annotations, c.Meta)
}

func (c AudioContent) appendContent(b []byte, rev *revision) []byte {
	if !rev.has(featAudio) {
		return TextContent{Text: fmt.Sprintf("[audio, %s, %d bytes]", c.MIMEType, len(c.Data))}.appendContent(b, rev)
	}
	b = append(b, `{"type":"audio"`...)
	b = keyBase64(b, "data", c.Data)
	b = keyString(b, "mimeType", c.MIMEType)
	return appendContentEnd(b, rev, c.Annotations, c.Meta)
}

func (c ResourceLink) appendContent(b []byte, rev *revision) []byte {
	if !rev.has(featResourceLinks) {
		return TextContent{Text: strings.TrimSpace(c.Name + ": " + c.URI)}.appendContent(b, rev)
	}
	b = append(b, `{"type":"resource_link"`...)
	r := Resource{URI: c.URI, Name: c.Name, Title: c.Title, Description: c.Description, MIMEType: c.MIMEType, Size: c.Size, Icons: c.Icons}
	b = r.appendMembers(b, rev)
	return appendContentEnd(b, rev, c.Annotations, c.Meta)
}

func (c EmbeddedResource) appendContent(b []byte, rev *revision) []byte {
	b = append(b, `{"type":"resource","resource":`...)
	b = c.Resource.append(b, rev)
	return appendContentEnd(b, rev, c.Annotations, c.Meta)
}

func (r *ResourceContents) append(b []byte, rev *revision) []byte {
	b = append(b, '{')
	b = keyString(b, "uri", r.URI)
	b = keyText(b, "mimeType", r.MIMEType)
	if r.Blob != nil {
		b = keyBase64(b, "blob", r.Blob)
	} else {
		b = keyString(b, "text", r.Text)
	}
	if rev.has(featContentMeta) {
		b = keyMeta(b, r.Meta)
	}
	return append(b, '}')
}

func appendContentEnd(b []byte, rev *revision, a *Annotations, meta map[string]any) []byte {
	b = appendAnnotations(b, rev, a)
	if rev.has(featContentMeta) {
		b = keyMeta(b, meta)
	}
	return append(b, '}')
}

func appendAnnotations(b []byte, rev *revision, a *Annotations) []byte {
	if a == nil {
		return b
	}
	b = append(key(b, "annotations"), '{')
	b = keyStrings(b, "audience", a.Audience)
	if a.Priority != nil {
		b = keyFloat(b, "priority", *a.Priority)
	}
	if rev.has(featLastModified) && !a.LastModified.IsZero() {
		b = keyString(b, "lastModified", timestamp(a.LastModified))
	}
	return append(b, '}')
}

// keyMeta appends _meta, nothing where it is empty or cannot be marshalled.
func keyMeta(b []byte, meta map[string]any) []byte {
	if len(meta) == 0 {
		return b
	}
	raw, err := marshal(meta)
	if err != nil {
		return b
	}
	return keyRaw(b, "_meta", raw)
}

func keyBase64(b []byte, name string, data []byte) []byte {
	b = append(key(b, name), '"')
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, '"')
}

// timestamp is RFC 3339 in UTC, to the millisecond; a whole second has no fraction.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }
