package protocol_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"fabro-mcp/conformance/catalogue"
	"fabro-mcp/conformance/transcript"
	"fabro-mcp/conformance/transcripts"
)

// shownBy says which requirements of the catalogue the Go tests of the engine show,
// by test ("dir.Test"). What transcripts show is named in the transcripts; many
// requirements are in both, because a transcript sees a process and a test the
// edges of a package.
var shownBy = map[string]string{
	"transport.TestReadFrame":             "framing.blank-lines-tolerated framing.crlf-tolerated framing.partial-final-line framing.large-message",
	"transport.TestWriteFrames":           "framing.newline-delimited framing.no-embedded-newline framing.single-message-per-line",
	"transport.TestStdioGuard":            "framing.stdout-only-mcp framing.stderr-free-text",
	"transport.TestClosedOutputIsAnError": "shutdown.server.broken-stdout",
	"protocol.TestScan":                   "jsonrpc.parse-error.code security.resists-malformed framing.utf8",
	"protocol.TestIDs":                    "jsonrpc.id.type-preserved jsonrpc.id.large-integer jsonrpc.id.non-integer-rejected cancel.id-exact",
	"protocol.TestCombinations": "versioning.era.concurrent versioning.era.modern-then-initialize versioning.era.probe-then-initialize versioning.era.dual-modern versioning.era.dual-legacy " +
		"versioning.era.legacy-shape versioning.era.malformed-claim-not-legacy versioning.era.no-claim-no-session versioning.unsupported.code versioning.unsupported.past " +
		"versioning.unsupported.legacy-in-meta versioning.unsupported.before-method-lookup versioning.initialize.echo versioning.initialize.counter-offer lifecycle.second-initialize " +
		"lifecycle.request-between lifecycle.ping.removed lifecycle.initialize.removed jsonrpc.batch.receive jsonrpc.batch.empty jsonrpc.batch.removed jsonrpc.id.null-rejected " +
		"jsonrpc.id.duplicate-in-flight jsonrpc.invalid-request.code jsonrpc.notification.request-method-without-id cancel.server.no-response subs.listen.empty-filter subs.close.on-eof subs.multiple",
	"protocol.TestUndeclaredFeatures":          "subs.listen.undeclared lifecycle.undeclared-server-capability completion.undeclared",
	"protocol.TestEveryMethodInEveryRevision":  "framing.stdout-schema-valid schema.legacy-keys.hidden versioning.deprecated.still-valid",
	"protocol.TestParamsOfEveryShape":          "meta.object meta.allowed-everywhere jsonrpc.params-object jsonrpc.unknown-params-ignored",
	"protocol.TestBadParams":                   "jsonrpc.invalid-params.code pagination.invalid-cursor.code prompts.get.missing-argument completion.missing-arguments resources.read.missing-uri",
	"protocol.TestContentFitsRevision":         "tools.content.known-types tools.content.audio-not-2024 tools.content.resource-link-not-before meta.on-content-types",
	"protocol.TestStructuredContent":           "tools.structured.conforms tools.structured.not-before tools.structured.text-copy tools.structured.error-results",
	"protocol.TestStructuredOfAnyType":         "tools.structured.any-value tools.structured.text-copy-nonobject tools.tool.output-schema.any-root tools.tool.output-schema.legacy-hidden",
	"protocol.TestArgumentErrors":              "tools.call.invalid-arguments.tool-error tools.call.invalid-arguments.names-field tools.call.extra-arguments tools.server.validates-inputs",
	"protocol.TestCheckFindsFaults":            "tools.name.unique tools.name.length tools.name.charset tools.tool.input-schema.not-null",
	"protocol.TestPages":                       "pagination.next-cursor.continues pagination.last-page pagination.cursor-scoped",
	"protocol.TestProgressAndLogs":             "progress.increases progress.stops progress.token.echo logging.per-request.opt-in logging.per-request.threshold",
	"protocol.TestLogLevelOfSession":           "logging.set-level.threshold logging.set-level.default",
	"protocol.TestInputRequired":               "mrtr.result-type mrtr.repeat-allowed mrtr.missing-answer mrtr.unknown-answers-ignored mrtr.decline-handled caching.not-on-input-required",
	"protocol.TestRequestStateRefused":         "mrtr.request-state.tampered mrtr.request-state.bound-request mrtr.answers-validated",
	"protocol.TestRequestStateExpires":         "mrtr.request-state.expires",
	"protocol.TestRetryInAnotherProcess":       "mrtr.retry.self-contained lifecycle.stateless.no-same-process",
	"protocol.TestAskInSession":                "elicit.form.mode sampling.rejection-handled jsonrpc.id.server-unique-in-session",
	"protocol.TestCancelledWhileAsking":        "cancel.server-own-requests",
	"protocol.TestFormForOlderPeers":           "elicit.form.defaults elicit.form.enum-titles elicit.form.primitive-types",
	"protocol.TestListen":                      "subs.ack.first subs.ack.filter subs.ack.unsupported-omitted subs.ack.unknown-uri subs.id.value subs.filter.only-requested subs.cancel.stops",
	"protocol.TestListenEndsWithTheServer":     "subs.close.result subs.close.cancelled-notification subs.close.subscription-id-required",
	"protocol.TestEventsInSession":             "resources.subscribe.updated resources.subscribe.only-subscribed lifecycle.server.no-list-changed-before-initialized",
	"protocol.TestTasksExtension":              "taskx.get.completed taskx.update.partial taskx.update.unknown-keys taskx.cancel.final-ack taskx.failed.jsonrpc-only",
	"protocol.TestTaskFailsAndIsCancelled":     "taskx.get.failed taskx.late-result taskx.transitions",
	"protocol.TestTaskNotifications":           "taskx.notify.subscribed taskx.notify.complete-state",
	"protocol.TestCoreTasks":                   "tasks25.notification tasks25.result.related-task tasks25.cancel.final tasks25.failed.tool-error tasks25.tool.required tasks25.ttl.purge",
	"protocol.TestEndOfInputAnswersEverything": "jsonrpc.response.exactly-one shutdown.server.exit-on-eof",
	"protocol.TestPanicsStayInside":            "security.error-no-internals tools.call.is-error.from-tool",
	"protocol.TestLimits":                      "tools.server.rate-limit",
	"mcp-fixture.TestListsAreSound":            "schema.dialect.valid schema.ref.server-local tools.x-mcp-header.unique tools.x-mcp-header.reachable resources.resource.uri-unique",
}

