"""Bounds of configurations and time to a proof, beside the engines that were there before.

    python benchmarks/exact.py proofs [--family arrival-1] [--n 8 10 12 16 20] [--seeds 0 1 2 3 4]
                                      [--engines exact cpsat highs scip] [--limit 120]
    python benchmarks/exact.py gaps [--family arrival-1] [--n 25 30] [--seeds 0 1 2 3 4]
                                    [--seconds 10 60] [--schedules DIR]

``proofs`` prints how long each engine takes to prove an optimum, or the gap that the limit left.
``gaps`` prints what the exact engine certifies after so many seconds, of full size unless sizes
are given, and beside it what the bounds of volumes and of the LP leave open below the same
schedule.  SCIP solves the exported time-indexed program; it needs pyscipopt.
"""

from __future__ import annotations

import argparse
import bisect
import math
import statistics
import tempfile
import time
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
from kvopt.formulations.export import export
from kvopt.kernels.pipes import ended_by_reader


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("proofs", "gaps"))
    parser.add_argument("--family", default="arrival-1")
    parser.add_argument("--n", type=int, nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--engines", nargs="+", default=["exact"])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--seconds", type=float, nargs="+", default=[10.0, 60.0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--schedules", type=Path, metavar="DIR")
    options = parser.parse_args()
    solve(generate(options.family, 8, seed=1), "exact", time_limit=60)  # compiles, loads
    if options.what == "proofs":
        proofs(options)
    else:
        gaps(options)


def proofs(options: argparse.Namespace) -> None:
    """Print a row for each draw and the median of each size."""
    print("| instance | optimum | " + " | ".join(options.engines) + " |")
    print("|---|---|" + "---|" * len(options.engines))
    for n in options.n or (8, 10, 12, 16, 20):
        times: dict[str, list[float]] = {engine: [] for engine in options.engines}
        for seed in options.seeds:
            instance = generate(options.family, n, seed=seed)
            cells, best = [], None
            for engine in options.engines:
                seconds, upper, lower = proved(instance, engine, options)
                closed = upper is not None and upper == lower
                times[engine].append(seconds if closed else float("inf"))
                cells.append(f"{seconds:.1f} s" if closed else _open(upper, lower))
                best = upper if best is None or (upper is not None and upper < best) else best
            print(f"| {instance.name} | {best} | " + " | ".join(cells) + " |", flush=True)
        medians = [statistics.median(times[engine]) for engine in options.engines]
        cells = [f"**{m:.1f} s**" if m < float("inf") else "over the limit" for m in medians]
        print(f"| median n={n} | | " + " | ".join(cells) + " |", flush=True)


def _open(upper: int | None, lower: float | None) -> str:
    return "?" if not upper or lower is None else f"gap {1 - lower / upper:.1%}"


def proved(
    instance: Instance, engine: str, options: argparse.Namespace
) -> tuple[float, int | None, float | None]:
    """Return seconds, the best value and the best bound of an engine."""
    if engine == "scip":
        return by_scip(instance, options.limit)
    result = solve(instance, engine, time_limit=options.limit, threads=options.threads)
    stop_if_interrupted(result)
    return result.seconds, result.objective, result.lower_bound


def stop_if_interrupted(result: SolveResult | BoundResult) -> None:
    """End here if a signal ended the search: what it left is no figure."""
    if result.signal_number is not None:
        raise KeyboardInterrupt


def by_scip(instance: Instance, limit: float) -> tuple[float, int | None, float | None]:
    """Solve the exported program with SCIP."""
    from pyscipopt import Model

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.lp"
        export(instance, path)
        began = time.monotonic()
        model = Model()
        model.hideOutput()
        model.readProblem(str(path))
        model.setParam("limits/time", limit)
        model.optimize()
        seconds = time.monotonic() - began
    upper = round(model.getObjVal()) if model.getNSols() else None
    return seconds, upper, round(model.getDualbound(), 6)


def gaps(options: argparse.Namespace) -> None:
    """Print a row for each draw, and the means of each size."""
    heads = [f"{seconds:g} s" for seconds in options.seconds]
    heads = ["volume", "LP", *heads, "best", "bound", "status", "bound rests on", "seconds"]
    print(f"| instance | n | {' | '.join(heads)} |")
    print("|---|---|" + "---|" * len(heads))
    for n in options.n or [None]:
        rows = [gaps_of(generate(options.family, n, seed=seed), options) for seed in options.seeds]
        means = [statistics.mean(column) for column in zip(*rows, strict=True)]
        print(f"| mean | | {_percent(means)} | | | | | |", flush=True)


def gaps_of(instance: Instance, options: argparse.Namespace) -> list[float]:
    """Print the row of an instance and return its gaps: of volume, LP and exact engine.

    A signal ends all rows; the one that it ended is printed as far as it came.
    """
    found, result = certified(instance, options)
    assert result.objective is not None
    assert result.schedule is not None
    if options.schedules is not None:
        options.schedules.mkdir(parents=True, exist_ok=True)
        write_schedule(result.schedule, options.schedules / f"{instance.name}.json")
    simple = [bound(instance, method).value or 0 for method in ("volume", "lagrangian")]
    gaps = [1 - lower / result.objective for lower in simple] + found
    source = "-" if result.bound_source is None else result.bound_source.value
    sides = f"{result.objective} | {result.lower_bound} | {result.status.value} | {source}"
    name = f"| {instance.name} | {len(instance)} "
    print(f"{name}| {_percent(gaps)} | {sides} | {result.seconds:.1f} |", flush=True)
    stop_if_interrupted(result)
    return gaps


def _percent(gaps: list[float]) -> str:
    return " | ".join("-" if math.isnan(gap) else f"{gap:.2%}" for gap in gaps)


def certified(instance: Instance, options: argparse.Namespace) -> tuple[list[float], SolveResult]:
    """Return the gap after each number of seconds that a signal left, and the result."""
    seen = [(0.0, 1.0)]

    def note(progress: Progress) -> None:
        if progress.gap is not None:
            seen.append((progress.seconds, progress.gap))

    result = solve(
        instance,
        "exact",
        time_limit=max(options.seconds),
        threads=options.threads,
        observer=note,
    )
    times = [seconds for seconds, _ in seen]
    found = [seen[bisect.bisect_right(times, limit) - 1][1] for limit in options.seconds]
    if result.signal_number is not None:
        late = [limit > result.seconds for limit in options.seconds]
        found = [math.nan if is_late else gap for is_late, gap in zip(late, found, strict=True)]
    return found, result


if __name__ == "__main__":
    with ended_by_reader():
        main()
