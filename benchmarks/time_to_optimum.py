"""Time to a proven optimum, engines side by side on the same draws of ``arrival-1``.

python benchmarks/time_to_optimum.py [--sizes 6 8 10 12 14] [--limit 60] [--engines ...]
"""

from __future__ import annotations

import argparse
import platform
import statistics

from kvopt import Status, generate, solve
from kvopt.kernels.pipes import ended_by_reader


def main() -> None:
    """Print one line a draw and engine, then the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[6, 8, 10, 12, 14])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--engines", nargs="+", default=["auto", "cpsat", "highs"])
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, limit {options.limit:g} s")
    print("| n | engine | seconds of each draw (latency, or bound..latency) | median |")
    print("|---|---|---|---|")
    for n in options.sizes:
        for engine in options.engines:
            seconds, cells = [], []
            for seed in range(options.draws):
                instance = generate("arrival-1", n=n, seed=seed)
                result = solve(instance, engine, time_limit=options.limit)
                proved = result.status is Status.OPTIMAL
                seconds.append(result.seconds if proved else float("inf"))
                value = f"{result.objective}"
                if not proved:
                    value = f"{result.lower_bound}..{value}"
                cells.append(f"{result.seconds:.1f} ({value})")
            median = statistics.median(seconds)
            print(f"| {n} | {engine} | {', '.join(cells)} | {median:.1f} |", flush=True)


if __name__ == "__main__":
    with ended_by_reader():
        main()
