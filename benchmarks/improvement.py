"""What the searches for better schedules add to the best policy.

    python benchmarks/improvement.py [--seconds 10 60] [--draws 3]

For each instance: the best of the fast policies, and what the local search and all searches
together make of it after so many seconds on one core.
"""

from __future__ import annotations

import argparse
import bisect
from collections.abc import Callable

from kvopt import Instance, Progress, generate
from kvopt.heuristics import improve
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.heuristics.local_search import search_orders
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.kernels.pipes import ended_by_reader

METHODS: dict[str, Callable[[Search, float], None]] = {
    "orders": search_orders,
    "all": improve,
}


def main() -> None:
    """Print one row for each instance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, nargs="+", default=[10.0, 60.0])
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    heads = [f"{method} {s:g} s" for method in METHODS for s in options.seconds]
    print("| instance | best policy | " + " | ".join(heads) + " |")
    print("|---|---|" + "---|" * len(heads))
    improved(generate("arrival-1", 12, seed=0), "orders", [0.1])  # compiles, loads
    for seed in range(options.draws):
        row(f"arrival-1 n=50 seed={seed}", generate("arrival-1", 50, seed=seed), options.seconds)
        row(f"arrival-2 n=50 seed={seed}", generate("arrival-2", 50, seed=seed), options.seconds)
    row("conversation n=1000", generate("conversation", 1000, 16_492, seed=0), options.seconds)
    row("arrival-2 n=1000", generate("arrival-2", 1000, 50, seed=0), options.seconds)


def row(name: str, instance: Instance, seconds: list[float]) -> None:
    """Print what every method reached after each number of seconds."""
    search = Search(instance)
    offer_list_schedules(search)
    best = search.progress.objective
    assert best is not None
    cells = []
    for method in METHODS:
        values = improved(instance, method, seconds)
        cells += [f"{value:,} ({(value - best) / best:.2%})" for value in values]
    print(f"| {name} | {best:,} | " + " | ".join(cells) + " |", flush=True)


def improved(instance: Instance, method: str, seconds: list[float]) -> list[int]:
    """Return the total latency after each number of seconds."""
    seen: list[tuple[float, int]] = []

    def note(progress: Progress) -> None:
        assert progress.objective is not None
        seen.append((progress.seconds, progress.objective))

    search = Search(instance, Limits(time_limit=max(seconds), observer=note))
    offer_list_schedules(search)
    METHODS[method](search, max(seconds))
    times = [time for time, _ in seen]
    return [seen[bisect.bisect_right(times, limit) - 1][1] for limit in seconds]


if __name__ == "__main__":
    with ended_by_reader():
        main()