// notShown are requirements that nothing of ours shows, and why not.
var notShown = map[string]string{
	"resources.uri.file-xdg":           "a permission about file:// entries; the engine passes any uri and media type on, and no server here lists files",
	"elicit.url.complete-notification": "a permission; the engine does not send this notification, because nothing tells it what happened on a page",
	"elicit.url.required-error":        "a permission to refuse with -32042; the engine asks for the visit instead, which every revision with URL mode has",
}

// TestEveryRequirementIsCovered: what binds a server and can be seen over stdio is
// shown by a transcript or a test, or listed with a reason.
func TestEveryRequirementIsCovered(t *testing.T) {
	tests := goTests(t)
	covered := make(map[string]bool)
	for name, ids := range shownBy {
		if !tests[name] {
			t.Errorf("there is no test %s", name)
		}
		for id := range strings.FieldsSeq(ids) {
			if _, known := catalogue.Lookup(id); !known {
				t.Errorf("%s: unknown requirement %s", name, id)
			}
			covered[id] = true
		}
	}
	for _, path := range transcripts.Paths() {
		text, err := fs.ReadFile(transcripts.FS(), path)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := transcript.Parse(path, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range parsed.Requirements {
			covered[id] = true
		}
	}
	rows := 0
	for _, r := range catalogue.All() {
		if !r.Judged() {
			continue
		}
		rows++
		reason := notShown[r.ID]
		switch {
		case !covered[r.ID] && reason == "":
			t.Errorf("%s is shown by nothing: %s", r.ID, r.Text)
		case covered[r.ID] && reason != "":
			t.Errorf("%s is shown after all; take it out of notShown", r.ID)
		}
	}
	t.Logf("%d requirements, %d of them not shown for a reason", rows, len(notShown))
}

// goTests lists the test functions of the rooms that shownBy names.
func goTests(t *testing.T) map[string]bool {
	t.Helper()
	found := make(map[string]bool)
	for dir, path := range map[string]string{"transport": "../transport", "protocol": ".", "mcp-fixture": "../cmd/mcp-fixture"} {
		files, err := filepath.Glob(filepath.Join(path, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", path, err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
					found[dir+"."+f.Name.Name] = true
				}
			}
		}
	}
	return found
}
