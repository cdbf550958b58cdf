#!/usr/bin/env bash
# Gives every fuzz target of the module the same time, one after the other.
#   scripts/fuzz.sh 10m [PATTERN]
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10m} pattern=${2:-.}
failed=0
while IFS=: read -r file target; do
	target=${target#func } target=${target%%(*}
	[[ $file:$target =~ $pattern ]] || continue
	echo "== $(dirname "$file") $target"
	go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$time" || failed=1
done < <(git ls-files '*_test.go' | xargs grep -o '^func Fuzz[A-Za-z0-9_]*(' /dev/null)
exit $failed
