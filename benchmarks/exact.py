"""What the exact engine certifies after so many seconds, and the time to a proof.

    python benchmarks/exact.py [--family arrival-1] [--n 12 16 20] [--seeds 0 1 2 3 4]
                               [--seconds 10 60] [--threads 2] [--schedules DIR]

Draws are of full size unless sizes are given.  Beside the gaps is what the bounds of volumes and of
the LP leave open below the same schedule; the last column is when the search ended.
"""

from __future__ import annotations

import argparse
import bisect
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from kvopt import (
    BoundResult,
    Instance,
    Progress,
    SolveResult,
    bound,
    generate,
    solve,
    write_schedule,
)
from kvopt.kernels.pipes import writing_output


def main() -> None:
    """Print a row for each draw, and the means of each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--family", default="arrival-1")
    parser.add_argument("--n", type=int, nargs="+", default=[None])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--seconds", type=float, nargs="+", default=[10.0, 60.0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--schedules", type=Path, metavar="DIR")
    options = parser.parse_args()
    solve(generate(options.family, 8, seed=1), "exact", time_limit=60)  # compiles, loads
    heads = ["volume", "LP", *(f"{seconds:g} s" for seconds in options.seconds)]
    heads += ["best", "bound", "status", "bound rests on", "seconds"]
    print(f"| instance | n | {' | '.join(heads)} |")
    print("|---|---|" + "---|" * len(heads))
    for n in options.n:
        rows = [row(generate(options.family, n, seed=seed), options) for seed in options.seeds]
        means = [statistics.mean(column) for column in zip(*rows, strict=True)]
        print(f"| mean | | {percent(means)} | | | | | |", flush=True)


def row(instance: Instance, options: argparse.Namespace) -> list[float]:
    """Print the row of an instance and return its gaps: of volume, LP and exact engine.

    A signal ends all rows; the one that it ended is printed as far as it came.
    """
    found, result = certified(instance, options.seconds, options.threads)
    assert result.objective is not None
    assert result.schedule is not None
    if options.schedules is not None:
        options.schedules.mkdir(parents=True, exist_ok=True)
        write_schedule(result.schedule, options.schedules / f"{instance.name}.json")
    simple = [bound(instance, method).value or 0 for method in ("volume", "lagrangian")]
    gaps = [1 - lower / result.objective for lower in simple] + found
    sides = f"{result.objective} | {result.lower_bound} | {result.status} | {result.bound_source}"
    name = f"| {instance.name} | {len(instance)} "
    print(f"{name}| {percent(gaps)} | {sides} | {result.seconds:.1f} |", flush=True)
    stop_if_interrupted(result)
    return gaps


def percent(gaps: Sequence[float]) -> str:
    return " | ".join("-" if math.isnan(gap) else f"{gap:.2%}" for gap in gaps)


def certified(
    instance: Instance, seconds: Sequence[float], threads: int
) -> tuple[list[float], SolveResult]:
    """Return the gap after each number of seconds that a signal left, and the result."""
    seen = [(0.0, 1.0)]

    def note(progress: Progress) -> None:
        if progress.gap is not None:
            seen.append((progress.seconds, progress.gap))

    result = solve(instance, "exact", time_limit=max(seconds), threads=threads, observer=note)
    times = [time for time, _ in seen]
    found = [seen[bisect.bisect_right(times, limit) - 1][1] for limit in seconds]
    if result.signal_number is not None:
        late = [limit > result.seconds for limit in seconds]
        found = [math.nan if is_late else gap for is_late, gap in zip(late, found, strict=True)]
    return found, result


def stop_if_interrupted(result: SolveResult | BoundResult) -> None:
    """End here if a signal ended the search: what it left is no figure."""
    if result.signal_number is not None:
        raise KeyboardInterrupt


if __name__ == "__main__":
    with writing_output():
        main()
