"""How far below the bound for prompts at once a schedule with prompts in pieces gets.

    python benchmarks/pieces.py --data DIR [--cases conv:1000 conv:5000:6 ...]

Cases are those of `seconds_bounds`.  Each request is planned to its end when it is admitted, with
pieces that fill rounds up to a number of tokens, and only if memory suffices in every round.  The
first ``--depth`` in the order of what they take of the machine are tried.  Each schedule is checked
in integers; all figures are shares of the bound for prompts at once.
"""

from __future__ import annotations

import argparse
import time
from bisect import insort
from pathlib import Path

import numpy as np
from seconds_bounds import PRESET, case_instance

from kvopt import BatchTime, Instance, run
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.seconds_evaluation import shares
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.arrivals import arrivals_ns
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import PRESETS
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.work import Chunks

CASES = ("conv:1000", "conv:10000", "conv:1000:1", "conv:10000:1", "conv:5000:4", "conv:5000:5",
         "conv:5000:6", "conv:5000:8", "code:1000")  # fmt: skip
FLAT = 0.65
"""Weight of the flatter line in the order."""


class Rounds:
    """Tokens that each round processes and holds, as far as it is planned."""

    def __init__(self, instance: Instance, most: int, length: int) -> None:
        self.instance, self.most = instance, most
        self.prompts, self.active, self.held = (np.zeros(length, dtype=np.int64) for _ in range(3))

    def plan(self, i: int, now: int) -> list[int] | None:
        """Return what rounds from now on process of a prompt, None if it does not fit."""
        request, pieces = self.instance.requests[i], list[int]()
        left = request.prompt + 1
        while left:
            t = now + len(pieces)
            pieces.append(int(min(left, self.most - self.prompts[t] - self.active[t])))
            left -= pieces[-1]
            held = request.prompt + 1 - left + self.held[t]
            if pieces[-1] <= 0 or held > self.instance.memory:
                return None
        later = slice(now + len(pieces), now + len(pieces) + request.output - 1)
        own = np.arange(request.prompt + 2, request.peak + 1)
        fits = (self.held[later] + own <= self.instance.memory).all()
        full = self.prompts[later] + self.active[later] >= self.most
        return pieces if fits and not full.any() else None

    def add(self, i: int, now: int, pieces: list[int]) -> None:
        """Hold what was planned."""
        request, first = self.instance.requests[i], now + len(pieces) - 1
        self.prompts[now : first + 1] += pieces
        self.held[now : first + 1] += np.cumsum(pieces)
        self.prompts[first] -= 1
        self.active[first : first + request.output] += 1
        self.held[first + 1 : first + request.output] += np.arange(
            request.prompt + 2, request.peak + 1
        )


def in_pieces(instance: Instance, model: BatchTime, most: int, depth: int) -> PolicyRun:
    """Return a run with prompts in pieces."""
    began, arrivals = time.monotonic(), arrivals_ns(instance)
    lines = model.lines[:1], model.lines[-1:]
    flat, steep = (shares(instance, model, line, float).takes for line in lines)
    ranks = (FLAT * flat + (1 - FLAT) * steep).argsort(kind="stable").argsort()
    to_come = sorted(range(len(instance)), key=arrivals.__getitem__, reverse=True)
    rounds = Rounds(instance, most, sum(r.prompt // 50 + r.output + 2 for r in instance))
    waiting: list[tuple[int, int]] = []
    starts, chunks, resumed = [0] * len(instance), [], {}
    now = moment = end = 0
    while to_come or waiting or now < end:
        if now == end and not waiting:
            moment = max(moment, arrivals[to_come[-1]])
        while to_come and arrivals[to_come[-1]] <= moment:
            insort(waiting, (int(ranks[to_come[-1]]), to_come.pop()))
        if now == end:
            resumed[now] = moment
        tried = 0
        while tried < min(depth, len(waiting)) and rounds.prompts[now] + rounds.active[now] < most:
            i = waiting[tried][1]
            pieces = rounds.plan(i, now)
            if pieces is None:
                tried += 1
                continue
            del waiting[tried]
            rounds.add(i, now, pieces)
            starts[i] = now + len(pieces) - 1
            if pieces[:-1]:
                chunks.append(Chunks(i, now, tuple(pieces[:-1])))
            end = max(end, starts[i] + instance.requests[i].output)
        b = (rounds.active[now], rounds.prompts[now], rounds.held[now])
        moment, now = moment + model.round_ns(*map(int, b)), now + 1
    segments = tuple(((k + 1, k + r.output),) for k, r in zip(starts, instance, strict=True))
    return PolicyRun(
        instance, segments=segments, clock=Seconds(model), chunks=chunks, resumed=[resumed],
        policy="pieces", wall_seconds=time.monotonic() - began,
    )  # fmt: skip


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--tokens", type=int, nargs="+", default=[160, 200], help="of a round")
    parser.add_argument("--depth", type=int, default=10)
    options = parser.parse_args()
    model = PRESETS[PRESET]
    print(
        "| case | bound with pieces | best with pieces | svf, prompts at once |\n|---|---|---|---|"
    )
    for case in options.cases:
        instance = case_instance(options.data, case)
        whole, wide = (
            seconds_bound(instance, model, scope=scope).value_ns
            for scope in ("pauses", "pauses+chunks")
        )
        runs = [in_pieces(instance, model, most, options.depth) for most in options.tokens]
        assert not any(made.violations() for made in runs)
        values = [min(made.objective or 0 for made in runs)]
        values.append(run(instance, "svf", clock=Seconds(model)).objective or 0)
        cells = [f"{value / whole:.1%}" for value in (wide, *values)]
        print("|", " | ".join([case, *cells]), "|", flush=True)


if __name__ == "__main__":
    with ended_by_reader():
        main()
