#!/usr/bin/env bash
# A training step here beside PyTorch's, in short runs that take turns, so that other load on the machine meets both.
#   bench/compare_training.sh [--build FOLDER] [--python PYTHON] [ROUNDS]
# Prints the medians and their ratio for both shapes. FOLDER is where Headlight is built (build/release); PYTHON has
# torch, instead of a virtual environment made for it.

source "$(dirname "$0")/peers/prepare.sh"
options "$@"
ours=$(program bench_training_step)
override=$(mkl_override)
rounds=${rest[0]:-7}
threads=2
peer=$root/bench/peers/training_step_pytorch.py
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

compare() { # shape and the peer's options
  local shape=$1
  shift
  local here=$results/$shape-ours there=$results/$shape-theirs
  for ((round = 0; round < rounds; round++)); do
    "$ours" --shape "$shape" --only step --rounds 9 --threads $threads --json >>"$here"
    LD_PRELOAD=$override "$python" "$peer" "$@" --threads $threads --steps 9 >>"$there"
  done
  "$python" - "$shape" "$here" "$there" <<'PYTHON'
import json
import statistics
import sys

shape, ours, theirs = sys.argv[1:]
ours = [json.loads(line) for line in open(ours)]
theirs = [json.loads(line) for line in open(theirs)]
if ours[0]["parameters"] != theirs[0]["parameters"]:
    sys.exit(f"the models differ: {ours[0]['parameters']} and {theirs[0]['parameters']} parameters")
here = [run["parts"][0]["seconds"] for run in ours]
there = [run["seconds_per_step"] for run in theirs]
peak = statistics.median(run["parts"][0]["share_of_peak"] for run in ours)
ratios = [b / a for a, b in zip(here, there)]
a, b = statistics.median(here), statistics.median(there)
print(f"{shape}: headlight {1e3 * a:.2f} ms a step ({peak:.0%} of peak), {theirs[0]['peer']} {1e3 * b:.2f} ms "
      f"({peak * a / b:.0%}); {b / a:.2f} times its rate, pairs {min(ratios):.2f} to {max(ratios):.2f}, "
      f"{len(here)} runs each")
PYTHON
}

compare large --blocks 6 --width 384 --heads 6 --context 256 --batch 8 --vocabulary 256
compare small --blocks 2 --width 128 --heads 4 --context 64 --batch 32 --vocabulary 65
