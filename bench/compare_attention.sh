#!/usr/bin/env bash
# The attention kernels beside PyTorch, ONNX Runtime, oneDNN, a composition of products and softmax, and a scalar loop.
#   bench/compare_attention.sh [--json FILE] [--threads N]... [--rounds N] [--tries N] [FILTER]
#     cases whose text contains FILTER, as "T1024 K64 forward, causal" or "decode"; with 2 threads and then 1, or as
#     many as --threads says; a measurement that other load disturbed is repeated up to --tries times
#   --build FOLDER: where Headlight is built (build/release); --python PYTHON: one that has the peers, instead of a
#     virtual environment made for them. A peer that is missing is left out.

source "$(dirname "$0")/peers/prepare.sh"
options "$@"

has_module numpy || fail "$python has no numpy, which the comparison itself needs"
arguments=(--headlight "$(program bench_attention_contenders)" --mkl-override "$(mkl_override)")
for module in torch onnxruntime; do
  if has_module $module; then arguments+=(--peer $module); else echo "left out: $module is not installed" >&2; fi
done
if [ -x "$build/bench/bench_attention_onednn" ]; then
  arguments+=(--onednn "$build/bench/bench_attention_onednn")
else
  echo "left out: oneDNN (libdnnl-dev) was not there when Headlight was built" >&2
fi
"$python" "$root/bench/peers/compare_attention.py" "${arguments[@]}" "${rest[@]}"
