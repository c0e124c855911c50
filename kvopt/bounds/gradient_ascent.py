"""Climb in floats on a concave function of several columns of prices.

All columns move together.  Each price follows the slope on its own scale: one scale for all would
be that of the steepest, too small for the others.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np

from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Floats

Point = tuple[Floats, ...]
"""Columns of prices."""


class Concave(Protocol):
    """A function with a slope."""

    def evaluate(self, point: Point) -> tuple[float, Any]:
        """Return the value at a point, and data from which the slope follows."""
        ...

    def slope(self, point: Point, data: Any) -> Point | None:
        """Return a slope at a point, None if no step gains enough."""
        ...

    def moved(self, point: Point, directions: Point, step: float) -> Point:
        """Return the next feasible point."""
        ...


class Steps(NamedTuple):
    """Parameters of the steps.

    Parameters
    ----------
    limit
        Limit of the steps.
    length, slower
        First length of a step, and the number of steps after which it is 0.7 of that.
    momentum, memory
        Decay, in each step, of the means of the slope and of its square.
    recent
        Weight of the last point in the moving mean of points, which is often better than they are.
    patience, enough
        So many steps are to gain this share of the value.
    shorter, shortest
        If they do not, the factor of the length with which steps go on from the best point, and
        the length below which the ascent ends.
    """

    limit: int
    length: float
    slower: float = math.inf
    momentum: float = 0.9
    memory: float = 0.99
    recent: float = 0.1
    patience: int = 40
    enough: float = 0.0
    shorter: float = 0.0
    shortest: float = 1e-9


class Top(NamedTuple):
    """The best point of an ascent, its value, and whether the ascent ended before its time."""

    value: float
    point: Point
    is_final: bool


class _Directions:
    """Directions that follow a slope (Adam): 1 or -1 where it keeps its sign."""

    def __init__(self, point: Point, steps: Steps) -> None:
        self._steps, self._taken = steps, 0
        self._means = [np.zeros_like(column) for column in point]
        self._squares = [np.zeros_like(column) for column in point]

    def after(self, slope: Point) -> Point:
        """Return the next directions."""
        self._taken += 1
        momentum, memory, directions = self._steps.momentum, self._steps.memory, []
        for place, column in enumerate(slope):
            self._means[place] = momentum * self._means[place] + (1 - momentum) * column
            self._squares[place] = memory * self._squares[place] + (1 - memory) * column**2
            mean = self._means[place] / (1 - momentum**self._taken)
            size = np.sqrt(self._squares[place] / (1 - memory**self._taken))
            directions.append(mean / np.maximum(size, np.finfo(float).tiny))
        return tuple(directions)


def ascend(concave: Concave, point: Point, steps: Steps, budget: Budget) -> Top:
    """Return the best of the points on a way upwards, and of moving means of these."""
    value, data = concave.evaluate(point)
    best, mean, earlier = (value, point), point, value
    directions, length, is_final = _Directions(point, steps), steps.length, True
    for step in range(steps.limit):
        if budget.over():
            is_final = False
            break
        if (slope := concave.slope(point, data)) is None:
            break
        ahead = directions.after(slope)
        point = concave.moved(point, ahead, length / (1 + step / steps.slower) ** 0.5)
        # The mean of recent points is often better than they are.
        mean = tuple(
            (1 - steps.recent) * earlier_column + steps.recent * column
            for earlier_column, column in zip(mean, point, strict=True)
        )
        if (step + 1) % steps.patience == 0:
            best = max(best, (concave.evaluate(mean)[0], mean), key=itemgetter(0))
            # So many steps gained little: end, or take shorter ones from the best point.
            if best[0] - earlier < steps.enough * abs(best[0]):
                length *= steps.shorter
                if length < steps.shortest:
                    break
                point = mean = best[1]
                directions = _Directions(point, steps)
            earlier = best[0]
        value, data = concave.evaluate(point)
        best = max(best, (value, point), key=itemgetter(0))
    return Top(*max(best, (concave.evaluate(mean)[0], mean), key=itemgetter(0)), is_final)
