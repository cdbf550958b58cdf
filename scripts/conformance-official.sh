#!/usr/bin/env bash
# Plays the official MCP conformance suite (HTTP only) against a stdio server
# through `mcp-conformance bridge`, at both revisions that have a frozen set of
# requirements. Everything from npm is pinned by official-suite/package-lock.json.
#
#   scripts/conformance-official.sh [COMMAND ARGS…]     default: bin/mcp-fixture
#
# Scenarios that the suite runs without scoring them are judged too.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v npm >/dev/null; then
	echo "conformance-official: skipped: npm is not installed" >&2
	exit 0
fi
command=("$@")
if [ ${#command[@]} -eq 0 ]; then
	command=(bin/mcp-fixture)
fi

work=${TMPDIR:-/tmp}/mcp-official-suite-$(id -u)
mkdir -p "$work"
cp scripts/official-suite/package.json scripts/official-suite/package-lock.json "$work/"
if ! (cd "$work" && npm ci --no-audit --no-fund >npm.log 2>&1); then
	echo "conformance-official: skipped: npm could not install the suite:" >&2
	tail -5 "$work/npm.log" >&2
	exit 0
fi
node="$work/node_modules/.bin/node" # the suite needs node 22 or later; this one is pinned
suite="$work/node_modules/@modelcontextprotocol/conformance/dist/index.js"

go build -trimpath -o "$work/mcp-conformance" ./cmd/mcp-conformance
rm -f "$work/url" # of an earlier run
"$work/mcp-conformance" bridge --listen 127.0.0.1:0 -- "${command[@]}" >"$work/url" 2>"$work/server.log" &
bridge=$!
trap 'kill $bridge 2>/dev/null; wait $bridge 2>/dev/null || true' EXIT
for _ in $(seq 100); do
	[ -s "$work/url" ] && break
	kill -0 $bridge || { cat "$work/server.log" >&2; exit 1; }
	sleep 0.1
done
url=$(cat "$work/url")

failed=0
for revision in 2025-11-25 2026-07-28; do
	rm -rf "$work/results-$revision"
	code=0
	"$node" "$suite" server --url "$url" --requirements "$revision" -o "$work/results-$revision" >"$work/$revision.log" 2>&1 || code=$?
	sed -n '/=== SUMMARY ===/,$p' "$work/$revision.log"
	[ $code -eq 0 ] || failed=1
	if [ ! -d "$work/results-$revision" ]; then
		echo "the suite left no results for $revision:" >&2
		tail -n 20 "$work/$revision.log" >&2
		failed=1
		continue
	fi
	"$node" scripts/official-suite/findings.mjs "$work/results-$revision" || failed=1
done
exit $failed
