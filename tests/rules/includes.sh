#!/usr/bin/env bash
# Includes go one way: apps -> train, explain -> model -> kernels, formats, text -> tensor -> base.
#   includes.sh ROOT
set -euo pipefail
cd "$1"

# what a folder may include, besides itself
declare -A below=(
  [base]=""
  [tensor]="base"
  [kernels]="tensor base"
  [formats]="tensor base"
  [text]="tensor base"
  [model]="kernels formats text tensor base"
  [train]="model kernels formats text tensor base"
  [explain]="model kernels formats text tensor base"
)
libraries="nlohmann fmt hwy CLI xxhash.h"
status=0

complain() {
  echo "$1: includes \"$2\": $3"
  status=1
}

# The files that a file includes, without quotation marks.
included_by() { sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]+)[">].*/\1/p' "$1"; }

while IFS= read -r file; do
  case "$file" in
    src/*) folder=${file#src/} ;;
    *) folder=${file#include/headlight/} ;;
  esac
  folder=${folder%%/*}
  # the umbrella headers stand directly in include/headlight
  if [ "include/headlight/$folder" = "$file" ]; then continue; fi
  if [ -z "${below[$folder]+known}" ]; then
    echo "$file: $folder is not a folder of the design"
    status=1
    continue
  fi
  while IFS= read -r included; do
    target=${included#headlight/}
    if [ "$target" = "$included" ] && [ ! -e "src/$included" ] && [ "${included%%/*}" != apps ]; then
      # neither a public header nor one of src: a library's or the system's
      if [[ $file == include/* ]]; then
        for library in $libraries; do
          if [ "${included%%/*}" = "$library" ]; then complain "$file" "$included" "public headers need no library"; fi
        done
      fi
      continue
    fi
    if [[ $file == include/* && $target == "$included" ]]; then
      complain "$file" "$included" "a public header includes public headers only"
    fi
    target=${target%%/*}
    case " $folder ${below[$folder]} " in
      *" $target "*) ;;
      *) complain "$file" "$included" "$folder may include only: $folder ${below[$folder]}" ;;
    esac
  done < <(included_by "$file")
done < <(find src include/headlight -name '*.h' -o -name '*.cc' | sort)

# the header of everything leaves out nothing
for header in $(find include/headlight -mindepth 2 -name '*.h' | sort); do
  if ! grep -qF "#include \"${header#include/}\"" include/headlight/headlight.h; then
    echo "include/headlight/headlight.h: does not include ${header#include/}"
    status=1
  fi
done
exit $status
