"""How many machines all conversations of Azure need, as intervals.

    python benchmarks/fleet_sizes.py --data DIR [--target mean=15s | misses=1%] [--deadline 30s]
        [--seconds] [--n 5000] [--time-limit 60] [--out DIR]

Without ``--target`` it asks how many do what round-robin with fcfs does on six.  In rounds of
50 ms, or in seconds on the batch-time model that is the default.  For each number of machines it
prints between which means, or shares of misses, the best schedule lies, and what schedulers do.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from traces import trace

from kvopt.experiments.fleets import FleetMatch, FleetSizes, fleet_sizes
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.clocks import ROUNDS, Seconds
from kvopt.problem.hardware.batch_time_files import DEFAULT_MODEL, batch_time

MATCH = FleetMatch("fcfs", "round-robin", 6)
ROUTERS = ("round-robin", "least-volume", "central")
POLICIES = ("fcfs", "svf")


def show(found: FleetSizes) -> None:
    print(found.answer)
    worded = found.measure.worded
    print(f"target: {found.measure.said(found.target)}")
    for band in found.bands:
        ends = f"{worded(band.lower, up=False)} to {worded(band.upper, up=True)}"
        runs = ", ".join(f"{name} {worded(value, up=True)}" for name, value in band.runs.items())
        print(f"{band.workers:3} machines: {ends} ({band.found_by}); {runs}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--target")
    parser.add_argument("--deadline")
    parser.add_argument("--seconds", action="store_true")
    parser.add_argument("--n", type=int, help="the first so many requests; all by default")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    clock = Seconds(batch_time(DEFAULT_MODEL)) if arguments.seconds else ROUNDS
    conversations, began = trace(arguments.data, "conv"), time.monotonic()
    found = fleet_sizes(
        replace(conversations, requests=conversations.requests[: arguments.n]),
        arguments.target or MATCH,
        policies=POLICIES,
        routers=ROUTERS,
        deadline=arguments.deadline,
        clock=clock,
        time_limit=arguments.time_limit,
        out=arguments.out,
    )
    show(found)
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    with ended_by_reader():
        main()
