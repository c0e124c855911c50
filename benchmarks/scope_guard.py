"""Bounds of every scope against brute force of that scope: no bound may be above an optimum.

    python benchmarks/scope_guard.py [--count 10000] [--seconds S] [--seed 1]

Instances have up to five requests.  Each scope takes COUNT of them, or as many as S seconds allow.
Exit status 1 if a bound is above an optimum.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from block_comparison import in_blocks
from scope_comparison import ROUNDS, SECONDS, Figures, in_rounds, in_seconds

from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.scopes import Scope

BLOCKS = (Scope.RUNS, Scope.PAUSES)
"""Scopes that are compared in whole blocks, of which schedules are compared too."""


def compared(guard: Iterator[Figures], count: int, seconds: float) -> Figures:
    """Compare so many instances, or what some seconds allow."""
    began, known = time.monotonic(), Figures()
    for known in islice(guard, count):  # noqa: B007 - the last one is returned
        if time.monotonic() - began > seconds:
            break
    return known


def main() -> int:
    """Print a row for each scope and clock."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each scope")
    parser.add_argument("--clock", choices=["rounds", "blocks", "seconds"], help="only this one")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print("| clock | scope | instances | bounds | the best one is the optimum | violations |")
    print("|---|---|---|---|---|---|")
    guards = [("rounds", scope, in_rounds(scope, given.seed)) for scope in ROUNDS]
    guards += [("blocks", scope, in_blocks(scope, given.seed)) for scope in BLOCKS]
    guards += [("seconds", scope, in_seconds(scope, given.seed)) for scope in SECONDS]
    violations = 0
    for clock, scope, guard in guards:
        if given.clock not in (None, clock):
            continue
        found = compared(guard, given.count, given.seconds)
        violations += found.violations
        print(
            f"| {clock} | {scope} | {found.instances:,} | {found.bounds:,} | "
            f"{found.met / max(1, found.instances):.1%} | {found.violations} |",
            flush=True,
        )
    return 1 if violations else 0


if __name__ == "__main__":
    with ended_by_reader():
        sys.exit(main())
