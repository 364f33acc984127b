# Shared by the comparisons with peers; sourced, not run. Sets `root`, and by options() `build` and `python`.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build/release
python=
peers= # which: "" is all of requirements.txt, NAME those of requirements_NAME.txt

fail() {
  echo "$*" >&2
  exit 1
}

# --build and --python from the command line; what remains is left in `rest`.
options() {
  rest=()
  while [ $# -gt 0 ]; do
    case $1 in
      --build) build=$2 && shift 2 ;;
      --python) python=$2 && shift 2 ;;
      -h | --help) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" && exit ;;
      *) rest+=("$1") && shift ;;
    esac
  done
  [ -n "$python" ] || make_environment
}

# A virtual environment with the peers, made once and kept in the build folder.
make_environment() {
  local suffix=${peers:+_$peers} line
  local folder=$root/build/peers$suffix
  python=$folder/bin/python
  [ -e "$folder/made" ] && return
  python3 -m venv "$folder"
  while read -r line; do
    "$python" -m pip install --quiet --disable-pip-version-check "$line" || echo "left out: $line" >&2
  done <"$root/bench/peers/requirements$suffix.txt"
  touch "$folder/made"
}

has_module() { "$python" -c "import $1" 2>/dev/null; }

# The path of a built program.
program() {
  [ -x "$build/bench/$1" ] || fail "$build/bench/$1 is missing: cmake --preset release; cmake --build --preset release"
  echo "$build/bench/$1"
}

# What to load before PyTorch so that its MKL uses all that this processor has; nothing where it does so by itself.
mkl_override() {
  grep -q GenuineIntel /proc/cpuinfo && return
  [ "$(uname -m)" = x86_64 ] || return 0
  local library=$build/bench/mkl_any_processor.so
  cc -shared -fPIC -o "$library" "$root/bench/peers/mkl_any_processor.c" && echo "$library"
}
