"""The eight schedulers of jaillet-2025-v2 on 1,000 to 1,000,000 requests: time and memory.

    python benchmarks/growth.py [--sizes 1000 10000 100000 1000000] [--policies NAME ...]

The conversation stand-in at 50 requests a second, in rounds and in seconds (preset
``llama-2-70b-2xa100``).  Processor seconds of the simulation with its check in integers, and
the peak memory of its process in MB, the instance included: every run is a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from multiprocessing.connection import Connection

from traffic import CLOCK, EIGHT, conversation

from kvopt import Instance, run
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.clocks import ROUNDS


def main() -> None:
    """Print a row for each scheduler, a column for each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--policies", nargs="+", default=EIGHT)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    cells: dict[tuple[str, str], list[str]] = {}
    for n in options.sizes:
        began = time.process_time()
        instance = conversation(n, options.rate, options.seed)
        print(f"n = {n:,}: drawn in {time.process_time() - began:.1f} s", flush=True)
        for policy in options.policies:
            for clock in ("rounds", "seconds"):
                cell = measured(instance, policy, clock)
                print(f"  {policy}, {clock}: {cell}", flush=True)
                cells.setdefault((policy, clock), []).append(cell)
    print("\n| policy | clock | " + " | ".join(f"{n:,}" for n in options.sizes) + " |")
    print("|---|---|" + "---|" * len(options.sizes))
    for (policy, clock), row in cells.items():
        print(f"| {policy} | {clock} | " + " | ".join(row) + " |")


def measured(instance: Instance, policy: str, clock: str) -> str:
    """Return processor seconds and peak memory of a run in a process of its own."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=simulated, args=(instance, policy, clock, theirs))
    process.start()
    theirs.close()
    found = ours.recv()
    process.join()
    assert isinstance(found, str)
    return found


def simulated(instance: Instance, policy: str, clock: str, result: Connection) -> None:
    """Send what a run took."""
    began = time.process_time()
    found = run(instance, policy, clock=ROUNDS if clock == "rounds" else CLOCK)
    spent = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    loop = "" if found.outcome == "completed" else f", {found.outcome}"
    result.send(f"{spent:.2f} ({peak:.0f}{loop}; {found.evictions:,} evictions)")


if __name__ == "__main__":
    with ended_by_reader():
        main()
