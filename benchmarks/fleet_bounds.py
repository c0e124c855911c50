"""Bounds of fleets: what 1, 2, .. workers cannot do, and how long it takes to prove it.

    python benchmarks/fleet_bounds.py --data DIR [--requests N] [--arrivals] [--workers 1 2 ..]
        [--limit S] [--seconds]

Requests are the first N Azure conversations (0: all of them), as a backlog or with their arrivals,
and M = 16,492.  In rounds of 50 ms, beside the mean latency of `svf` on one cache that is as large
as all together, which is no fleet; with ``--seconds`` on the clock of two A100 for each worker.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from traces import instance as instance_from
from traces import trace

from kvopt import bounds_by_workers, run
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.clocks import ROUNDS, Seconds
from kvopt.problem.hardware.batch_time_files import PRESETS

PRESET = "llama-2-70b-2xa100"


def main() -> None:
    """Print a row for each number of workers, and the time for all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--arrivals", action="store_true")
    parser.add_argument("--workers", type=int, nargs="+", default=list(range(1, 13)))
    parser.add_argument("--limit", type=float, default=55.0, help="seconds for all bounds")
    parser.add_argument("--seconds", action="store_true")
    given = parser.parse_args()
    count = given.requests or len(trace(given.data, "conv"))
    instance = instance_from(given.data, "conv", count, given.arrivals)
    clock = Seconds(PRESETS[PRESET]) if given.seconds else ROUNDS
    bounds_by_workers(instance[:20], (1, 2), clock, time_limit=1)  # what it uses is compiled then
    began = time.perf_counter()
    found = bounds_by_workers(instance, given.workers, clock, time_limit=given.limit)
    took = time.perf_counter() - began
    print(f"{count:,} conversations, {took:.1f} s for all bounds")
    print("| workers | mean latency at least | svf, one cache | by |\n|---|---|---|---|")
    for workers, bound in found.items():
        pooled = "-"
        if not given.seconds:
            made = run(replace(instance, workers=workers).pooled(), "svf").objective
            pooled = f"{(made or 0) / count:,.1f}"
        mean = bound.value / count / clock.scale
        print(f"| {workers} | {mean:,.2f} | {pooled} | {bound.bounded_by} |", flush=True)


if __name__ == "__main__":
    with ended_by_reader():
        main()
