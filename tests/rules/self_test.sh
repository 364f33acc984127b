#!/usr/bin/env bash
# Each rule finds what it is there to find: a small tree passes, and fails with one thing wrong in it.
#   self_test.sh RULES_FOLDER NM CXX
set -euo pipefail
rules=$1
nm=$2
cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# A tree in which everything is right.
make_tree() {
  rm -rf "$work/tree"
  mkdir -p "$work"/tree/{src/{base,kernels,train,explain},include/headlight/{base,kernels}}
  cd "$work/tree"
  printf '#pragma once\n' | tee include/headlight/base/error.h include/headlight/kernels/add.h src/base/detail.h >/dev/null
  printf '#pragma once\n#include "headlight/base/error.h"\n#include "headlight/kernels/add.h"\n' >include/headlight/headlight.h
  printf '#include "headlight/kernels/add.h"\n\n#include <cstdio>\n\n#include "base/detail.h"\n' >src/kernels/add.cc
}

# expect RESULT RULE WHAT: runs the rule on the tree
expect() {
  local got=pass
  bash "$rules/$2.sh" "$work/tree" >"$work/log" 2>&1 || got=fail
  if [ "$got" != "$1" ]; then
    echo "$2: $3: expected to $1, got $got"
    cat "$work/log"
    status=1
  fi
}

# wrong RULE FILE TEXT: the text, added to a file of a right tree, makes the rule fail
wrong() {
  make_tree
  mkdir -p "$(dirname "$2")"
  printf '%b\n' "$3" >>"$2"
  expect fail "$1" "$2: $3"
}

for rule in includes no_print text; do
  make_tree
  expect pass "$rule" "a right tree"
done

wrong includes src/base/a.cc '#include "headlight/kernels/add.h"'
wrong includes src/base/a.cc '#  include <headlight/kernels/add.h>'
wrong includes include/headlight/base/error.h '#include "headlight/kernels/add.h"'
wrong includes include/headlight/kernels/add.h '#include "base/detail.h"'
wrong includes include/headlight/kernels/add.h '#include <nlohmann/json.hpp>'
wrong includes src/train/a.cc '#include "explain/a.h"\n#include "headlight/explain/a.h"'
wrong includes src/explain/a.cc '#include "headlight/train/a.h"'
wrong includes src/kernels/a.cc '#include "headlight/headlight.h"'
wrong includes src/kernels/a.cc '#include "apps/cli/options.h"'
wrong includes src/other/a.cc ''
wrong includes include/headlight/kernels/new.h '#pragma once'

wrong no_print src/base/a.cc 'void f() { std::cout << 1; }'
wrong no_print src/base/a.cc 'void f() { printf("1"); }'
wrong no_print src/base/a.cc 'void f() { std::fprintf(stderr, "1"); }'
wrong no_print src/base/a.cc 'void f() { fmt::print("1"); }'
wrong no_print src/base/a.cc 'void f() { exit(1); }'
wrong no_print src/base/a.cc 'void f() { std::abort(); }'
wrong no_print src/base/a.cc 'void f() { assert (1); }'

# put together here, so that this file holds neither
address=https:
folder=/home
wrong text notes.md "see $address//example.org/page"
wrong text src/base/a.cc "// $folder/somebody/file"
wrong text src/base/CamelCase.cc ''
wrong text src/base/guard.h '#ifndef A'
wrong text src/base/long.cc "$(printf '%900s' | sed 's/ /\\n/g')"

# a function that the compiled library may not ask for
for body in 'printf("%d", i)' 'exit(i)' 'abort()' 'puts("")' 'fflush(stdout)'; do
  printf '#include <cstdio>\n#include <cstdlib>\nvoid f(int i) { (void)i; %s; }\n' "$body" >"$work/a.cc"
  "$cxx" -c -O2 -o "$work/a.o" "$work/a.cc"
  if bash "$rules/symbols.sh" "$nm" "$work/a.o" >/dev/null; then
    echo "symbols: $body: expected to fail"
    status=1
  fi
done
printf '#include <cstdio>\nint f(char* s, int i) { return snprintf(s, 9, "%%d", i); }\n' >"$work/a.cc"
"$cxx" -c -O2 -o "$work/a.o" "$work/a.cc"
if ! bash "$rules/symbols.sh" "$nm" "$work/a.o"; then
  echo "symbols: snprintf: expected to pass"
  status=1
fi
exit $status
