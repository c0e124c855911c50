"""The best prices that can be found: the LP bound without the LP.

``L(p)`` of `kvopt.bounds.prices` is concave in the prices and its maximum is the value of the
LP relaxation.  One evaluation costs a scan over kinds of requests and start rounds; the tokens
that the cheapest starts hold, less M, are a slope.  Steps are those of
`kvopt.bounds.gradient_ascent`, each price scaled by its own size.

Floats only steer.  Prices are rounded to integers and evaluated in integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from kvopt.bounds.fluid import fluid_end, fluid_prices
from kvopt.bounds.gradient_ascent import Ascent, Point, Steps
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.prices import denominator_for, price_bound, rounded_prices
from kvopt.errors import Stopped, TooLarge
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.proofs import CheckedBound
from kvopt.kernels.budget import Budget, wall_time
from kvopt.problem.arrays import Floats
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Problem

if TYPE_CHECKING:
    from kvopt.bounds.scan import Scanner

_FIRST_LOOK, _MIN_STEPS = 2.0, 16
"""Seconds and steps after which the gain of an ascent is first measured."""
MAX_STEPS = 6000
"""Limit of the steps of an ascent: the bound against time, where no limit is set."""
_BYTES = 400
"""Bytes that prices take for each round: tables of sums, directions, integers of a proof."""

_FIRST_COSTS = 20_000_000
"""Limit of the costs that a first bound evaluates without compiled code."""
_FREE_COSTS = 200_000
"""Limit of the costs on a backlog with pauses for which prices may rise over time."""
_LOADING = 0.6
"""Seconds of the time limit from which on loading compiled code is worth while."""

_FLOOR = 1e-2
"""Least scale of a price, as a share of the largest one."""


def first_prices(instance: Instance) -> Floats:
    """Return the prices of the fluid, and some at 0 that may rise after its end.

    Prices are of latency, so they are as large as the mean weight says.
    """
    fluid = fluid_prices(instance)
    if "weight" in instance.extras:
        fluid = fluid * (instance.total_weight / len(instance))
    return np.concatenate((fluid, np.zeros(len(fluid) // 8 + 1)))


STEPS = Steps(MAX_STEPS, 0.1, enough=1e-5, shorter=0.7, shortest=3e-5, at_first=0.4)
"""Steps of prices over their scales."""


class ConcaveInPrices:
    """A concave function of prices that are not negative.

    Parameters
    ----------
    evaluate
        Returns the value at prices, other data, and a slope.
    smallest
        Lower limit of the largest price, from which scales are taken.
    falling
        Whether prices never rise over time: they are sorted after each step, which brings them no
        farther from any prices that fall.
    """

    def __init__(
        self,
        evaluate: Callable[[Floats], tuple[float, object, Floats]],
        smallest: float,
        *,
        falling: bool = False,
    ) -> None:
        self._evaluate, self._smallest, self._falling = evaluate, smallest, falling

    def evaluate(self, point: Point) -> tuple[float, Floats]:
        """Return the value and a slope."""
        value, _, slope = self._evaluate(point[0])
        return value, slope

    def slope(self, _: Point, slope: Floats) -> Point:
        """Return the slope."""
        return (slope,)

    def moved(self, point: Point, directions: Point, step: float) -> Point:
        """Return the next prices, each by its own scale."""
        (prices,), (direction,) = point, directions
        scale = np.maximum(prices, _FLOOR * prices.max(initial=self._smallest))
        moved: Floats = np.maximum(prices + step * scale * direction, 0.0)
        return (np.sort(moved)[::-1].copy() if self._falling else moved,)


def lagrangian_bounds(
    problem: Problem,
    budget: Budget,
    limits: Limits,
    minimum_gain: float = 0.0,
    whole: Budget | None = None,
) -> Iterator[CheckedBound]:
    """Yield the bound of fluid prices, then better and better ones, while time is left.

    The least gain is that of `rising_prices`.  The first and the last prices are evaluated beyond
    the budget if there is time within the whole.  Where memory has a block size, whole blocks are
    paid for.  With pauses prices that fall are nearly as good as any on a backlog, and are
    evaluated as quickly as without pauses.
    """
    whole = whole or budget
    if whole.over():
        return
    instance, pauses = problem.instance.in_tokens(), problem.has_pauses
    rounds = priced_rounds(instance, budget, limits)
    kinds = Kinds.of(problem.instance)
    costs = len(kinds) * rounds * (kinds.longest if pauses else 1)
    name = "lagrangian" if kinds.block == 1 else "lagrangian in blocks"
    if costs <= _FIRST_COSTS:
        fluid = fluid_prices(instance)
        proof = rounded_prices(fluid, denominator_for(kinds, fluid))
        yield CheckedBound(price_bound(problem.instance, proof, pauses=pauses), name, proof)
        if budget.left < _LOADING:
            return
    from kvopt.bounds.scan import Scanner  # it loads numba

    # Of a backlog, where all arrive at once, prices fall.
    falling = pauses and costs > _FREE_COSTS and not instance.last_arrival
    scanner = Scanner(kinds, limits.threads, whole, pauses=pauses)
    with suppress(Stopped):
        memory = instance.total_memory
        concave = ConcaveInPrices(scanner.at(memory), 1.0 / memory, falling=falling)
        ascent = Ascent(concave, (first_prices(instance),), STEPS)
        for prices in rising_prices(ascent, budget, minimum_gain):
            yield checked_prices(problem.instance, name, scanner, prices)


def priced_rounds(instance: Instance, budget: Budget, limits: Limits) -> int:
    """Return the rounds that need prices, if these are not too many."""
    longest = limits.params.lagrangian_longest
    if (rounds := fluid_end(instance)) > longest:
        raise TooLarge(f"schedules span {rounds:,} rounds; the limit is {longest:,}")
    budget.refuse(_BYTES * rounds)
    return rounds


def rising_prices(
    ascent: Ascent, budget: Budget, minimum_gain: float = 0.0, first_look: float = _FIRST_LOOK
) -> Iterator[Floats]:
    """Yield the first prices of an ascent, then better and better ones, while time is left.

    Whenever its time has doubled, after a ``first_look`` in seconds, the ascent must have gained
    that share of its value.
    """
    began = wall_time()
    look, value = first_look, ascent.value
    yield ascent.point[0]
    yielded, at, count = ascent.value, 0, 0
    spare = 2 * (wall_time() - began) + 0.05  # to evaluate once more, and to spare
    for count in range(MAX_STEPS):
        if budget.left < spare:
            break
        if (took := wall_time() - began) >= look and count + 1 >= _MIN_STEPS:
            gained, look, value = ascent.value - value, 2 * took, ascent.value
            if gained < minimum_gain * value:
                break
        if not ascent.step():
            break
        if count >= 2 * at + 16 and ascent.value > yielded:
            yield ascent.point[0]
            yielded, at = ascent.value, count
    if count:
        ascent.try_mean()
    if ascent.value > yielded:
        yield ascent.point[0]


def checked_prices(instance: Instance, name: str, scanner: Scanner, values: Floats) -> CheckedBound:
    """Return the bound of prices, rounded and evaluated in integers, of an equivalent instance."""
    proof = scanner.rounded(values)
    return CheckedBound(price_bound(instance, proof, scanner), name, proof)
