"""Optima where requests may pause, on draws of the papers' families: which are proved, and when.

python benchmarks/paused_exact.py [--n 8] [--draws 5] [--limit 300] [--engines auto]
"""

from __future__ import annotations

import argparse

from kvopt import generate, solve
from kvopt.kernels.pipes import ended_by_reader


def main() -> None:
    """Print a row for each draw and engine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of each")
    parser.add_argument("--families", nargs="+", default=["arrival-2", "arrival-1"])
    parser.add_argument("--engines", nargs="+", default=["auto"])
    given = parser.parse_args()
    print("| family | seed | engine | best | at least | checked bound | status | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for family in given.families:
        for seed in range(1, given.draws + 1):
            instance = generate(family, n=given.n, seed=seed)
            for engine in given.engines:
                found = solve(instance, engine, scope="pauses", time_limit=given.limit)
                checked = None if found.checked is None else found.checked.value
                print(
                    f"| {family} | {seed} | {engine} | {found.objective} | {found.lower_bound} | "
                    f"{checked} | {found.status} | {found.seconds:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    with ended_by_reader():
        main()
