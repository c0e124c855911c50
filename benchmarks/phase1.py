"""Solvers of phase 1 of Sorted-F: quality against the exact one, and time.

    python benchmarks/phase1.py [--sizes 20 100 500 2000] [--draws 3]

For each family and size: seconds for the first batch, its F relative to the exact one, and total
latency of the whole Sorted-F run relative to ``svf``; means over the draws.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import get_args

from kvopt import Instance, TooLarge, generate, run
from kvopt.kernels.pipes import ended_by_reader
from kvopt.simulate.policies.phase1 import Candidate, Phase1, solver

FAMILIES = (("uniform", 100), ("conversation", 16_492), ("conversation-summarisation", 16_492))
SOLVERS: tuple[Phase1, ...] = tuple(name for name in get_args(Phase1) if name != "auto")


def main() -> None:
    """Print one row for each family and size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 100, 500, 2000])
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    print("| family | n | " + " | ".join(SOLVERS) + " |\n|---|---|" + "---|" * len(SOLVERS))
    for family, memory in FAMILIES:
        for n in options.sizes:
            drawn = [generate(family, n, memory, seed=seed) for seed in range(options.draws)]
            exact = [measured(instance, "exact") for instance in drawn]
            cells = [cell(drawn, name, exact) for name in SOLVERS]
            print(f"| {family} | {n:,} | " + " | ".join(cells) + " |", flush=True)


def measured(instance: Instance, name: Phase1) -> tuple[float, float] | None:
    """Return the seconds for the first batch and its F, None if the table is too large."""
    candidates = sorted(Candidate(r.output, r.prompt, r.arrival, i) for i, r in enumerate(instance))
    began = time.monotonic()
    try:
        batch = solver(name)(candidates, instance.memory)
    except TooLarge:
        return None
    seconds = time.monotonic() - began
    return seconds, sum(candidate.output for candidate in batch) / len(batch) ** 2


def cell(drawn: list[Instance], name: Phase1, exact: list[tuple[float, float] | None]) -> str:
    found = [measured(instance, name) for instance in drawn]
    seconds = [pair[0] for pair in found if pair is not None]
    if not seconds:
        return "too large"
    ratios = [
        pair[1] / best[1]
        for pair, best in zip(found, exact, strict=True)
        if pair is not None and best is not None
    ]
    quality = f"{statistics.mean(ratios):.3f}" if ratios else "?"
    return f"{statistics.mean(seconds) * 1000:.1f} ms, {quality}, {latency(drawn, name)}"


def latency(drawn: list[Instance], name: Phase1) -> str:
    """Return the mean latency of whole runs relative to svf."""
    ratios = []
    for instance in drawn:
        try:
            value = run(instance, f"sorted-f:phase1={name}").objective
        except TooLarge:
            return "too large"
        best = run(instance, "svf").objective
        assert value is not None
        assert best is not None
        ratios.append(value / best)
    return f"{statistics.mean(ratios):.3f}"


if __name__ == "__main__":
    with ended_by_reader():
        main()
