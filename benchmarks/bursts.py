"""The bursts of a trace, each alone: its schedule, the LP bound and what searches make of it.

    python benchmarks/bursts.py --data DIR [--case code:8819] [--sizes 8 40] [--limit 60]

A burst is cut where `svf` lets nobody wait on all of the trace.  Of each one with so many requests
that wait, a row: requests, total latency of svf and of the best schedule, LP bound and best bound,
what the bound rests on, seconds.  Last come the sums over those that were proved, which say how far
the LP is below the optimum, and over all.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from traces import instance as instance_from

from kvopt import Instance, Request, SolveResult, bound, run, solve
from kvopt.kernels.pipes import ended_by_reader


def main() -> None:
    """Print a row for each burst."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--case", default="code:8819", metavar="NAME:N")
    parser.add_argument("--sizes", type=int, nargs=2, default=(8, 40), metavar=("LEAST", "MOST"))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each burst")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    name, _, n = options.case.partition(":")
    whole = instance_from(options.data, name, int(n), arrivals=True)
    solve(next(bursts(whole, 2)), time_limit=5)  # compiles, loads
    print("| n | svf | best | LP | bound | gap | rests on | s |\n|" + "---|" * 8, flush=True)
    sums: dict[str, list[int]] = {}
    for burst in bursts(whole, *options.sizes):
        found = solve(burst, time_limit=options.limit, threads=options.threads)
        values = row(burst, found)
        for kind in ("all", "proved") if found.gap == 0.0 else ("all",):
            known = sums.setdefault(kind, [0] * (len(values) + 1))
            sums[kind] = [a + b for a, b in zip(known, (1, *values), strict=True)]
    for kind, (count, svf, best, lp, lower) in sums.items():
        print(f"{kind}: {count} bursts, svf {svf:,}, best {best:,}, LP {lp:,}, ", end="")
        print(f"bound {lower:,}: the LP {1 - lp / best:.2%}, ", end="")
        print(f"the bound {1 - lower / best:.2%} below the best")


def bursts(whole: Instance, least: int, most: int = 10**9) -> Iterator[Instance]:
    """Yield the pieces of a trace in which requests wait, from quiet to quiet."""
    made = run(whole, "svf")
    waits = zip(whole, made.starts, strict=True)
    members: list[Request] = []
    until, waited = 0, False
    for request, start in sorted(waits, key=lambda pair: pair[0].arrival):
        assert start is not None, "svf completes"
        if request.arrival >= until:
            if waited and least <= len(members) <= most:
                yield Instance(whole.memory, members)
            members, waited = [], False
        members.append(request)
        until, waited = max(until, start), waited or start > request.arrival
    if waited and least <= len(members) <= most:
        yield Instance(whole.memory, members)


def row(burst: Instance, found: SolveResult) -> tuple[int, int, int, int]:
    """Print the row of a burst; return the values of svf, of the best, of LP and bound."""
    svf, lp = run(burst, "svf").objective or 0, bound(burst, "lp").value or 0
    best, lower = found.objective or 0, found.lower_bound or 0
    rests = f"{found.bounded_by} ({found.bound_source})"
    print(f"| {len(burst)} | {svf:,} | {best:,} | {lp:,} | {lower:,} ", end="")
    print(f"| {1 - lower / best:.2%} | {rests} | {found.seconds:.1f} |", flush=True)
    return svf, best, lp, lower


if __name__ == "__main__":
    with ended_by_reader():
        main()
