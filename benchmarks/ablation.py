"""What a part of the search is worth: the same instances with it and without it.

    python benchmarks/ablation.py PART [--seconds S] [--seeds 1 2] [--limit N] [--processes P]

Each instance is solved with and without the part, one after the other, with the same limit and
seed, on one thread.  A line is printed for each, with both schedules and bounds, and how much is
lost without it.  Instances are the own ground of the part: those for which it was made.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kvopt import Instance, generate, read_instance, solve
from kvopt.kernels.pipes import writing_output

LIBRARY = Path(__file__).resolve().parents[1] / "instances" / "challenge"


@dataclass(frozen=True)
class Part:
    """A part of the search: what replaces it, where, and its own ground.

    Parameters
    ----------
    target, replacement
        Name of what is replaced, and by what.
    instances
        The instances on which the part was made to work, each with its name.
    clock
        The clock of their solves.
    """

    target: str
    replacement: Any
    instances: Callable[[], Iterator[tuple[str, Instance]]]
    clock: str = "rounds"


def nothing(*_: object, **__: object) -> None:
    """Do nothing instead of a part."""


def library(*names: str) -> Iterator[tuple[str, Instance]]:
    """Yield instances of the challenge set."""
    for name in names:
        yield name, read_instance(LIBRARY / f"{name}.json")


def drawn(
    *families: str, n: int, workers: int = 1, **fields: Any
) -> Iterator[tuple[str, Instance]]:
    """Yield a draw of each family, for so many workers."""
    for family in families:
        instance = replace(generate(family, n=n, seed=1, **fields), workers=workers)
        yield f"{family}, n = {n}, workers = {workers}", instance


def saturated_fleets() -> Iterator[tuple[str, Instance]]:
    """Yield fleets whose requests come about as quickly as they are served."""
    yield from library("fleet2-azure-n80", "fleet4-azure-n160")
    rates = {"conversation": 9.0, "conversation-summarisation": 0.55}
    for family, rate in rates.items():
        yield from drawn(family, n=2_000, workers=4, parameters={"rate": rate})


def pieces_of_traces() -> Iterator[tuple[str, Instance]]:
    """Yield one to three dozens of requests in a cache too large for configurations."""
    for count in (20, 30):
        for name, instance in library("azure-n40"):
            some = replace(instance, requests=instance.requests[:count], memory=4_608)
            yield f"first {count} of {name}", some
    yield from drawn("conversation", n=20, memory=500)
    yield from drawn("conversation-summarisation", n=20, memory=8_000)


def in_seconds() -> Iterator[tuple[str, Instance]]:
    """Yield requests in seconds on one worker, those of the library."""
    names = ("azure-n150", "conversation-n40", "conversation-summarisation-n100", "uniform-n60")
    yield from library(*(f"seconds-{name}" for name in names))


def with_prefixes() -> Iterator[tuple[str, Instance]]:
    """Yield sessions and agents whose prompts begin alike, and of which most have to wait."""
    yield from drawn("sessions", n=100, memory=2_000)
    yield from drawn("sessions", n=300, memory=3_000)
    yield from drawn("agents", n=100, memory=12_000)


PARTS = {
    "fluid-orders": Part(
        "kvopt.heuristics.fleets.fluid_orders.search_fluid_orders", nothing, saturated_fleets
    ),
    "token-search": Part("kvopt.search.stages.has_few_starts", nothing, pieces_of_traces),
    "seconds-beams": Part(
        "kvopt.heuristics.seconds.timed_beams.beams_in_seconds", nothing, in_seconds, "seconds"
    ),
    "sharing-beams": Part("kvopt.heuristics.trace_beams.search_traces", nothing, with_prefixes),
    "shared-prices": Part(
        "kvopt.bounds.shared_prices.shared_price_bounds", lambda *_: (), with_prefixes
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
    limits = {"time_limit": seconds, "seed": seed, "threads": 1, "clock": PARTS[part].clock}
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
        "bound lost": 100 * (1 - (less.lower_bound or 0) / (whole.lower_bound or 1)),
    }


if __name__ == "__main__":
    with writing_output():
        main()
