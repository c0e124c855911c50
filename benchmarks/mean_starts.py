"""Mean starts from the LP against averaged minimisers of the Lagrangian.

    python benchmarks/mean_starts.py [--draws 3]

Total latency of ``sorted-lp`` with either, relative to ``svf``, and seconds; means over the draws.
"""

from __future__ import annotations

import argparse
import statistics

from kvopt import generate, run
from kvopt.kernels.pipes import ended_by_reader

CASES = (("uniform", 20, 100), ("uniform", 40, 100), ("normal", 20, 100),
         ("arrival-1", 20, None), ("conversation", 40, 1_500))  # fmt: skip


def main() -> None:
    """Print one row for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    print("| family | n | LP: latency of svf's, s | Lagrangian: latency of svf's, s |")
    print("|---|---|---|---|")
    for family, n, memory in CASES:
        drawn = [generate(family, n, memory, seed=seed) for seed in range(options.draws)]
        cells = []
        for means in ("lp", "lagrangian"):
            runs = [run(instance, f"sorted-lp:means={means}") for instance in drawn]
            ratios = [
                (found.objective or 0) / (run(instance, "svf").objective or 1)
                for found, instance in zip(runs, drawn, strict=True)
            ]
            seconds = statistics.mean(found.wall_seconds for found in runs)
            cells.append(f"{statistics.mean(ratios):.3f}, {seconds:.2f}")
        print(f"| {family} | {n} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    with ended_by_reader():
        main()
