#!/usr/bin/env bash
# Builds the page anew in an empty folder, whose name has a blank, and compares it byte by byte with the one in the tree.
set -euo pipefail
cd "$(dirname "$0")/../../apps/web"

folder=$(mktemp -d "${TMPDIR:-/tmp}/headlight page XXXXXX")
trap 'rm -rf "$folder"' EXIT
tar --exclude=./node_modules --exclude=./dist --create . | tar --extract --directory "$folder"
(cd "$folder" && npm ci --no-progress --loglevel=error && npm run --silent build -- --logLevel warn)

if ! cmp "$folder/dist/report.html" dist/report.html; then
  echo "apps/web/dist/report.html is not what its sources build: run 'npm run build' in apps/web and commit the result" >&2
  exit 1
fi
echo "apps/web/dist/report.html is what its sources build"
