#!/usr/bin/env python3
"""The rate of the library `tokenizers` on one thread, to set beside bench_tokenizer.

Usage: pip install tokenizers==0.23.3 && peers/tokenizer_peer.py tokenizer.json TEXT [ROUNDS]
"""

import os
import statistics
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import Tokenizer


def rate(work, size, rounds):
    seconds = []
    work()
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return size / statistics.median(seconds) / 1e6


def main():
    tokenizer = Tokenizer.from_file(sys.argv[1])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    with open(sys.argv[2], encoding="utf-8", newline="") as file:
        text = file.read()
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    size = len(text.encode())
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    print(f"encode {rate(lambda: tokenizer.encode(text, add_special_tokens=False), size, rounds):8.1f} MB/s, "
          f"{size / len(ids):.2f} bytes/token")
    print(f"decode {rate(lambda: tokenizer.decode(ids), size, rounds):8.1f} MB/s")


if __name__ == "__main__":
    main()
