"""A model here beside llama.cpp; started by bench/compare_model.sh, which has the options.

Every measurement is a process of its own that loads its file, runs it a few times and gives medians. They take turns,
and the order turns from round to round, so that other load on the machine meets all. Ratios are taken within a round.
"""

import argparse
import dataclasses
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

LLAMA = pathlib.Path(__file__).parent / "llama.py"
OURS = ("f32", "bf16", "f16")
BYTES = {"f32": 4.0, "bf16": 2.0, "f16": 2.0, "q8_0": 34 / 32}  # of a weight
# What llama.cpp may answer a prompt in fp32 with. Its bf16 rounds both factors, for units of newer processors.
AS_EXACT = ("f32", "f16", "q8_0")


@dataclasses.dataclass
class Contender:
    name: str
    type: str
    command: list[str]
    prompt: list[float] = dataclasses.field(default_factory=list)  # seconds, by round
    token: list[float] = dataclasses.field(default_factory=list)
    flash: str = ""  # where llama.cpp was faster with flash attention in the last round


@dataclasses.dataclass
class Round:
    """What our runs of one round measured beside their times."""

    flops: float = 0  # of a prompt
    weights: float = 0  # that one token reads
    multiply_adds: list[float] = dataclasses.field(default_factory=list)  # operations per second, by run
    read: list[float] = dataclasses.field(default_factory=list)  # bytes per second, by run

    def prompt_share(self, seconds: float) -> float:
        return self.flops / seconds / statistics.median(self.multiply_adds)

    def token_share(self, seconds: float, type: str) -> float:
        return self.weights * BYTES[type] / seconds / statistics.median(self.read)


def output_of(command: list[str]) -> dict:
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def measure(contender: Contender, round: Round) -> None:
    out = output_of(contender.command)
    if contender.name == "llama.cpp":
        contender.prompt.append(out["prompt"])
        contender.token.append(out["token"])
        contender.flash = " ".join(what for what in ("prompt", "token") if out[f"{what}_flash"])
        return
    peak, prompt, read, token = out["results"]
    contender.prompt.append(prompt["seconds"])
    contender.token.append(token["seconds"])
    round.flops = 1e9 * prompt["Gflop/s"] * prompt["seconds"]
    round.weights = 1e9 * token["GB/s"] * token["seconds"] / BYTES[contender.type]
    round.multiply_adds.append(1e9 * peak["Gflop/s"])
    round.read.append(1e9 * read["GB/s"])


def contenders_of(a: argparse.Namespace, folder: str) -> list[Contender]:
    all = []
    for type in BYTES if a.llama else OURS:
        file = a.model
        if a.llama:
            file = f"{folder}/{type}.gguf"
            subprocess.run([sys.executable, str(LLAMA), "convert", a.model, file, type], check=True)
            sizes = [str(size) for size in (a.threads, a.prompt, a.past)]
            all.append(Contender("llama.cpp", type, [sys.executable, str(LLAMA), "time", file, *sizes]))
        if type in OURS:
            sizes = ["--threads", str(a.threads), "--prompt", str(a.prompt), "--past", str(a.past), "--rounds", "3"]
            all.append(Contender("headlight", type, [a.headlight, file, "--weights", type, *sizes, "--json"]))
    return all


def row_of(contender: Contender, rounds: list[Round], prompt: int) -> dict:
    prompt_shares = [round.prompt_share(s) for round, s in zip(rounds, contender.prompt)]
    token_shares = [round.token_share(s, contender.type) for round, s in zip(rounds, contender.token)]
    return {
        "name": contender.name,
        "type": contender.type,
        "prompt_tokens_per_second": prompt / statistics.median(contender.prompt),
        "prompt_share": statistics.median(prompt_shares),
        "decode_tokens_per_second": 1 / statistics.median(contender.token),
        "decode_share": statistics.median(token_shares),
        "prompt_seconds": contender.prompt,
        "token_seconds": contender.token,
        "flash_attention": contender.flash,
    }


def ratio_of(what: str, ours: Contender, theirs: list[Contender]) -> dict:
    """How many times the rate of the fastest of theirs we have, round by round."""
    times = [[getattr(one, what)[i] for one in theirs] for i in range(len(ours.prompt))]
    ratios = [min(those) / own for those, own in zip(times, getattr(ours, what))]
    types = " or ".join(one.type for one in theirs)
    return {"what": what, "type": ours.type, "of": types, "ratio": statistics.median(ratios), "by_round": ratios}


def ratios_of(contenders: list[Contender]) -> list[dict]:
    """In the same precision, and of a prompt in fp32 against the best of several."""
    theirs = {one.type: one for one in contenders if one.name == "llama.cpp"}
    if not theirs:
        return []
    ours = [one for one in contenders if one.name == "headlight"]
    best = [ratio_of("prompt", one, [theirs[type] for type in AS_EXACT]) for one in ours if one.type == "f32"]
    return best + [ratio_of(what, one, [theirs[one.type]]) for what in ("prompt", "token") for one in ours]


def show(rows: list[dict], ratios: list[dict], a: argparse.Namespace, rounds: list[Round]) -> None:
    peak = statistics.median(rate for round in rounds for rate in round.multiply_adds)
    read = statistics.median(rate for round in rounds for rate in round.read)
    print(f"{a.model}, {a.threads} threads, medians of {a.rounds} rounds")
    print(f"shares of the same round's ceilings, about {1e-9 * peak:.0f} Gflop/s and {1e-9 * read:.1f} GB/s read")
    print(f"\n{'tokens per second':20} {f'prompt of {a.prompt}':>15} {'share':>6} {f'one after {a.past}':>15} {'share':>6}")
    for row in rows:
        name = f"{row['name']}, {row['type']}"
        prompt, decode = row["prompt_tokens_per_second"], row["decode_tokens_per_second"]
        print(f"{name:20} {prompt:15.0f} {row['prompt_share']:6.1%} {decode:15.1f} {row['decode_share']:6.1%}")
    if ratios:
        print()
    for ratio in ratios:
        each = ratio["by_round"]
        print(
            f"{ratio['what']}, {ratio['type']}: {ratio['ratio']:.2f} times the rate of llama.cpp's {ratio['of']}; "
            f"{min(each):.2f} to {max(each):.2f} by round"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--headlight", required=True)
    parser.add_argument("--llama", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--past", type=int, default=128)
    parser.add_argument("--json", type=pathlib.Path)
    a = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that nothing is left behind
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        contenders = contenders_of(a, folder)
        for i in range(a.rounds):
            rounds.append(Round())
            first = i % len(contenders)
            for contender in contenders[first:] + contenders[:first]:
                measure(contender, rounds[-1])
    rows = [row_of(contender, rounds, a.prompt) for contender in contenders]
    ratios = ratios_of(contenders)
    show(rows, ratios, a, rounds)
    if a.json:
        out = {"model": a.model, "threads": a.threads, "rounds": a.rounds, "prompt": a.prompt, "past": a.past}
        out |= {"results": rows, "ratios": ratios, "ceilings": [dataclasses.asdict(round) for round in rounds]}
        a.json.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError:
        sys.exit(1)  # that program has said why
