"""Attention beside its peers; started by bench/compare_attention.sh, which has the options.

Every contender lives in a program of its own that answers over pipes (serve.h, serve.py). All programs but the one at
work are stopped, so that threads that spin take nothing from the next. In each round every contender is timed once;
the order turns from round to round. A measurement during which the threads waited for a processor, because something
else ran there, is repeated; the least disturbed one counts, whatever its time. With one thread there is no need: the
time that it had a processor counts, which is what the clock shows on a quiet machine.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).parent

# Contenders sum in their own orders and have their own exponentials; scores of these inputs are up to 10 in size, so
# that weights differ by some 1e-6 of themselves. Gradients gather such errors over all rows. A wrong mask or scale
# shows up a thousand times larger.
TOLERANCE = {"forward": 2e-5, "decode": 2e-5, "backward": 1e-4, "training": 1e-4}


OURS = ("headlight", "headlight by head", "composed")


@dataclasses.dataclass
class Case:
    B: int
    H: int
    Hkv: int
    Tq: int
    Tk: int
    K: int
    kind: str
    causal: bool
    sets: int = 1

    def __str__(self) -> str:
        heads = f"H{self.H}" if self.H == self.Hkv else f"H{self.H}/{self.Hkv}"
        if self.kind == "decode":
            where = "from memory" if self.sets > 1 else "same bytes"
            return f"B{self.B} {heads} T{self.Tk} K{self.K} decode, {where}"
        return f"B{self.B} {heads} T{self.Tk} K{self.K} {self.kind}, {'causal' if self.causal else 'full'}"

    @property
    def unit(self) -> str:
        return "GB/s" if self.kind == "decode" else "GFLOP/s"

    @property
    def ceiling(self) -> str:
        return "read" if self.kind == "decode" else "multiply-adds"

    @property
    def amount(self) -> float:
        """Useful work of a call: bytes of keys and values, or operations on visible pairs."""
        if self.kind == "decode":
            return 4.0 * self.B * self.Hkv * self.Tk * 2 * self.K
        pairs = self.Tq * (self.Tq + 1) / 2 if self.causal else self.Tq * self.Tk
        return self.B * self.H * pairs * 4 * self.K * {"forward": 1, "backward": 2.5, "training": 3.5}[self.kind]


def last_cache_bytes() -> int:
    sizes = [p.read_text().strip() for p in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max((int(s[:-1]) * 1024 for s in sizes if s.endswith("K")), default=64 << 20)


def all_cases() -> list[Case]:
    cases = []
    # long sequences; those of training at widths 384, 128 and 64; one that the scalar loop can do
    for B, H, T, K in [
        (1, 12, 1024, 64),
        (1, 12, 4096, 64),
        (2, 8, 512, 64),
        (1, 32, 2048, 128),
        (8, 6, 256, 64),
        (32, 4, 64, 32),
        (32, 4, 96, 16),
        (1, 2, 256, 64),
    ]:
        for kind in ("forward", "backward", "training"):
            cases += [Case(B, H, H, T, T, K, kind, causal) for causal in (False, True)]
    for H, Hkv in ((12, 12), (32, 8)):
        case = Case(1, H, Hkv, 1, 4096, 64, "decode", True)
        beyond_caches = -(-4 * last_cache_bytes() // int(case.amount))
        cases += [dataclasses.replace(case, sets=beyond_caches), case]
    return cases


class Program:
    """A program of contenders, stopped but while it works."""

    def __init__(self, command: list[str], environment: dict[str, str]):
        self.command = command
        self.process = subprocess.Popen(
            command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.process.send_signal(signal.SIGSTOP)

    def ask(self, **message) -> dict:
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"{' '.join(self.command)}: ended in {message}")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def waited(self) -> float:
        """Seconds that its threads were ready but not on a processor."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[1])
        return total * 1e-9

    def close(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()


@dataclasses.dataclass
class Entry:
    program: Program
    name: str
    variant: str
    amount: float
    error: float | None = None  # largest difference from ours, of the largest number
    calls: int = 1
    seconds: list[float] = dataclasses.field(default_factory=list)  # of a call, by round
    disturbed: list[float] = dataclasses.field(default_factory=list)

    def time(self, threads: int, tries: int) -> None:
        best = None
        own = threads == 1
        for _ in range(tries):
            if self.calls > 1:  # the first call finds cold caches and sleeping threads
                self.program.ask(do="time", name=self.name, calls=1, own=own)
            waited, begin = self.program.waited(), time.perf_counter()
            seconds = self.program.ask(do="time", name=self.name, calls=self.calls, own=own)["seconds"]
            share = (self.program.waited() - waited) / (threads * (time.perf_counter() - begin))
            if best is None or share < best[0]:
                best = (share, seconds / self.calls)
            if share < 0.01 or own:
                break
        self.disturbed.append(best[0])
        self.seconds.append(best[1])

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def write_inputs(case: Case, folder: str) -> None:
    random = np.random.default_rng(1)
    queries, keys = (case.B, case.Tq, case.H, case.K), (case.B, case.Tk, case.Hkv, case.K)
    for name, shape in (("q", queries), ("k", keys), ("v", keys), ("d_o", queries)):
        random.standard_normal(shape, np.float32).tofile(f"{folder}/{name}.f32")


def first_head_exactly(case: Case, folder: str) -> dict[str, np.ndarray]:
    """The results of the first head of the first sequence in double precision, (T, K)."""

    def load(name: str, T: int, heads: int) -> np.ndarray:
        x = np.fromfile(f"{folder}/{name}.f32", np.float32).reshape(case.B, T, heads, case.K)
        return x[0, :, 0].astype(np.float64)

    q, d_o = load("q", case.Tq, case.H), load("d_o", case.Tq, case.H)
    k, v = load("k", case.Tk, case.Hkv), load("v", case.Tk, case.Hkv)
    scale = case.K**-0.5
    s = scale * q @ k.T
    if case.causal and case.Tq > 1:
        s[np.triu_indices(case.Tq, 1)] = -np.inf
    s = np.exp(s - s.max(1, keepdims=True))
    s /= s.sum(1, keepdims=True)
    if case.kind in ("forward", "decode"):
        return {"o": s @ v}
    dv = s.T @ d_o
    d = d_o @ v.T
    d = s * (d - (s * d).sum(1, keepdims=True))
    return {"dq": scale * d @ k, "dk": scale * d.T @ q, "dv": dv}


def load_results(case: Case, folder: str, name: str, arrays: list[str]) -> dict[str, np.ndarray]:
    out = {}
    for array in arrays:
        path = f"{folder}/{name}-{array}.f32"
        x = np.fromfile(path, np.float32)
        os.remove(path)
        of_query = array in ("o", "dq")
        out[array] = x.reshape(case.B, case.Tq if of_query else case.Tk, case.H if of_query else case.Hkv, case.K)
    return out


def largest_error(got: np.ndarray, wanted: np.ndarray) -> float:
    if not np.isfinite(got).all():
        return float("inf")
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


def check_equal(case: Case, entries: list[Entry], folder: str) -> None:
    """Every contender's results against ours, and ours against double precision. Stops where they differ."""
    ours = None
    for entry in entries:
        arrays = entry.program.ask(do="results", name=entry.name)["arrays"]
        if not arrays:  # a ceiling
            continue
        results = load_results(case, folder, entry.name, arrays)
        if ours is None:
            ours = results
            wanted = first_head_exactly(case, folder)
            errors = [largest_error(results[n][0, :, 0], wanted[n]) for n in wanted]
        else:
            errors = [largest_error(results[n], ours[n]) for n in ours]
        entry.error = max(errors)
        if entry.error > TOLERANCE[case.kind]:
            sys.exit(f"{case}: {entry.name} ({entry.variant}) differs by {entry.error:.1e} of the largest number")


def measure(case: Case, programs: list[Program], threads: int, rounds: int, tries: int, folder: str) -> list[Entry]:
    write_inputs(case, folder)
    entries = []
    for program in programs:
        answer = program.ask(do="setup", folder=folder, **dataclasses.asdict(case))
        entries += [Entry(program, c["name"], c["variant"], c["amount"]) for c in answer["contenders"] or ()]
    check_equal(case, entries, folder)
    for entry in entries:
        entry.time(threads, 1)
        # long enough that a wait for a processor stands out, short enough to find a quiet moment
        entry.calls = max(1, round(0.03 / entry.seconds.pop()))
        entry.disturbed.pop()
    for i in range(rounds):
        for entry in entries[i % len(entries) :] + entries[: i % len(entries)]:
            entry.time(threads, tries)
    return entries


def rows_of(case: Case, entries: list[Entry], threads: int) -> list[dict]:
    ours = next(e for e in entries if e.name == "headlight")
    ceiling = next(e for e in entries if e.name == case.ceiling)
    peak = ceiling.amount / ceiling.median
    rows = []
    for entry in entries:
        amount = entry.amount or case.amount
        is_ceiling = entry.amount > 0
        ratios = [theirs / own for theirs, own in zip(entry.seconds, ours.seconds)]
        rows.append(
            {
                "case": str(case),
                **dataclasses.asdict(case),
                "threads": threads,
                "name": entry.name,
                "variant": entry.variant,
                "seconds": entry.median,
                "rate": amount / entry.median,
                "unit": "B/s" if case.kind == "decode" and entry.name != "multiply-adds" else "FLOP/s",
                "share": amount / entry.median / peak if not is_ceiling or entry is ceiling else None,
                "times_ours": None if is_ceiling else entry.median / ours.median,
                "times_ours_each_round": None if is_ceiling else ratios,
                "error": entry.error,
                "waited": statistics.median(entry.disturbed),
            }
        )
    return rows


def show_best(what: str, rows: list[dict]) -> None:
    if not rows:
        return
    best = min(rows, key=lambda row: row["seconds"])
    each = best["times_ours_each_round"]
    spread = f"{min(each):.2f} to {max(each):.2f} by round"
    print(f"{what}: {best['name']}, {best['times_ours']:.2f} times our time, {spread}")


def show(case: Case, rows: list[dict]) -> None:
    print(f"\n{str(case):34} {'ms':>9} {case.unit:>8} {'share':>6} {'x ours':>7} {'error':>8} {'waited':>6}  how")
    for row in rows:
        share = f"{row['share']:6.1%}" if row["share"] is not None else 6 * " "
        ratio = f"{row['times_ours']:7.2f}" if row["times_ours"] is not None else 7 * " "
        error = f"{row['error']:8.1e}" if row["error"] is not None else 8 * " "
        print(
            f"{row['name']:34} {1e3 * row['seconds']:9.3f} {1e-9 * row['rate']:8.1f} {share} {ratio} {error} "
            f"{row['waited']:6.1%}  {row['variant']}"
        )
    peers = [row for row in rows if row["times_ours"] is not None and row["name"] not in OURS]
    show_best("best peer", peers)
    if case.kind in ("backward", "training"):
        show_best("best that stores no (T, T) weights", [row for row in peers if "composed" not in row["name"]])
    sys.stdout.flush()


def environment(threads: int, mkl: str) -> dict[str, str]:
    """What each program runs with. Threads may spin as they like: they are stopped when others are at work."""
    return {
        "HEADLIGHT_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        # memory that was freed is kept, instead of being fetched from the system and cleared at each call
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        **({"LD_PRELOAD": mkl} if mkl else {}),
    }


def start(a: argparse.Namespace, threads: int) -> list[Program]:
    commands = [([str(a.headlight)], "")]
    if a.onednn:
        commands.append(([a.onednn], ""))
    options = ["--threads", str(threads)]
    for module, mkl in (("torch", a.mkl_override), ("onnxruntime", "")):
        if module in a.peer:
            name = {"torch": "pytorch"}.get(module, module)
            commands.append(([sys.executable, str(HERE / f"attention_{name}.py"), *options], mkl))
    return [Program(command, environment(threads, mkl)) for command, mkl in commands]


def run_with(a: argparse.Namespace, threads: int, cases: list[Case], folder: str) -> list[dict]:
    print(f"\n{threads} threads, medians of {a.rounds} rounds; load {os.getloadavg()[0]:.1f}")
    programs = start(a, threads)
    rows = []
    try:
        for case in cases:
            found = rows_of(case, measure(case, programs, threads, a.rounds, a.tries, folder), threads)
            show(case, found)
            rows += found
    finally:
        for program in programs:
            program.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--headlight", required=True, type=pathlib.Path)
    parser.add_argument("--onednn", default="")
    parser.add_argument("--mkl-override", default="")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    a = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that nothing is left behind
    cases = [case for case in all_cases() if a.filter in str(case)]
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        rows = [row for threads in a.threads or [2, 1] for row in run_with(a, threads, cases, folder)]
    finally:
        shutil.rmtree(folder)
    if a.json:
        a.json.write_text(json.dumps({"rounds": a.rounds, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
