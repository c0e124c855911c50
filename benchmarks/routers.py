"""What routers are worth, and how fast fleets are simulated.

    python benchmarks/routers.py --data DIR [--speed]

Prints the mean latency in rounds of 50 ms of all conversations of Azure for 4, 5 and 6 workers,
each router with svf, mc-sf, fcfs and patient.  With ``--speed`` it prints instead how many
processor seconds the first 10,000 take on 8 workers in seconds.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from traces import trace

from kvopt import run
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import DEFAULT_MODEL, batch_time
from kvopt.simulate.routers.registry import ROUTERS

POLICIES = ("svf", "mc-sf", "fcfs", "patient")


def latencies(data: Path) -> None:
    whole = trace(data, "conv")
    print(f"{'workers':>7}  {'router':15}" + "".join(f"{name:>10}" for name in POLICIES))
    for workers in (4, 5, 6):
        fleet = replace(whole, workers=workers)
        for router in ROUTERS.names():
            found = [run(fleet, policy, router=router).objective for policy in POLICIES]
            means = [f"{(total or 0) / len(fleet):10,.0f}" for total in found]
            print(f"{workers:7}  {router:15}" + "".join(means), flush=True)


def speed(data: Path) -> None:
    fleet = replace(trace(data, "conv")[:10_000], workers=8)
    clock = Seconds(batch_time(DEFAULT_MODEL))
    for policy in POLICIES:
        run(fleet[:100], policy, clock=clock)  # whatever has to be loaded
    print(f"{'router':15}" + "".join(f"{name:>10}" for name in POLICIES))
    for router in ROUTERS.names():
        cells = []
        for policy in POLICIES:
            began = time.process_time()
            run(fleet, policy, router=router, clock=clock)
            cells.append(f"{time.process_time() - began:10.2f}")
        print(f"{router:15}" + "".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--speed", action="store_true")
    arguments = parser.parse_args()
    (speed if arguments.speed else latencies)(arguments.data)


if __name__ == "__main__":
    with ended_by_reader():
        main()
