# Shared by the scripts; sourced, not run.

set -euo pipefail
caller_folder=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\n== %s\n' "$*" >&2; }

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# The major version of a compiler, or 0 when it is not there.
major_version() {
  local version
  version=$("$1" -dumpversion 2>/dev/null) || version=0
  echo "${version%%.*}"
}

# Names the first compiler that is new enough: what CXX says, GCC 12 or newer, Clang 14 or newer.
find_compiler() {
  local name
  if [ -n "${CXX:-}" ]; then
    echo "$CXX"
    return
  fi
  for name in g++ g++-12 g++-13 g++-14 g++-15; do
    if [ "$(major_version "$name")" -ge 12 ]; then
      echo "$name"
      return
    fi
  done
  for name in clang++ clang++-{14..20}; do
    if [ "$(major_version "$name")" -ge 14 ]; then
      echo "$name"
      return
    fi
  done
}

# Names the first Clang that links a fuzzer.
find_clang() {
  local name
  for name in clang++ clang++-{14..20}; do
    [ "$(major_version "$name")" -ge 14 ] || continue
    if echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
      "$name" -x c++ - -fsanitize=fuzzer,address -o /dev/null 2>/dev/null; then
      echo "$name"
      return
    fi
  done
}

# build PRESET [OPTION...]: configures and builds. What the tools say is shown when they fail.
build() {
  local preset=$1 log
  shift
  CXX=$(find_compiler)
  [ -n "$CXX" ] || fail "no compiler: GCC 12 or Clang 14 or newer is needed; scripts/setup installs one"
  export CXX
  mkdir -p build
  log=build/$preset.log
  say "building $preset with $CXX"
  if ! { cmake --preset "$preset" "$@" && cmake --build --preset "$preset" --parallel "$(nproc)"; } >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    fail "build of $preset failed; all of it is in $log"
  fi
}
