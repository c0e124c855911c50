"""Bounds of configurations and time to a proof, beside the engines that were there before.

    python benchmarks/exact.py proofs [--family arrival-1] [--n 8 10 12 16 20] [--draws 5]
                                      [--engines exact cpsat highs scip] [--limit 120]
    python benchmarks/exact.py gaps [--family arrival-1] [--draws 5] [--seconds 10 60]

``proofs`` prints how long each engine takes to prove an optimum, or the gap that the limit left.
``gaps`` prints what the exact engine certifies on draws of full size after so many seconds, and
the bound of the LP beside it.  SCIP solves the exported time-indexed program; it needs pyscipopt.
"""

from __future__ import annotations

import argparse
import bisect
import statistics
import tempfile
import time
from pathlib import Path

from kvopt import Instance, Progress, bound, generate, solve
from kvopt.formulations.export import export


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("proofs", "gaps"))
    parser.add_argument("--family", default="arrival-1")
    parser.add_argument("--n", type=int, nargs="+", default=[8, 10, 12, 16, 20])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--engines", nargs="+", default=["exact"])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--seconds", type=float, nargs="+", default=[10.0, 60.0])
    parser.add_argument("--threads", type=int, default=2)
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
    for n in options.n:
        times: dict[str, list[float]] = {engine: [] for engine in options.engines}
        for seed in range(options.draws):
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
    return result.seconds, result.objective, result.lower_bound


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
    """Print a row for each draw of full size, and the means."""
    heads = [f"gap (latency) after {seconds:g} s" for seconds in options.seconds]
    print("| instance | n | LP | " + " | ".join(heads) + " | best | bound |")
    print("|---|---|---|" + "---|" * (len(heads) + 2))
    sums = [0.0] * len(heads)
    for seed in range(options.draws):
        instance = generate(options.family, seed=seed)
        found, best, lower = certified(instance, options)
        lp = bound(instance, "lagrangian").value
        assert lp is not None
        cells = " | ".join(f"{gap:.2%} ({value})" for gap, value in found)
        name = f"| {instance.name} | {len(instance)} | {1 - lp / best:.1%} "
        print(f"{name}| {cells} | {best} | {lower} |", flush=True)
        sums = [total + gap for total, (gap, _) in zip(sums, found, strict=True)]
    means = " | ".join(f"**{total / options.draws:.2%}**" for total in sums)
    print(f"| mean | | | {means} | | |")


def certified(
    instance: Instance, options: argparse.Namespace
) -> tuple[list[tuple[float, int | None]], int, int]:
    """Return gap and value after each number of seconds, and both sides at the end."""
    seen: list[tuple[float, float, int | None]] = [(0.0, 1.0, None)]

    def note(progress: Progress) -> None:
        if progress.gap is not None:
            seen.append((progress.seconds, progress.gap, progress.objective))

    result = solve(
        instance,
        "exact",
        time_limit=max(options.seconds),
        threads=options.threads,
        observer=note,
    )
    times = [seconds for seconds, _, _ in seen]
    gaps = [seen[bisect.bisect_right(times, limit) - 1][1:] for limit in options.seconds]
    assert result.objective is not None
    assert result.lower_bound is not None
    return gaps, result.objective, result.lower_bound


if __name__ == "__main__":
    main()
