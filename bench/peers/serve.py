"""A program of contenders that attention_compare.py drives over pipes; bench/peers/serve.h has the protocol."""

import dataclasses
import json
import sys
import time
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass
class Problem:
    folder: str
    kind: str  # forward, backward, training (both) or decode
    causal: bool
    B: int
    H: int
    Hkv: int
    Tq: int
    Tk: int
    K: int
    sets: int

    @property
    def has_gradients(self) -> bool:
        return self.kind in ("backward", "training")

    @property
    def scale(self) -> float:
        return self.K**-0.5

    def load(self, name: str) -> np.ndarray:
        """An input, (B, T, heads, K)."""
        of_query = name in ("q", "d_o")
        shape = (self.B, self.Tq, self.H, self.K) if of_query else (self.B, self.Tk, self.Hkv, self.K)
        return np.fromfile(f"{self.folder}/{name}.f32", np.float32).reshape(shape)


@dataclasses.dataclass
class Contender:
    name: str
    variant: str  # how it is run, in words
    run: Callable[[int], object]  # of a set of keys and values
    results: Callable[[], dict[str, np.ndarray]]  # runs set 0; arrays (B, T, heads, K)


def seconds_of(contender: Contender, calls: int, sets: int, clock=time.perf_counter) -> float:
    begin = clock()
    for i in range(calls):
        contender.run(i % sets)
    return clock() - begin


def fastest(variants: list[Callable[[], Contender]], sets: int) -> list[Contender]:
    """Of several ways to run one contender the one with the shortest call, measured in turns; none when none works."""
    made, errors = [], []
    for make in variants:
        try:
            contender = make()
            contender.run(0)
            made.append(contender)
        except Exception as error:  # a peer says in its own way what it cannot do
            errors.append(str(error).splitlines()[0])
    if not made:
        print("left out:", *errors, sep="\n  ", file=sys.stderr)
        return []
    if len(made) == 1:
        return made
    once = min(seconds_of(contender, 1, 1) for contender in made)
    calls = max(1, int(0.02 / once))
    best = [float("inf")] * len(made)
    for _ in range(3):
        for i, contender in enumerate(made):
            best[i] = min(best[i], seconds_of(contender, calls, sets))
    return [made[best.index(min(best))]]


def serve(contenders_for: Callable[[Problem], list[Contender]]) -> None:
    contenders: dict[str, Contender] = {}
    problem = None
    for line in sys.stdin:
        message = json.loads(line)
        action = message.pop("do")
        if action == "setup":
            contenders.clear()  # before the new ones take memory
            problem = Problem(**message)
            contenders = {c.name: c for c in contenders_for(problem)}
            out = {"contenders": [{"name": c.name, "variant": c.variant, "amount": 0} for c in contenders.values()]}
        elif action == "results":
            arrays = contenders[message["name"]].results()
            for name, array in arrays.items():
                np.ascontiguousarray(array, np.float32).tofile(f"{problem.folder}/{message['name']}-{name}.f32")
            out = {"arrays": sorted(arrays)}
        else:
            clock = time.process_time if message["own"] else time.perf_counter
            out = {"seconds": seconds_of(contenders[message["name"]], message["calls"], problem.sets, clock)}
        print(json.dumps(out), flush=True)
