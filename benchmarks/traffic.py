"""Processor seconds to simulate 10,000 requests at 50 a second, for every policy.

    python benchmarks/traffic.py [--seed S] [--limit SECONDS]

LMSYS-Chat-1M, which the papers draw conversations from, is gated: lengths are those of the
stand-in (``kvopt generate conversation``).  Batches take what the preset llama-2-70b-2xa100 says.
The papers' experiments on such traffic are studies: ``kvopt study`` lists them.
"""

from __future__ import annotations

import argparse
import time

from kvopt import Instance, TooLarge, generate
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import PRESETS
from kvopt.simulate.running import run as simulate
from kvopt.simulate.simulator import Stopped
from kvopt.timetable.runs import PolicyRun

CLOCK = Seconds(PRESETS["llama-2-70b-2xa100"])
EIGHT = (
    "mc-sf", "fcfs", "alpha-protect:alpha=0.3", "alpha-protect:alpha=0.25",
    "alpha-beta:alpha=0.2,beta=0.2", "alpha-beta:alpha=0.2,beta=0.1",
    "alpha-beta:alpha=0.1,beta=0.2", "alpha-beta:alpha=0.1,beta=0.1",
)  # fmt: skip
EVERY = (
    *EIGHT, "mc-sf-total", "svf", "mc-sf:pred=noise,eps=0.5,alpha=0.1", "sorted-f:phase1=swap",
    "sorted-f:phase1=quantile", "lp-swap", "sorted-lp", "a-max:intervals=buckets",
    "a-min:intervals=buckets", "a-min:intervals=relative,eps=0.5", "a-l:intervals=buckets",
    "a-switch", "a-random", "sorted-f-a-min:phase1=quantile,intervals=relative,eps=0.5",
    "sorted-f:phase1=exact", "h-sf",
)  # fmt: skip


def conversation(n: int, rate: float, seed: int) -> Instance:
    """Return traffic of so many requests a second."""
    return generate("conversation", n=n, seed=seed, parameters={"per_second": rate})


def mean(run: PolicyRun) -> str:
    """Return the mean latency in seconds."""
    if run.objective is None:
        return "loop"
    return f"{run.objective / 1e9 / max(len(run.starts), 1):.1f}"


def speed(seed: int, limit: float) -> None:
    """Print a row for each policy."""
    instance = conversation(10_000, 50, seed)
    simulate(conversation(100, 50, 0), "mc-sf", clock=CLOCK)  # loads what is loaded when used
    print("| policy | s | mean latency | evictions |\n|---|---|---|---|")
    for policy in EVERY:
        began = time.process_time()

        def late(began: float = began) -> bool:
            return time.process_time() - began > limit

        try:
            run = simulate(instance, policy, clock=CLOCK, should_stop=late)
        except (Stopped, TooLarge) as error:
            reason = f"more than {limit:.0f}" if isinstance(error, Stopped) else "too large"
            print(f"| {policy} | {reason} | - | - |", flush=True)
            continue
        spent = time.process_time() - began
        print(f"| {policy} | {spent:.2f} | {mean(run)} | {run.evictions:,} |", flush=True)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60.0)
    options = parser.parse_args()
    speed(options.seed, options.limit)


if __name__ == "__main__":
    with ended_by_reader():
        main()
