#!/usr/bin/env bash
# Opens a report in a headless browser and fails when the page shows an error: open.sh REPORT.html
set -euo pipefail
report=$(realpath "$1")
cd "$(dirname "$0")"
[ -e ../../apps/web/node_modules ] || npm ci --prefix ../../apps/web --no-progress --loglevel=error
ln -sfn ../../apps/web/node_modules node_modules
exec node_modules/.bin/vite-node open.ts "$report"
