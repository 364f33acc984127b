#!/usr/bin/env bash
# Files of the tree name no folder of one machine and no address beyond those listed here, and stay short.
#   text.sh ROOT
set -euo pipefail
cd "$1"
status=0

# addresses that a reader or a browser needs as they are: licences, papers, XML names
allowed='www\.apache\.org|www\.w3\.org|arxiv\.org|doi\.org|github\.com/(preactjs|leeoniya)/'

files() { find . -type f -not -path './.git*' -not -path './build*' -not -path './runs/*' -not -path '*/node_modules/*' "$@"; }

# the lock file's addresses are of people who ask for funding; those of downloads are left out of it
addresses=$(files -not -name package-lock.json -print0 | xargs -0 grep -noEI 'https?://[A-Za-z0-9.-]+[/A-Za-z0-9.-]*' | grep -vE "https?://($allowed)" || true)
if [ -n "$addresses" ]; then
  printf '%s\nthe addresses above are not among those allowed\n' "$addresses"
  status=1
fi

if grep -rl '"resolved"' --include=package-lock.json --exclude-dir=node_modules .; then
  echo "the lock file above records download addresses"
  status=1
fi

paths=$(files -print0 | xargs -0 grep -noEI '(^|[^A-Za-z0-9_.~-])/(home|root|Users|work|mnt|media)/[A-Za-z0-9_.-]+' || true)
if [ -n "$paths" ]; then
  printf '%s\nthe paths above are of one machine\n' "$paths"
  status=1
fi

while IFS= read -r file; do
  lines=$(wc -l <"$file")
  if [ "$lines" -gt 800 ]; then
    echo "$file: $lines lines; files near 800 are split"
    status=1
  fi
done < <(files \( -name '*.h' -o -name '*.cc' -o -name '*.ts' -o -name '*.tsx' -o -name '*.sh' \))

while IFS= read -r file; do
  if ! [[ $(basename "$file") =~ ^[a-z0-9_]+(-inl)?\.(h|cc)$ ]]; then
    echo "$file: names are snake_case"
    status=1
  fi
  if [[ $file == *.h ]] && ! grep -qx '#pragma once' "$file" && [[ $file != *-inl.h ]]; then
    echo "$file: has no #pragma once"
    status=1
  fi
done < <(files \( -name '*.h' -o -name '*.cc' \))
exit $status
