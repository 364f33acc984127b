#!/usr/bin/env bash
# All checks of the report page: types, units, the committed build, and the page in a browser.
# Needs Node 18 or later with npm, and Debian's chromium (or CHROMIUM=path). Ends with "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")"
web=$(realpath ../../apps/web)
passed=0
failed=0

step() { # name, command...
  local name=$1
  shift
  echo "== $name"
  if "$@"; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAILED: $name" >&2
  fi
}

step "install" npm ci --prefix "$web" --no-progress --loglevel=error
ln -sfn ../../apps/web/node_modules node_modules
step "types" "$web/node_modules/.bin/tsc" --noEmit -p "$web"
step "the committed page is what its sources build" ./rebuild.sh

counts=$(mktemp)
trap 'rm -f "$counts"' EXIT
node_modules/.bin/vitest run --reporter=default --reporter=json --outputFile.json="$counts"
read -r tests_passed tests_failed < <(
  node -e 'const r = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
    console.log(r.numPassedTests, r.numFailedTests + (r.success || r.numFailedTests ? 0 : 1))' "$counts" || echo 0 1
)
passed=$((passed + tests_passed))
failed=$((failed + tests_failed))

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
