"""Schedules of fleets against the bound of one cache as large as all.

    python benchmarks/fleet_schedules.py --data DIR [--workers 1 2 4 8 12] [--seconds 60]
    python benchmarks/fleet_schedules.py --data DIR --arrivals --workers 4 5 6

The requests are Azure conversations: 10,000 as a backlog, or all 19,366 with their arrivals in
rounds of 50 ms.  Printed are mean latencies in rounds: the bound, the best central line, and what
`solve` has after so many seconds, of which a share goes to the bound.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import traces

from kvopt import Instance, solve
from kvopt.heuristics.fleets.central_line import offer_central_lines
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.pipes import ended_by_reader

BACKLOG, ALL = 10_000, 19_366


def main() -> None:
    """Print one row for each number of workers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--arrivals", action="store_true")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 12])
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    count = ALL if options.arrivals else BACKLOG
    whole = traces.instance(options.data, "conv", count, options.arrivals)
    print("| workers | bound | central line | gap | seconds | solve | gap | found by |")
    print("|---|---|---|---|---|---|---|---|")
    for workers in options.workers:
        row(replace(whole, workers=workers), options.seconds)


def row(instance: Instance, seconds: float) -> None:
    """Print both sides, and what a search adds."""
    search = Search(instance)
    began = time.monotonic()
    offer_central_lines(search)
    took, line = time.monotonic() - began, search.objective
    result = solve(instance, time_limit=seconds)
    bound, best, count = result.lower_bound, result.objective, len(instance)
    assert line is not None
    assert best is not None
    assert bound is not None
    cells = [f"{bound / count:,.0f}", f"{line / count:,.0f}", f"{1 - bound / line:.1%}"]
    cells += [
        f"{took:.1f}",
        f"{best / count:,.0f}",
        f"{1 - bound / best:.1%}",
        str(result.found_by),
    ]
    print(f"| {instance.workers} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    with ended_by_reader():
        main()
