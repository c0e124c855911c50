"""Ceilings of service levels on public traces: numbers of machines, and runs below their ceilings.

    python benchmarks/service_levels.py --data DIR --rows 'code:8:600:240 llama-3-70b@4xh100 4..9'
    python benchmarks/service_levels.py --data DIR --windows 1000

A row is a trace as shifted copies of itself, ``NAME:COPIES:BEGIN:SECONDS``, a machine, and numbers
of machines: what a certificate proves and knows of each.  ``--windows`` draws windows, machines,
limits and scopes, and fails if a scheduler lets more attain than the ceiling.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from traces import superposed

from kvopt import Instance, Scope, Seconds, Slo, certify, run
from kvopt.bounds.slo_ceiling import slo_ceiling
from kvopt.incumbent.in_time import attained_in
from kvopt.kernels.budget import Budget
from kvopt.problem.hardware.batch_time_files import batch_time

LIMITS = "ttft=2s,tpot=50ms"
MEMORY = {"llama-3-8b@h100": 426_784, "llama-3-70b@4xh100": 448_280}
"""Tokens of a cache, by `kvopt hardware capacity`."""
SCHEDULERS = {
    Scope.RUNS: ("slo", "svf", "fcfs"),
    Scope.PAUSES_AND_CHUNKS: (
        "vllm-fcfs:budget=440,max_seqs=400",
        "vllm-priority:by=prompt,budget=512,max_seqs=400",
    ),
}


def row(data: Path, text: str, scope: str, limit: float) -> Iterator[str]:
    """Yield for each number of machines of a row what is proved and known."""
    trace, model, counts = text.split()
    name, *where = trace.split(":")
    instance = superposed(data, name, MEMORY[model], *map(int, where))
    first, _, last = counts.partition("..")
    for workers in range(int(first), int(last or first) + 1):
        fleet = replace(instance, workers=workers)
        begin = time.process_time()
        made = certify(fleet, clock=Seconds(batch_time(model)), slo=LIMITS, only_slo=True,
                       scope=scope, time_limit=limit)  # fmt: skip
        assert made.in_time is not None, "a service level has a result"
        count, ceiling = len(fleet), made.in_time.ceiling
        shares = [
            f"{100 * (count - attained) / count:.2f}%"
            for attained in (ceiling, made.in_time.best_attained or 0)
        ]
        how = made.provenance.get("attained_by"), type(made.in_time.proof).__name__
        spent = time.process_time() - begin
        yield f"{text} {scope} m={workers}: {count} requests, misses {shares}, {how}, {spent:.0f} s"


def windows(data: Path, count: int, seed: int) -> Iterator[str]:
    """Draw windows and yield, now and then, how many were compared."""
    source, by_rounds, close = random.Random(seed), 0, 0
    for number in range(count):
        name, model = source.choice(("conv", "code")), source.choice([*MEMORY])
        seconds, copies = source.choice((10, 20, 40)), source.choice((1, 2, 4))
        begin = source.randrange(3400 - seconds)
        instance = superposed(data, name, MEMORY[model], copies, begin, seconds)
        fleet: Instance = replace(instance, workers=source.choice((1, 1, 2, 3)))
        pace, first = source.choice((25, 35, 50)), source.choice((500, 1000, 2000))
        slo = Slo(ttft=f"{first}ms", tpot=f"{pace}ms")
        scope = source.choice([*SCHEDULERS])
        clock = Seconds(batch_time(model))
        levels = slo.levels(fleet, rounds=False)
        found = slo_ceiling(fleet, levels, clock.batch_time, scope=scope, budget=Budget(10.0))
        for policy in SCHEDULERS[scope]:
            made = run(fleet, policy, router="least-requests", clock=clock, slo=slo)
            attained = attained_in(made, slo)
            case = (name, model, seconds, copies, begin, fleet.workers, str(slo), policy)
            assert attained is None or attained <= found.value, (case, attained, found.value)
            close += attained == found.value < len(fleet)
        by_rounds += hasattr(found.proof, "rows")
        if number % 50 == 49 or number == count - 1:
            yield (
                f"{number + 1} windows, none above; {by_rounds} ceilings by shared rounds, "
                f"{close} runs meet a ceiling below all"
            )


def main() -> None:
    """Print rows, or compare runs with ceilings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", nargs="*", default=())
    parser.add_argument("--scope", default="runs")
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--windows", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for text in options.rows:
        for line in row(options.data, text, options.scope, options.limit):
            print(line, flush=True)
    for line in windows(options.data, options.windows, options.seed) if options.windows else ():
        print(line, flush=True)


if __name__ == "__main__":
    main()
