"""Lower bounds by volume, fluid prices, the LP's duals and improved prices.

    python benchmarks/bound_methods.py [--seed 3] [--limit 120]

Every value is a proved bound: the duals of the LP are rounded and evaluated in integers too.
The last columns are the share of the LP bound that the improved prices reach, and the share of
its value that rounding takes from the fluid bound.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction

from kvopt import BoundResult, Instance, bound, generate
from kvopt.bounds.fluid import fluid_prices
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.prices import denominator_for, price_bound, price_value, rounded_prices
from kvopt.bounds.scan import Scanner
from kvopt.bounds.volume import volume_bound
from kvopt.kernels.pipes import ended_by_reader

CASES = (
    ("arrival-1", 20, None), ("arrival-1", 50, None), ("arrival-2", 30, None),
    ("arrival-2", 60, None), ("uniform", 40, 100), ("normal", 40, 100), ("binomial", 30, 100),
    ("exponential", 40, 100), ("mixed", 40, 100), ("two-point", 40, 100),
    ("conversation", 60, 1_500), ("conversation", 100, 4_000),
    ("conversation", 300, 16_492), ("conversation-summarisation", 60, 16_492),
)  # fmt: skip
FINE = 2**60
"""A denominator beside which nothing is lost."""


def main() -> None:
    """Print one row for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120.0)
    options = parser.parse_args()
    bound(generate("arrival-1", 5), "lagrangian")  # loads what is compiled
    print(
        "| family | n | M | volume of memory | with staircases | fluid | LP (s) "
        "| improved prices (s) | of the LP | rounding |"
    )
    print("|" + "---|" * 10)
    for family, n, memory in CASES:
        instance = generate(family, n, memory, seed=options.seed)
        head = (family, f"{len(instance)}", f"{instance.memory:,}")
        print("| " + " | ".join([*head, *cells(instance, options.limit)]) + " |", flush=True)


def cells(instance: Instance, limit: float) -> Iterator[str]:
    yield f"{volume_bound(instance):,}"
    yield f"{bound(instance, 'volume').value:,}"
    values = fluid_prices(instance)
    prices = rounded_prices(values, denominator_for(instance, values))
    yield f"{price_bound(instance, prices, Scanner(Kinds.of(instance))):,}"
    lp, improved = (bound(instance, method, time_limit=limit) for method in ("lp", "lagrangian"))
    yield from (timed(lp), timed(improved))
    yield "?" if not (lp.value and improved.value) else f"{improved.value / lp.value:.3%}"
    coarse = Fraction(price_value(instance, prices), prices.denominator)
    fine = Fraction(price_value(instance, rounded_prices(values, FINE)), FINE)
    yield f"{float(abs(1 - coarse / fine)):.0e}"


def timed(result: BoundResult) -> str:
    return f"{'-' if result.value is None else f'{result.value:,}'} ({result.seconds:.1f})"


if __name__ == "__main__":
    with ended_by_reader():
        main()
