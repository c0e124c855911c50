"""The best prices that can be found: the LP bound without the LP.

``L(p)`` of `kvopt.bounds.prices` is concave in the prices and its maximum is the value of the
LP relaxation.  One evaluation costs a scan over kinds of requests and start rounds; the tokens
that the cheapest starts hold, less M, are an ascent direction.  Steps follow Polyak's rule
towards a value a little above the best one, along a mixture of the last directions, each
price scaled by its own size.  When that value is not met the aim is lowered.

Floats only steer.  Prices are rounded to integers and evaluated in integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kvopt.bounds.fluid import fluid_end, fluid_prices
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

_RAISED = 1.5
"""Factor on an aim that was met again and again."""
_FLOOR = 1e-2
"""Least scale of a price, as a share of the largest one."""


class Pace(NamedTuple):
    """How prices rise.

    Parameters
    ----------
    stages
        For each stage the steps without progress before the aim is lowered, and the first aim
        above the best value, as a share of it.
    memory
        Weight of the directions so far in the next one.
    lowered
        Factor on an aim that was missed.
    end, lowest
        Share of the value, and value, below either of which an aim ends its stage.
    largest
        Lower limit of the largest price, from which scales are taken.
    """

    stages: tuple[tuple[int, float], ...] = ((10, 0.002), (100, 0.003))
    memory: float = 0.95
    lowered: float = 0.7
    end: float = 1e-6
    lowest: float = 0.0
    largest: float = 1.0


def first_prices(instance: Instance) -> Floats:
    """Return the prices of the fluid, and some at 0 that may rise after its end.

    Prices are of latency, so they are as large as the mean weight says.
    """
    fluid = fluid_prices(instance)
    if "weight" in instance.extras:
        fluid = fluid * (instance.total_weight / len(instance))
    return np.concatenate((fluid, np.zeros(len(fluid) // 8 + 1)))


_PACE = Pace(lowest=0.01)
"""Bounds are rounded up to integers, so a hundredth rarely counts."""


class Ascent:
    """Ascent of prices: the best so far and their value in floats.

    Parameters
    ----------
    evaluate
        Returns the value of a concave function of prices, other data, and a slope.
    prices
        The first ones.
    falling
        Whether prices never rise over time: they are sorted after each step, which brings them no
        farther from any prices that fall.
    pace
        Parameters of the steps.
    """

    def __init__(
        self,
        evaluate: Callable[[Floats], tuple[float, object, Floats]],
        prices: Floats,
        *,
        falling: bool = False,
        pace: Pace = _PACE,
    ) -> None:
        self._evaluate, self._falling, self._pace = evaluate, falling, pace
        self.prices = prices
        self.value, _, self._best_excess = evaluate(prices)
        self._stages, self._aim = iter(pace.stages), 0.0
        self._from_the_best()

    def _from_the_best(self) -> None:
        self._idle = self._gains = 0
        self._at, self._at_value, self._excess = self.prices, self.value, self._best_excess
        self._direction: Floats = np.zeros_like(self.prices)

    def step(self) -> bool:
        """Take one step, and lower the aim when it was missed for too long; False at the end."""
        pace, size = self._pace, max(abs(self.value), 1.0)
        if self._aim <= max(pace.end * size, pace.lowest):
            if (stage := next(self._stages, None)) is None:
                return False
            self._patience, aim = stage
            self._aim = aim * size
            self._from_the_best()
        self._direction = self._excess + pace.memory * self._direction
        # A price of 0 cannot fall, so it takes no part in the length of the step.
        direction = np.where((self._at <= 0) & (self._direction < 0), 0.0, self._direction)
        scale = np.maximum(self.prices, _FLOOR * self.prices.max(initial=pace.largest))
        steepness = float((scale * direction * direction).sum())
        if steepness == 0.0:
            self._aim = 0.0
            return True
        # Polyak's step length towards an assumed optimum, the best value plus the aim.
        length = (self.value + self._aim - self._at_value) / steepness
        self._at = np.maximum(self._at + length * scale * direction, 0.0)
        if self._falling:
            self._at = np.sort(self._at)[::-1].copy()
        self._at_value, _, self._excess = self._evaluate(self._at)
        progress = self._at_value > self.value + 0.05 * self._aim
        self._idle = 0 if progress else self._idle + 1
        self._gains += progress
        if self._gains >= 10:  # the aim is met again and again: it is too low
            self._aim *= _RAISED
            self._gains = 0
        if self._at_value > self.value:
            self.prices, self.value = self._at, self._at_value
            self._best_excess = self._excess
        if self._idle >= self._patience:
            self._aim *= self._pace.lowered
            self._from_the_best()
        return True


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
        ascent = Ascent(scanner.at(instance.total_memory), first_prices(instance), falling=falling)
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
    yield ascent.prices
    yielded, at = ascent.value, 0
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
            yield ascent.prices
            yielded, at = ascent.value, count
    if ascent.value > yielded:
        yield ascent.prices


def checked_prices(instance: Instance, name: str, scanner: Scanner, values: Floats) -> CheckedBound:
    """Return the bound of prices, rounded and evaluated in integers, of an equivalent instance."""
    proof = scanner.rounded(values)
    return CheckedBound(price_bound(instance, proof, scanner), name, proof)
