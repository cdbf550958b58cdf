package main

// fault is one way to be wrong.
type fault struct {
	name   string
	does   string
	breaks string   // the requirement that has to be found broken
	at     string   // the revision at which it is shown
	shown  string   // the transcript that shows it, beside those that every fault is run against
	also   []string // requirements that are found broken as a consequence
}

const (
	oldest = "2024-11-05"
	batchy = "2025-03-26"
	middle = "2025-06-18"
	latest = "2025-11-25" // the latest with a handshake
)

func findFault(name string) *fault {
	for i := range faults {
		if faults[i].name == name {
			return &faults[i]
		}
	}
	return nil
}

// faults is the table. Groups follow the areas of the catalogue.
var faults = []fault{
	// Framing: what is on stdout.
	{"banner", "greets on stdout", "framing.stdout-only-mcp", latest, "", nil},
	{"log-on-stdout", "logs a call on stdout", "framing.stdout-only-mcp", latest, "", nil},
	{"empty-lines", "writes an empty line before each message", "framing.stdout-only-mcp", latest, "", nil},
	{"pretty-prints", "spreads a message over lines", "framing.stdout-only-mcp", latest, "", []string{"tools.list.params-optional"}},
	{"crlf", "ends lines with CR LF", "framing.newline-delimited", latest, "", nil},
	{"not-utf8", "writes Latin-1", "framing.utf8", latest, "", []string{"tools.call.result-content"}},
	{"bom", "writes a byte-order mark before each message", "framing.stdout-only-mcp", latest, "", []string{"tools.list.params-optional"}},
	{"duplicate-members", "names a member twice", "framing.stdout-schema-valid", latest, "", nil},
	{"answers-in-arrays", "puts each result into an array", "framing.single-message-per-line", latest, "", nil},
	{"line-limit", "dies of a line beyond 64 KiB", "security.resists-malformed", latest, "2024-11-05/framing-large-message", nil},
	{"answers-responses", "answers a response", "framing.stray-response-silent", latest, "2024-11-05/framing-stray-response", []string{"jsonrpc.id.echoed"}},

	// Envelopes.
	{"no-version-tag", "says jsonrpc 1.0", "jsonrpc.version-tag", latest, "", []string{"framing.stdout-schema-valid"}},
	{"no-id", "leaves the id out of results", "jsonrpc.id.echoed", latest, "", []string{"tools.list.params-optional"}},
	{"ids-as-strings", "turns number ids into strings", "jsonrpc.id.type-preserved", latest, "2024-11-05/ids-echoed", []string{"jsonrpc.id.echoed", "jsonrpc.id.large-integer", "jsonrpc.response.exactly-one", "lifecycle.ping.answered"}},
	{"ids-as-numbers", "turns string ids into numbers", "jsonrpc.id.type-preserved", latest, "2024-11-05/ids-echoed", []string{"jsonrpc.response.exactly-one"}},
	{"ids-as-floats", "takes ids through a float", "jsonrpc.id.large-integer", latest, "2024-11-05/ids-echoed", []string{"jsonrpc.id.echoed"}},
	{"truncates-ids", "answers id 1.5 as 1", "jsonrpc.id.non-integer-rejected", latest, "2024-11-05/id-fractional", []string{"jsonrpc.id.echoed"}},
	{"answers-null-id", "serves a request whose id is null", "jsonrpc.id.null-rejected", latest, "2024-11-05/id-null", []string{"jsonrpc.id.echoed"}},
	{"answers-twice", "answers everything twice", "jsonrpc.response.exactly-one", latest, "", nil},
	{"result-and-error", "replies with a result and an error", "jsonrpc.response.result-or-error", latest, "", []string{"tools.list.params-optional", "tools.list.result"}},
	{"no-result", "replies with neither a result nor an error", "jsonrpc.response.result-or-error", latest, "", []string{"jsonrpc.error.shape", "tools.list.params-optional"}},
	{"result-array", "replies with an array", "jsonrpc.response.result-object", latest, "", []string{"tools.list.result"}},
	{"fractional-code", "has an error code with a fraction", "jsonrpc.error.code-integer", latest, "", []string{"jsonrpc.method-not-found.code", "jsonrpc.notification.method-with-id"}},
	{"code-zero", "has the error code 0", "jsonrpc.method-not-found.code", latest, "", []string{"jsonrpc.notification.method-with-id"}},
	{"no-message", "leaves the message out of errors", "jsonrpc.error.shape", latest, "", []string{"jsonrpc.error.message-short"}},
	{"long-message", "tells a novel in errors", "jsonrpc.error.message-short", latest, "", nil},
	{"dies-at-bad-line", "dies of a line that is not JSON", "jsonrpc.parse-error.survives", latest, "2024-11-05/parse-error", nil},
	{"bad-line-code", "answers such a line with -32600", "jsonrpc.parse-error.code", latest, "2024-11-05/parse-error", nil},
	{"bad-line-id", "answers such a line with an id of its own", "jsonrpc.error.id-unreadable", latest, "2024-11-05/parse-error", []string{"jsonrpc.id.echoed"}},
	{"unknown-method-code", "answers an unknown method with -32602", "jsonrpc.method-not-found.code", latest, "", []string{"jsonrpc.notification.method-with-id"}},
	{"unknown-method-served", "answers an unknown method with {}", "jsonrpc.method-not-found.code", latest, "", []string{"jsonrpc.notification.method-with-id"}},
	{"method-case-folded", "takes Tools/List for tools/list", "jsonrpc.method-names-case-sensitive", latest, "", nil},
	{"folds-case", "takes METHOD for method", "jsonrpc.invalid-request.code", latest, "2024-11-05/member-names-case-sensitive", nil},
	{"takes-any-params", "takes an array for params", "jsonrpc.params-object", latest, "2024-11-05/params-shapes", nil},
	{"internal-error-for-params", "answers bad params with -32603", "jsonrpc.invalid-params.code", latest, "2024-11-05/invalid-params", nil},
	{"answers-notifications", "answers notifications", "jsonrpc.notification.no-response", latest, "2024-11-05/notifications-silent", []string{"jsonrpc.id.echoed"}},
	{"answers-unknown-notifications", "answers unknown notifications with an error", "jsonrpc.notification.unknown-ignored", latest, "2024-11-05/notification-unknown", []string{"jsonrpc.error.id-echoed"}},
	{"serves-batches", "serves batches where there are none", "jsonrpc.batch.removed", latest, "2025-06-18/batch-removed", []string{"framing.single-message-per-line"}},
	{"batch-refused", "refuses batches where there are some", "jsonrpc.batch.receive", batchy, "2025-03-26/batch-received", nil},
	{"empty-batch-silent", "says nothing to an empty batch", "jsonrpc.batch.empty", batchy, "2025-03-26/batch-empty", nil},
	{"reserved-code", "uses a code that is reserved", "jsonrpc.codes.no-undefined-reserved", current, "2026-07-28/error-codes", []string{"resources.not-found.code-32602", "tools.unknown-tool.code"}},
	{"old-not-found-code", "says -32002 in the newest revision", "jsonrpc.codes.32002-retired", current, "2026-07-28/error-codes", []string{"resources.not-found.code-32602"}},
	{"stack-traces", "shows its stack in errors", "security.error-no-internals", latest, "2024-11-05/internal-error", nil},

	// Handshake.
	{"echoes-any-version", "agrees on versions it does not know", "versioning.initialize.counter-offer", latest, "2024-11-05/initialize-other-versions", nil},
	{"echoes-modern-proposal", "agrees on a revision without initialize", "versioning.initialize.modern-proposal", oldest, "2024-11-05/initialize-proposes-modern", []string{"framing.stdout-schema-valid"}},
	{"pinned-by-probe", "refuses initialize after server/discover", "versioning.era.probe-then-initialize", middle, "2024-11-05/probe-then-initialize", nil},
	{"discovers-less", "leaves prompts out of server/discover", "discover.capabilities.same-as-initialize", latest, "dual-era/same-capabilities-in-a-session", nil},
	{"takes-any-initialize", "takes an initialize without its members", "lifecycle.initialize.malformed", latest, "2024-11-05/initialize-malformed", nil},
	{"initializes-twice", "takes a second initialize", "lifecycle.second-initialize", latest, "2024-11-05/initialize-twice", nil},
	{"no-server-name", "leaves serverInfo out", "lifecycle.initialize.server-info", latest, "2024-11-05/initialize", []string{"framing.stdout-schema-valid"}},
	{"capability-true", "declares a capability with true", "lifecycle.capabilities.objects", latest, "2024-11-05/initialize", []string{"framing.stdout-schema-valid"}},
	{"serves-without-session", "serves requests before initialize", "lifecycle.request-before-initialize", latest, "2024-11-05/request-before-initialize", nil},
	{"serial", "reads nothing while a tool works", "lifecycle.ping.during-call", latest, "2024-11-05/ping-during-call", nil},
	{"leaks-newer-members", "sends cache hints to older peers", "schema.legacy-keys.hidden", middle, "", []string{"versioning.era.legacy-shape"}},

	// Per-request versions.
	{"takes-any-version", "serves every version that is claimed", "versioning.unsupported.code", current, "2026-07-28/version-unsupported", nil},
	{"version-error-code", "refuses a version with -32602", "versioning.unsupported.code", current, "2026-07-28/version-unsupported", nil},
	{"version-error-without-data", "does not say what it supports", "versioning.unsupported.data-supported", current, "2026-07-28/version-unsupported", []string{"framing.stdout-schema-valid"}},
	{"version-error-echo", "does not say what was asked for", "versioning.unsupported.data-requested", current, "2026-07-28/version-unsupported", nil},
	{"capabilities-unchecked", "serves requests without clientCapabilities", "meta.client-capabilities.required", current, "2026-07-28/meta-missing", nil},
	{"takes-any-meta", "takes a _meta that is no object", "meta.object", current, "2026-07-28/meta-types", nil},
	{"serves-ping-everywhere", "answers ping in the newest revision", "lifecycle.ping.removed", current, "2026-07-28/removed-methods", nil},
	{"serves-initialize-everywhere", "answers initialize in the newest revision", "lifecycle.initialize.removed", current, "2026-07-28/removed-methods", nil},
	{"no-result-type", "leaves resultType out", "meta.result-type.present", current, "2026-07-28/discover", nil},
	{"odd-result-type", "invents a result type", "meta.result-type.allowed-values", current, "2026-07-28/capabilities-work", []string{"framing.stdout-schema-valid"}},
	{"no-server-info", "does not say in results who it is", "meta.server-info.every-result", current, "2026-07-28/server-info", []string{"discover.server-info", "meta.server-info.constant"}},
	{"server-info-in-body", "says in the body of discover who it is", "discover.no-body-server-info", current, "2026-07-28/discover", nil},
	{"core-tasks-everywhere", "declares tasks where they are gone", "discover.capabilities.no-tasks-core", current, "2026-07-28/discover", nil},
	{"no-cache-hints", "leaves the cache hints out", "caching.hints.tools-list", current, "2026-07-28/capabilities-work", []string{"framing.stdout-schema-valid", "discover.ttl"}},
	{"negative-ttl", "has a negative ttl", "caching.ttl.integer", current, "2026-07-28/capabilities-work", []string{"framing.stdout-schema-valid", "discover.ttl"}},
	{"odd-cache-scope", "invents a cache scope", "caching.scope.enum", current, "2026-07-28/capabilities-work", []string{"framing.stdout-schema-valid", "discover.cache-scope"}},
	{"requests-in-modern", "sends a request in the newest revision", "framing.server-no-requests", current, "2026-07-28/input-form", []string{"mrtr.result-type"}},
	{"tells-everybody", "announces changes that nobody listens for", "jsonrpc.no-unsolicited-notifications", current, "2026-07-28/silence-without-listen", nil},
	{"remembers-capabilities", "remembers what another request declared", "meta.capabilities.not-remembered", current, "2026-07-28/stateless", nil},
	{"list-by-process", "lists other tools in each process", "tools.list.not-per-connection", current, "2026-07-28/lists-from-another-process", nil},
	{"list-in-turns", "changes the order of its list", "tools.list.deterministic", current, "2024-11-05/tools-change-nothing", nil},

	// Subscriptions.
	{"listen-unacknowledged", "does not acknowledge a listen", "subs.ack.first", current, "2026-07-28/listen", nil},
	{"acknowledges-everything", "acknowledges what was not asked for", "subs.ack.filter", current, "2026-07-28/listen", nil},
	{"listen-ends-at-once", "ends a listen with its result at once", "subs.listen.method", current, "2026-07-28/listen", nil},
	{"untagged", "leaves the subscription id out", "subs.id.value", current, "2026-07-28/listen", []string{"jsonrpc.no-unsolicited-notifications"}},
	{"tags-as-strings", "turns subscription ids into strings", "subs.id.value", current, "2026-07-28/listen", nil},
	{"tells-all-listeners", "tells listeners what they did not ask for", "subs.filter.only-requested", current, "2026-07-28/listen-filter", nil},
	{"listens-for-ever", "goes on after a listen was cancelled", "subs.cancel.stops", current, "2026-07-28/listen-cancel", []string{"cancel.server.nothing-further"}},
	{"listen-answers-cancel", "answers a cancelled listen", "subs.cancel.no-result", current, "2026-07-28/listen-cancel", nil},
	{"leaves-listeners", "says nothing to its listeners when it stops", "subs.close.cancelled-notification", current, "2026-07-28/listen-closed-by-server", []string{"subs.close.result"}},

	// Tools, resources, prompts, completion.
	{"null-list", "gives null for a list", "tools.list.result", latest, "2024-11-05/tools-list", []string{"framing.stdout-schema-valid"}},
	{"null-cursor", "gives null for a cursor", "framing.stdout-schema-valid", latest, "2024-11-05/tools-list", nil},
	{"null-description", "gives null for a description", "framing.stdout-schema-valid", latest, "2024-11-05/tools-list", nil},
	{"schema-without-type", "gives {} for an input schema", "tools.tool.input-schema", latest, "2024-11-05/tools-list", []string{"framing.stdout-schema-valid"}},
	{"odd-tool-names", "has spaces in tool names", "tools.name.charset", latest, "2024-11-05/tools-list", nil},
	{"unknown-tool-result", "answers an unknown tool with a result", "tools.unknown-tool.protocol-error", latest, "2024-11-05/tool-unknown", nil},
	{"content-as-text", "gives a string for content", "tools.call.result-content", latest, "2024-11-05/framing-session", []string{"framing.stdout-schema-valid"}},
	{"odd-content", "invents a kind of content", "framing.stdout-schema-valid", latest, "2024-11-05/framing-session", []string{"framing.utf8"}},
	{"error-flag-as-text", "gives \"true\" for isError", "tools.call.is-error-type", latest, "2024-11-05/tool-error", []string{"framing.stdout-schema-valid"}},
	{"tool-error-as-protocol-error", "turns a tool's failure into an error", "tools.call.is-error.from-tool", latest, "2024-11-05/tool-error", []string{"tools.call.is-error.text"}},
	{"arguments-unchecked", "runs tools with whatever it is given", "tools.server.validates-inputs", latest, "2024-11-05/tool-bad-arguments", nil},
	{"bad-arguments-internal", "answers bad arguments with -32603", "tools.server.validates-inputs", latest, "2024-11-05/tool-bad-arguments", nil},
	{"no-structured-content", "leaves the structured content out", "tools.structured.required-with-schema", latest, "2025-06-18/structured-content", nil},
	{"structured-misfit", "gives structured content that does not fit", "tools.structured.conforms", latest, "2025-06-18/structured-content", nil},
	{"structured-list", "gives a list where an object is due", "tools.structured.object", latest, "2025-06-18/structured-content", []string{"framing.stdout-schema-valid"}},
	{"change-untold", "keeps a changed list to itself", "tools.list-changed.sent", latest, "2024-11-05/tool-list-changed", nil},
	{"broken-base64", "gives a blob that is no base64", "resources.read.base64", latest, "2024-11-05/resource-read-binary", []string{"framing.stdout-schema-valid"}},
	{"binary-as-text", "gives bytes as text", "resources.read.text-only-for-text", latest, "2024-11-05/resource-read-binary", nil},
	{"other-uri", "reads another uri than it was asked for", "resources.read.uri-echo", latest, "2024-11-05/resource-read-text", nil},
	{"empty-contents", "gives nothing for an unknown resource", "resources.not-found.no-empty-contents", current, "2026-07-28/error-codes", nil},
	{"tells-unsubscribed", "tells of resources after unsubscribing", "resources.subscribe.only-subscribed", latest, "2024-11-05/resource-unsubscribe", nil},
	{"unknown-prompt-served", "gives nothing for an unknown prompt", "prompts.get.unknown", latest, "2024-11-05/prompt-errors", nil},
	{"prompt-arguments-unchecked", "takes any prompt arguments", "prompts.get.arguments-strings", latest, "2024-11-05/prompt-errors", nil},
	{"many-completions", "gives 150 completions", "completion.max-100", latest, "2024-11-05/completion", []string{"framing.stdout-schema-valid"}},
	{"takes-any-cursor", "takes cursors it did not give", "pagination.cursor-type", latest, "2024-11-05/pagination-bad-cursors", []string{"pagination.invalid-cursor.code", "pagination.invalid-cursor.graceful"}},
	{"dies-at-call", "crashes in a tool", "jsonrpc.response.exactly-one", latest, "process/eof-drains", nil},

	// Logging, progress, cancelling.
	{"takes-any-level", "takes unknown log levels", "logging.set-level.invalid", latest, "2024-11-05/logging-levels", nil},
	{"logs-below-level", "logs below the level that was set", "logging.set-level.threshold", latest, "2024-11-05/logging-threshold", nil},
	{"odd-log-level", "invents log levels", "logging.message.shape", latest, "2024-11-05/logging-threshold", []string{"framing.stdout-schema-valid"}},
	{"log-without-data", "logs nothing", "logging.message.shape", latest, "2024-11-05/logging-threshold", []string{"framing.stdout-schema-valid"}},
	{"logs-unasked", "logs for requests that did not ask", "logging.per-request.opt-in", current, "2026-07-28/logging-opt-in", nil},
	{"logging-undeclared", "logs without declaring it", "logging.undeclared-silent", latest, "2024-11-05/log-messages", nil},
	{"progress-without-token", "invents a progress token", "progress.none-without-token", latest, "2024-11-05/progress-without-token", nil},
	{"token-as-text", "turns progress tokens into strings", "progress.token.echo", latest, "2024-11-05/progress", []string{"progress.none-without-token"}},
	{"zero-token-dropped", "takes the token 0 for none", "progress.token.echo", latest, "2024-11-05/progress-tokens-falsy", nil},
	{"progress-falls", "counts down", "progress.increases", latest, "2024-11-05/progress", nil},
	{"progress-as-text", "gives progress as a string", "progress.shape", latest, "2024-11-05/progress", []string{"framing.stdout-schema-valid"}},
	{"progress-after-reply", "reports progress after the reply", "progress.stops", latest, "2024-11-05/progress", nil},
	{"answers-cancelled", "answers cancelled requests", "cancel.server.no-response", latest, "2024-11-05/cancel", nil},
	{"ignores-cancel", "works on after a cancel", "cancel.server.nothing-further", current, "2024-11-05/cancel", nil},
	{"cancels-by-text", "takes \"7\" for 7 in a cancel", "cancel.id-exact", latest, "2024-11-05/cancel-exact-id", []string{"jsonrpc.response.exactly-one"}},
	{"cancels-everything", "cancels other requests too", "cancel.others-unaffected", latest, "2024-11-05/cancel-exact-id", []string{"cancel.id-exact"}},

	// Asking back.
	{"asks-undeclared", "asks a client that declared nothing", "meta.capabilities.no-reliance", current, "2026-07-28/stateless", nil},
	{"asks-anybody", "asks a client of a session that declared nothing", "elicit.undeclared", latest, "2025-06-18/elicitation-undeclared", []string{"lifecycle.capabilities-respected.must"}},
	{"asks-with-one-id", "asks twice with one id", "jsonrpc.id.server-unique-in-session", latest, "2025-06-18/elicitation", nil},
	{"asks-nothing", "asks for input without saying which", "mrtr.has-content", current, "2026-07-28/input-form", []string{"framing.stdout-schema-valid"}},
	{"asks-with-id", "gives its questions as a list of requests", "mrtr.input-requests.map", current, "2026-07-28/input-form", []string{"framing.stdout-schema-valid"}},
	{"caches-questions", "gives cache hints with a question", "caching.not-on-input-required", current, "2026-07-28/input-form", nil},
	{"input-required-in-session", "asks a session in the newest way", "mrtr.legacy.never", latest, "2025-06-18/no-input-required", []string{"versioning.era.legacy-shape"}},
	{"state-unchecked", "takes any request state", "mrtr.request-state.untrusted", current, "2026-07-28/state-made-up", nil},

	// The process.
	{"drops-at-eof", "leaves at the end of input without answering", "jsonrpc.response.exactly-one", latest, "process/eof-drains", nil},
	{"hangs-at-eof", "stays at the end of input", "shutdown.server.exit-on-eof-legacy", latest, "process/eof-idle", nil},
	{"status-at-eof", "ends with status 1", "shutdown.server.exit-status", latest, "process/eof-status", nil},
	{"ignores-sigterm", "ignores SIGTERM", "shutdown.server.sigterm", latest, "process/sigterm", nil},
	{"survives-closed-stdout", "stays when nobody reads its stdout", "shutdown.server.broken-stdout", latest, "process/stdout-closed", nil},
	{"secrets-on-stderr", "shows a secret on stderr", "security.stderr-no-secrets", latest, "2024-11-05/secrets-stay-inside", nil},
}
