"""Prices of states that rise towards the configuration bound.

The smooth stand-in of `kvopt.bounds.configurations.smoothing` is maximised by a limited-memory
quasi-Newton method, at first with few knots and a high temperature, then with more and more
knots at lower and lower ones.  Few knots make a fast evaluation and find the general shape;
many take the last per cent.  The result is the best exact value.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from kvopt.bounds.configurations.smoothing import (
    Grid,
    Smoothed,
    add_path_shares,
    fill_smoothed,
    requests_part,
)
from kvopt.bounds.configurations.states import Knots, States
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiled import steering
from kvopt.problem.arrays import Flags, Floats, Integers

_HOTTER = 1.25
"""Factor on the temperature of a knot whose sums leave the range of floats."""
_HEADROOM = 0.85
"""Share of a temperature at which floats must hold all sums when an ascent begins."""


class Point(NamedTuple):
    """Prices, their bound in floats, the smooth bound and its gradient."""

    prices: Floats
    exact: float
    smooth: float
    gradient: Floats

    @property
    def is_finite(self) -> bool:
        """Whether floats could hold all sums; otherwise value and gradient mean nothing."""
        return math.isfinite(self.smooth) and bool(np.isfinite(self.gradient).all())


class Evaluator:
    """Evaluates prices at some knots, for requests with their remaining starts.

    Parameters
    ----------
    states, knots
        The states that have prices, and the times at which they are given.
    starts
        Start rounds that each request may have, see `States.all_starts`.
    tau
        The temperature, in rounds of latency.
    threads
        Threads that share the work.
    copies
        How many requests can be in each state at each knot, computed by default.
    apart
        Distance in rounds of the completions that are evaluated; a grid is exact enough.
    """

    def __init__(
        self,
        states: States,
        knots: Knots,
        starts: Flags,
        tau: float,
        threads: int = 1,
        copies: Integers | None = None,
        apart: int = 1,
    ) -> None:
        self.states, self.knots, self._starts = states, knots, starts
        self._copies = knots.copies(states, starts) if copies is None else copies
        self._weights = states.workers * knots.weights()
        self._parts = [np.arange(part, len(knots), threads) for part in range(threads)]
        self._grid = Grid.of(states, knots, apart)
        self._sums = np.empty((len(states.holds), len(self._grid.completions)))
        self._lives = np.empty_like(self._sums)
        self.tau, self.taus = tau, np.full(len(knots), tau)
        self._scales: Floats | None = None  # of the last prices

    def begin(self, prices: Floats) -> Point:
        """Evaluate first prices; raise the temperature of knots where floats demand it.

        The test is at a somewhat lower temperature: without this headroom the first steps leave the
        range of floats, and the ascent ends where it began.
        """
        while True:
            self.taus *= _HEADROOM
            tight = ~np.isfinite(self._configurations(prices).smooth)
            self.taus /= _HEADROOM
            if not tight.any() and (point := self(prices)).is_finite:
                return point
            self.taus[tight if tight.any() else slice(None)] *= _HOTTER

    def __call__(self, prices: Floats) -> Point:
        """Evaluate prices; where floats cannot hold all sums the point is not finite."""
        states, grid = self.states, self._grid
        # Where there is no knot prices are 0.  For the gradient see Claim 3.15 of docs/theory.
        padded = np.zeros((prices.shape[1], prices.shape[0] + 2))
        padded[:, :-2] = prices.T
        exact, smooth = requests_part(
            states, grid, padded, self._starts, self.tau, self._sums, self._lives
        )
        gradient = np.zeros_like(padded)
        add_path_shares(states, grid, self._lives, gradient)
        worth = self._configurations(prices)
        with np.errstate(invalid="ignore"):  # infinite less infinite: `is_finite` reports it
            return Point(
                prices,
                exact - float(self._weights @ worth.scales[:, 0]),
                smooth - float(self._weights @ worth.smooth),
                gradient[:, :-2].T.copy() - self._weights[:, None] * worth.shares,
            )

    def _configurations(self, prices: Floats) -> Smoothed:
        """Return the largest prices of configurations; each thread fills the rows of its knots."""
        if self._scales is None:  # so large that no sum leaves the range upwards
            highest = self.states.together * prices.max(axis=1)
            self._scales = np.stack((np.zeros(len(prices)), highest), axis=1)
        smoothed = Smoothed(self._scales, np.empty(len(prices)), np.zeros_like(prices))

        def work(rows: Integers) -> None:
            fill_smoothed(self.states, rows, prices, self._copies, self.taus, smoothed)

        if len(self._parts) == 1:
            work(self._parts[0])
        else:
            with ThreadPoolExecutor(len(self._parts)) as pool:
                list(pool.map(work, self._parts))
        return smoothed


class AscentStage(NamedTuple):
    """How prices of states rise for a while.

    Parameters
    ----------
    refinement
        The first distance of knots is divided by this.
    heat
        Temperature, as a share of the mean latency of a round.
    gain
        Share of the bound that a window must add, or the ascent ends.
    steps
        Most steps.
    window
        Steps over which the gain is measured.
    """

    refinement: int
    heat: float
    gain: float
    steps: int
    window: int = 10


_PAIRS = 10
"""Steps that the quasi-Newton method remembers."""
_SHORTENED = 0.4
"""Factor on the length of a step without enough gain."""
_SHORTENINGS = 10
"""Shorter steps in one direction before the search gives it up."""
_ENOUGH = 1e-4
"""Least share of the gain promised by the gradient for a step to be taken."""

Pair = tuple[Floats, Floats, float]
"""A step, the change of the gradient over it, and one over their product."""


def ascend(
    evaluate: Evaluator, prices: Floats, stage: AscentStage, value: int, budget: Budget
) -> tuple[Floats, Floats]:
    """Ascend until the gain per step is small; return the best prices and the last ones.

    The method is L-BFGS with a simple line search.  Its first step changes the steepest price by
    one temperature.  The value of a good schedule sets the scale of a gain.
    """
    best = at = evaluate.begin(prices)
    before, count, pairs = at.smooth, 0, list[Pair]()
    while count < stage.steps:
        there = _searched(evaluate, at, _direction(at.gradient, pairs, evaluate.tau))
        if there is None and not pairs:
            break
        if there is None:  # the steepest direction may still gain
            pairs.clear()
            continue
        # Remember the change of the gradient, if the function was concave along the step.
        moved, change = there.prices - at.prices, at.gradient - there.gradient
        curvature = _dot(moved, change)
        if curvature > 0.0:
            pairs.append((moved, change, 1.0 / curvature))
            del pairs[:-_PAIRS]
        at, count = there, count + 1
        if at.exact > best.exact:
            best = at
        if budget.over():
            break
        # End after a window without enough gain.
        if count % stage.window == 0:
            if at.smooth - before < stage.gain * value:
                break
            before = at.smooth
    return best.prices, at.prices


def _searched(evaluate: Evaluator, at: Point, direction: Floats) -> Point | None:
    """Return a point in a direction that is better by enough, or None."""
    slope = _dot(direction, at.gradient)
    length = 1.0
    for _ in range(_SHORTENINGS):
        there = evaluate(at.prices + length * direction)
        gain = there.smooth - at.smooth
        if there.is_finite and gain >= _ENOUGH * length * slope and gain > 0.0:
            return there
        length *= _SHORTENED
    return None


def _direction(gradient: Floats, pairs: list[Pair], first_step: float) -> Floats:
    """Return the quasi-Newton direction of ascent, by the two-loop recursion."""
    if not pairs:
        return gradient * (first_step / max(float(np.abs(gradient).max()), 1e-12))
    direction = gradient.copy()
    # Reading the remembered steps takes the time, so each pass adds one and multiplies the next.
    moves, changes, weights = zip(*pairs, strict=True)
    product, factors = _dot(moves[-1], direction), []
    for change, weight, after in zip(
        changes[::-1], weights[::-1], (*moves[-2::-1], changes[0]), strict=True
    ):
        factors.append(weight * product)
        product = _add_and_multiply(direction, -factors[-1], change, after)
    scale = 1.0 / (weights[-1] * _dot(changes[-1], changes[-1]))
    direction *= scale
    product *= scale
    for move, weight, factor, after in zip(
        moves, weights, factors[::-1], (*changes[1:], gradient), strict=True
    ):
        product = _add_and_multiply(direction, factor - weight * product, move, after)
    return direction


@steering
def _add_and_multiply(direction: Floats, factor: float, move: Floats, other: Floats) -> float:
    """Add a multiple of a step to a direction; return its product with another step."""
    product = 0.0
    for knot in range(direction.shape[0]):
        for state in range(direction.shape[1]):
            direction[knot, state] += factor * move[knot, state]
            product += direction[knot, state] * other[knot, state]
    return product


def _dot(one: Floats, other: Floats) -> float:
    """Return the sum of products: matrices are too small for a BLAS with threads."""
    return float(np.einsum("ij,ij", one, other))
