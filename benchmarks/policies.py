"""How fast every policy is, and how that grows.

    python benchmarks/policies.py [--sizes 1000 10000 100000] [--limit 120] [POLICY ...]

Runs each policy on the conversation stand-in at M = 16,492, all requests at once and with
arrivals (two a round), and prints one row for each.  A policy that passes the limit at one size is
not run at the next.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import replace

from kvopt import Instance, TooLarge, generate
from kvopt.errors import Stopped
from kvopt.kernels.pipes import writing_output
from kvopt.simulate.run_policy import run as simulate

POLICIES = (
    "fcfs", "mc-sf", "mc-sf:pred=noise,eps=0.5,alpha=0.1", "mc-sf-total", "svf", "h-sf",
    "alpha-protect:alpha=0.25", "alpha-beta:alpha=0.1,beta=0.2", "sorted-f:phase1=exact",
    "sorted-f:phase1=dp", "sorted-f:phase1=swap", "sorted-f:phase1=quantile", "sorted-lp",
    "lp-swap", "a-max", "a-max:intervals=buckets", "a-min:intervals=relative,eps=0.5",
    "a-min:intervals=buckets", "a-l:intervals=buckets", "a-switch", "a-random",
    "sorted-f-a-min:phase1=quantile,intervals=relative,eps=0.5",
)  # fmt: skip


def backlog(n: int, arrivals: bool) -> Instance:
    instance = generate("conversation", n, 16492, seed=1)
    if not arrivals:
        return instance
    rng = random.Random(1)
    rounds = sorted(rng.randrange(n // 2) for _ in range(n))
    requests = [replace(r, arrival=a) for r, a in zip(instance, rounds, strict=True)]
    return Instance(instance.memory, requests)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("policies", nargs="*", default=POLICIES)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--limit", type=float, default=120.0)
    options = parser.parse_args()
    print("| policy | n | arrivals | s | rounds/s | latency | makespan | evictions | outcome |")
    print("|---|---|---|---|---|---|---|---|---|")
    simulate(backlog(100, True), "mc-sf")  # loads what is loaded when first used
    slow: set[tuple[str, bool]] = set()
    for n in options.sizes:
        for arrivals in (False, True):
            instance = backlog(n, arrivals)
            for text in options.policies:
                if (text, arrivals) not in slow and not row(
                    instance, text, arrivals, options.limit
                ):
                    slow.add((text, arrivals))


def row(instance: Instance, text: str, arrivals: bool, limit: float) -> bool:
    """Print one row and tell whether the policy stayed within the limit."""
    began = time.monotonic()
    head = f"| {text} | {len(instance):,} | {'two a round' if arrivals else 'all at once'}"
    try:
        run = simulate(instance, text, should_stop=lambda: time.monotonic() - began > limit)
    except (Stopped, TooLarge) as error:
        why = f"more than {limit:.0f}" if isinstance(error, Stopped) else "too large"
        print(f"{head} | {why} |", flush=True)
        return False
    rate = run.makespan / run.wall_seconds
    value = "-" if run.objective is None else f"{run.objective:,}"
    print(
        f"{head} | {run.wall_seconds:.2f} | {rate:,.0f} | {value} | {run.makespan:,} | "
        f"{run.evictions:,} | {run.outcome} |",
        flush=True,
    )
    return run.wall_seconds <= limit


if __name__ == "__main__":
    with writing_output():
        main()
