#!/usr/bin/env bash
# The library's source has no print, exit or abort.
#   no_print.sh ROOT
set -euo pipefail
cd "$1"
words='std::(cout|cerr|clog|exit|abort|quick_exit|_Exit|terminate)\b'
words+='|(^|[^A-Za-z0-9_.>:])(std::)?(v?f?printf|puts|fputs|putchar|fputc|perror|exit|_exit|_Exit|quick_exit|abort|assert)[[:space:]]*\('
words+='|fmt::print|std::print|<iostream>|<cassert>|<print>|<fmt/ostream\.h>|HWY_(ABORT|ASSERT)'
if grep -rnE "$words" src include --include='*.h' --include='*.cc'; then
  echo "the library never prints, exits or aborts: throw Error or LogicError"
  exit 1
fi
