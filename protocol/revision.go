package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// A feature is something that some revisions have and others have not. A method,
// a member of a result, a capability asks its revision for one, and a handler asks
// its Exchange; nothing outside this file knows the name of a revision.
type feature uint64

const (
	// featHandshake: initialize opens a session; ping, logging/setLevel and
	// resources/subscribe exist; the server may send requests.
	featHandshake feature = 1 << iota
	// featPerRequest: each request carries its revision and the client's
	// capabilities in _meta; server/discover exists.
	featPerRequest
	featBatch            // an array of messages on one line
	featCompletions      // the completions capability can be declared
	featToolAnnotations  // Tool.annotations
	featAudio            // audio content
	featProgressMessage  // message in notifications/progress
	featTitles           // title and _meta on tools, resources, prompts
	featStructured       // outputSchema, structuredContent (an object)
	featResourceLinks    // resource_link content
	featLastModified     // annotations.lastModified
	featContentMeta      // _meta on content blocks and resource contents
	featElicitation      // elicitation/create
	featElicitationModes // form and URL mode
	featRichForms        // forms with lists of choices, titles of choices and defaults of every type
	featElicitationID    // URL mode carries an elicitationId
	featSamplingTools    // tools in sampling requests
	featIcons            // icons; description and websiteUrl of an implementation
	featCoreTasks        // tasks as part of the core protocol
	featExtensions       // the extensions capability, and with it the tasks extension
	featAnyStructured    // structuredContent and outputSchema of any type
	featResultType       // resultType and the server's identity in every result
	featCacheHints       // ttlMs and cacheScope
	featInputRequired    // input_required results
	featListen           // subscriptions/listen
)

// revision is one row of the table.
type revision struct {
	name     string
	features feature
	// resourceNotFound is the error code for a uri that names nothing.
	resourceNotFound int64
}

func (r *revision) has(f feature) bool { return r.features&f == f }

const (
	features2024_11_05 = featHandshake
	features2025_03_26 = features2024_11_05 | featBatch | featCompletions | featToolAnnotations | featAudio | featProgressMessage
	features2025_06_18 = features2025_03_26&^featBatch | featTitles | featStructured | featResourceLinks | featLastModified |
		featContentMeta | featElicitation
	features2025_11_25 = features2025_06_18 | featElicitationModes | featRichForms | featElicitationID | featSamplingTools |
		featIcons | featCoreTasks
	features2026_07_28 = features2025_11_25&^(featHandshake|featElicitationID|featCoreTasks) | featPerRequest | featExtensions |
		featAnyStructured | featResultType | featCacheHints | featInputRequired | featListen
)

// revisions is the one table, oldest first. docs/adding-a-revision.md walks through
// adding a row.
var revisions = revisionTable{
	{name: "2024-11-05", features: features2024_11_05, resourceNotFound: CodeResourceNotFound},
	{name: "2025-03-26", features: features2025_03_26, resourceNotFound: CodeResourceNotFound},
	{name: "2025-06-18", features: features2025_06_18, resourceNotFound: CodeResourceNotFound},
	{name: "2025-11-25", features: features2025_11_25, resourceNotFound: CodeResourceNotFound},
	{name: "2026-07-28", features: features2026_07_28, resourceNotFound: CodeInvalidParams},
}

// revisionTable is a set of revisions, oldest first.
type revisionTable []*revision

// of finds a row by name; nil where there is none.
func (t revisionTable) of(name string) *revision {
	for _, r := range t {
		if r.name == name {
			return r
		}
	}
	return nil
}

// latestWith returns the newest revision that has a feature; nil where none has.
func (t revisionTable) latestWith(f feature) *revision {
	for i := len(t) - 1; i >= 0; i-- {
		if t[i].has(f) {
			return t[i]
		}
	}
	return nil
}

// names lists the revisions that have a feature, newest first.
func (t revisionTable) names(f feature) []string {
	var names []string
	for i := len(t) - 1; i >= 0; i-- {
		if t[i].has(f) {
			names = append(names, t[i].name)
		}
	}
	return names
}

// only returns the rows with these names.
func (t revisionTable) only(names []string) (revisionTable, error) {
	var some revisionTable
	for _, r := range t {
		if slices.Contains(names, r.name) {
			some = append(some, r)
		}
	}
	if len(some) != len(names) {
		return nil, fmt.Errorf("protocol: Options.Revisions must be some of %s", strings.Join(t.names(0), ", "))
	}
	return some, nil
}

// unsupported is the answer to a claim that is not served. Where the refused
// revision is itself a handshake one, only the others are offered, so that a retry
// cannot run in a circle.
func (t revisionTable) unsupported(requested string) *Error {
	offered := t.names(0)
	message := "Unsupported protocol version: " + clip(requested)
	if r := t.of(requested); r != nil {
		offered = t.names(featPerRequest)
		message += "; that revision is spoken after initialize"
	}
	return &Error{Code: CodeUnsupportedVersion, Message: message, Data: map[string]any{"supported": offered, "requested": requested}}
}

// missingMeta names the keys that a request lacks, and the revisions that would
// be understood.
func (t revisionTable) missingMeta(keys ...string) *Error {
	message := "Missing _meta members: " + strings.Join(keys, ", ")
	return &Error{Code: CodeInvalidParams, Message: message, Data: map[string]any{"missing": keys, "supported": t.names(0)}}
}
