#!/usr/bin/env bash
# A model here beside llama.cpp: a prompt at once, and one token at a time, each precision in a GGUF file that both read.
#   bench/compare_model.sh [--json FILE] [--rounds N] [--threads N] [--prompt N] [--past N] MODEL.gguf
#     prints tokens per second, shares of the multiply-add rate and of the read bandwidth measured in the same rounds,
#     and ratios, as medians of runs that take turns; 7 rounds with 2 threads, a prompt of 512 tokens, and one token
#     after 128 unless told otherwise. llama.cpp makes the files from MODEL; they are removed again
#   --build FOLDER: where Headlight is built (build/release); --python PYTHON: one that has llama_cpp, instead of a
#     virtual environment in which pip builds it (some minutes). Where it is missing it is left out.

source "$(dirname "$0")/peers/prepare.sh"
peers=model
options "$@"

arguments=(--headlight "$(program bench_model)")
if has_module llama_cpp; then arguments+=(--llama); else echo "left out: llama_cpp is not installed" >&2; fi
"$python" "$root/bench/peers/compare_model.py" "${arguments[@]}" "${rest[@]}"
