"""llama.cpp, for compare_model.py.

llama.py convert MODEL.gguf FILE TYPE: the same weights in f32, f16, bf16 or q8_0.
llama.py time MODEL.gguf THREADS PROMPT PAST: medians of a prompt at once and of one token after PAST, as JSON; each with
or without flash attention, whichever is faster.
"""

import contextlib
import ctypes
import json
import os
import statistics
import sys
import time

import llama_cpp

TYPES = {
    "f32": llama_cpp.LLAMA_FTYPE_ALL_F32,
    "f16": llama_cpp.LLAMA_FTYPE_MOSTLY_F16,
    "bf16": llama_cpp.LLAMA_FTYPE_MOSTLY_BF16,
    "q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
}


@contextlib.contextmanager
def quiet():
    """It writes its log to standard error; what it throws is seen all the same."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(nowhere)
        os.close(kept)


def convert(model: str, file: str, name: str) -> None:
    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype = TYPES[name]
    options.allow_requantize = True
    if llama_cpp.llama_model_quantize(model.encode(), file.encode(), ctypes.byref(options)) != 0:
        raise RuntimeError(f"{model}: llama.cpp does not convert it to {name}")


class Context:
    def __init__(self, model, threads: int, tokens: int, flash: bool):
        options = llama_cpp.llama_context_default_params()
        options.n_ctx = options.n_batch = options.n_ubatch = tokens
        options.n_threads = options.n_threads_batch = threads
        options.flash_attn_type = int(flash)
        self.flash = flash
        self.context = llama_cpp.llama_init_from_model(model, options)
        self.memory = llama_cpp.llama_get_memory(self.context)

    def decode(self, tokens, keep: int) -> float:
        """Seconds of `tokens` after the first `keep` of those that it holds; gives the last one's logits."""
        llama_cpp.llama_memory_seq_rm(self.memory, 0, keep, -1)
        batch = llama_cpp.llama_batch_get_one(tokens, len(tokens))
        begin = time.perf_counter()
        if llama_cpp.llama_decode(self.context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        llama_cpp.llama_synchronize(self.context)
        return time.perf_counter() - begin


def fastest(contexts: list, tokens, keep: int, calls: int) -> tuple[float, bool]:
    """The median of the calls in the context where it is shorter, and whether that has flash attention."""
    of_each = {context.flash: [] for context in contexts}
    for context in contexts:
        context.decode(tokens, keep)  # the first call finds cold caches
    for _ in range(calls):
        for context in contexts:
            of_each[context.flash].append(context.decode(tokens, keep))
    return min((statistics.median(seconds), flash) for flash, seconds in of_each.items())


def measure(file: str, threads: int, prompt: int, past: int) -> dict:
    model = llama_cpp.llama_model_load_from_file(file.encode(), llama_cpp.llama_model_default_params())
    if not model:
        raise RuntimeError(f"{file}: llama.cpp does not load it")
    vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))

    def some_tokens(count: int):
        return (llama_cpp.llama_token * count)(*((i * 7919 + 13) % vocabulary for i in range(count)))

    contexts = [Context(model, threads, max(prompt, past + 1), flash) for flash in (False, True)]
    prompt_seconds, prompt_flash = fastest(contexts, some_tokens(prompt), 0, 3)
    for context in contexts:
        if past > 0:
            context.decode(some_tokens(past), 0)
    token_seconds, token_flash = fastest(contexts, some_tokens(1), past, 15)
    return {
        "prompt": prompt_seconds,
        "prompt_flash": prompt_flash,
        "token": token_seconds,
        "token_flash": token_flash,
    }


def main() -> None:
    action, file, *rest = sys.argv[1:]
    try:
        with quiet():
            out = convert(file, *rest) if action == "convert" else measure(file, *map(int, rest))
    except RuntimeError as error:
        sys.exit(str(error))
    if out:
        print(json.dumps(out))


if __name__ == "__main__":
    main()
