"""Certified gaps of policies on real lengths and arrivals, and what the certificate costs.

    python benchmarks/certified_gaps.py --data DIR [--cases conv:1000 mixed:10000:arrivals ...]

A case is NAME:N or NAME:N:arrivals with NAME one of conv, code (Azure traces), mixed (one arXiv
summary to four conversations of the stand-in), chat (the stand-in) and types (the stand-in
with lengths rounded up to multiples of 16: many requests of few kinds).  The bound is the
``lagrangian`` method with a time limit; its prices are verified again by the verifier of
certificates, which shares no code with it.

Two among the policies are none.  ``blurred``: fcfs on a backlog in the order of volumes that were
multiplied by random factors from 4/5 to 5/4.  ``beams``: the best schedule that beams over the
whole trace find in as many seconds as the bound had.
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import time
from dataclasses import replace
from pathlib import Path

from traces import instance as instance_from
from verifying import verified

from kvopt import (
    BoundResult,
    Certificate,
    Instance,
    PolicyRun,
    Request,
    bound,
    run,
)
from kvopt.heuristics.trace_beams import search_traces
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.kernels.pipes import ended_by_reader

GRID = 16
BLUR = math.log(5 / 4)
POLICIES = ("svf", "mc-sf", "fcfs", "sorted-f:phase1=swap")
CASES = ("conv:1000", "mixed:2000", "chat:2000", "code:2000", "conv:1000:arrivals")


def main() -> None:
    """Print one row for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--limit", type=float, default=3.0, help="seconds for the bound")
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    options = parser.parse_args()
    gaps = " | ".join(f"{policy} gap (s)" for policy in options.policies)
    print(f"| case | n | bound | s | {gaps} | verify s | file MB | peak MB |")
    print("|" + "---|" * (7 + len(options.policies)))
    chat = instance_from(options.data, "chat", 20, False)
    bound(chat, "lagrangian")  # compiles, loads
    beamed(chat, 1.0)
    for case in options.cases:
        name, n, *arrivals = case.split(":")
        row(case, case_instance(options.data, name, int(n), bool(arrivals)), options)


def case_instance(data: Path, name: str, n: int, arrivals: bool) -> Instance:
    """Return the instance of a case."""
    if name != "types":
        return instance_from(data, name, n, arrivals)
    chat = instance_from(data, "chat", n, arrivals)
    requests = [Request(r.arrival, on_grid(r.prompt), on_grid(r.output)) for r in chat]
    return Instance(chat.memory, requests)


def on_grid(tokens: int) -> int:
    return -(-tokens // GRID) * GRID


def row(case: str, instance: Instance, options: argparse.Namespace) -> None:
    """Bound, run the policies, verify what was proved, and print."""
    result = bound(instance, "lagrangian", time_limit=options.limit)
    assert result.value is not None
    runs, cells = [], []
    for policy in options.policies:
        if policy == "beams":
            found = beamed(instance, options.limit)
        else:
            found = blurred(instance) if policy == "blurred" else run(instance, policy)
        assert found.objective is not None
        gap = (found.objective - result.value) / found.objective
        runs.append(found)
        cells.append(f"{gap:.2%} ({found.wall_seconds:.1f})")
    seconds, size = verified(certificate_of(instance, runs, result))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {case} | {len(instance):,} | {result.value:,} | {result.seconds:.2f} | "
        f"{' | '.join(cells)} | {seconds:.1f} | {size / 1e6:.1f} | {peak:.0f} |",
        flush=True,
    )


def blurred(instance: Instance) -> PolicyRun:
    """Run fcfs on a backlog in the order of blurred volumes."""
    rng = random.Random(1)
    assert not any(r.arrival for r in instance)
    order = sorted(instance, key=lambda r: r.volume * math.exp(rng.uniform(-BLUR, BLUR)))
    found = run(Instance(instance.memory, order), "fcfs")
    starts = dict(zip((r.id for r in order), found.starts, strict=True))
    return replace(found, instance=instance, starts=tuple(starts[r.id] for r in instance))


def beamed(instance: Instance, seconds: float) -> PolicyRun:
    """Return the best schedule of beams as if a policy had made it."""
    first = run(instance, "svf")
    search = Search(instance, Limits(threads=2))
    search.offer_starts(first.starts, "svf")
    began = time.monotonic()
    search_traces(search, seconds)
    assert search.schedule is not None
    took = time.monotonic() - began
    return replace(first, starts=search.schedule.starts, wall_seconds=took)


def certificate_of(instance: Instance, runs: list[PolicyRun], result: BoundResult) -> Certificate:
    """Return the certificate of a bound and of the best schedule among runs."""
    best = min((run.schedule for run in runs if run.schedule), key=lambda s: s.objective)
    return Certificate(instance, best, result.checked)


if __name__ == "__main__":
    with ended_by_reader():
        main()
