"""What a part of the search is worth: the same instances with it and without it.

    python benchmarks/ablation.py PART [--seconds S] [--seeds 1 2] [--limit N] [--processes P]

Each instance is solved with and without the part, one after the other, with the same limit and
seed, on one thread.  A line is printed for each, with both schedules and bounds, and how much is
lost without it.  Instances are those on which the part works: twenty draws of the papers' full size
and ten open ones of the library for state beams.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kvopt import Instance, generate, read_instance, solve
from kvopt.kernels.pipes import writing_output

LIBRARY = Path(__file__).resolve().parents[1] / "instances" / "challenge"
OPEN = (
    "arrival-1-n40", "arrival-1-n50", "arrival-1-n60", "arrival-2-n50", "arrival-2-n60",
    "normal-n60", "uniform-n40", "exponential-n60", "binomial-n40", "burst-uniform-n40",
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A part of the search: what replaces it, where, and on which instances it is tried."""

    target: str
    replacement: Any
    instances: Callable[[], Iterator[tuple[str, Instance]]]


def full_size() -> Iterator[tuple[str, Instance]]:
    """Yield twenty draws of the papers' full size, and ten open instances of the library."""
    for family in ("arrival-1", "arrival-2"):
        for seed in range(10):
            yield f"{family}, seed {seed}", generate(family, seed=seed)
    for name in OPEN:
        yield name, read_instance(LIBRARY / f"{name}.json")


PARTS = {
    "state-beams": Part(
        "kvopt.heuristics.state_beams.searching.beams_of_states",
        lambda *_, **__: iter(()),
        full_size,
    ),
}


def main() -> None:
    """Solve all instances with and without a part, and print what is lost without it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--limit", type=int, help="only the first instances")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    chosen = list(PARTS[options.part].instances())[: options.limit]
    tasks = [
        (options.part, name, instance, seed, options.seconds)
        for name, instance in chosen
        for seed in options.seeds
    ]
    lost: dict[str, list[float]] = {}
    with ProcessPoolExecutor(options.processes) as pool:
        for row in pool.map(compared, tasks):
            print(json.dumps(row), flush=True)
            lost.setdefault(row["instance"], []).append(row["lost"])
    means = [statistics.mean(values) for values in lost.values()]
    print(f"mean {statistics.mean(means):+.3f}%; of {len(means)} instances", end=" ")
    print(f"{sum(mean >= 0.3 for mean in means)} lose 0.3% or more without it,", end=" ")
    print(f"{sum(mean <= -0.3 for mean in means)} gain as much")


def compared(task: tuple[str, str, Instance, int, float]) -> dict[str, Any]:
    """Solve an instance with and without a part."""
    part, name, instance, seed, seconds = task
    limits = {"time_limit": seconds, "seed": seed, "threads": 1}
    whole = solve(instance, **limits)  # type: ignore[arg-type]
    with patch(PARTS[part].target, PARTS[part].replacement):
        less = solve(instance, **limits)  # type: ignore[arg-type]
    assert whole.objective is not None
    assert less.objective is not None
    return {
        "instance": name,
        "seed": seed,
        "with": [whole.objective, whole.lower_bound],
        "without": [less.objective, less.lower_bound],
        "lost": 100 * (less.objective - whole.objective) / whole.objective,
    }


if __name__ == "__main__":
    with writing_output():
        main()
