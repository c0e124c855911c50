"""Climb in floats on a concave function of several columns of prices.

All columns move together.  Each price follows the slope on its own scale: one scale for all would
be that of the steepest, too small for the others.
"""

from __future__ import annotations

import math
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
    at_first
        Further factor as long as no step has gained anything.
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
    at_first: float = 1.0


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


class Ascent:
    """A way upwards, and the best of its points and of moving means of these.

    Attributes
    ----------
    value, point
        The best point so far and its value.
    """

    def __init__(self, concave: Concave, point: Point, steps: Steps) -> None:
        self._concave, self._steps, self._taken, self._length = concave, steps, 0, steps.length
        self.value, self._data = concave.evaluate(point)
        self.point = self._at = self._mean = point
        self._first = self._earlier = self.value
        self._directions = _Directions(point, steps)

    def step(self) -> bool:
        """Take a step; False if there is none."""
        steps = self._steps
        slope = self._concave.slope(self._at, self._data) if self._taken < steps.limit else None
        if slope is None or self._length < steps.shortest:
            return False
        ahead = self._directions.after(slope)
        length = self._length / (1 + self._taken / steps.slower) ** 0.5
        self._taken += 1
        self._at = self._concave.moved(self._at, ahead, length)
        # The mean of recent points is often better than they are.
        self._mean = tuple(
            (1 - steps.recent) * earlier + steps.recent * column
            for earlier, column in zip(self._mean, self._at, strict=True)
        )
        if self._taken % steps.patience == 0:
            self.try_mean()
            # So many steps gained little: end, or take shorter ones from the best point.
            if self.value - self._earlier < steps.enough * abs(self.value):
                self._length *= steps.shorter
                self._length *= steps.at_first if self.value == self._first else 1.0
                if self._length < steps.shortest:
                    return False
                self._at = self._mean = self.point
                self._directions = _Directions(self._at, steps)
            self._earlier = self.value
        value, self._data = self._concave.evaluate(self._at)
        self._keep(value, self._at)
        return True

    def try_mean(self) -> None:
        """Evaluate the moving mean of points."""
        self._keep(self._concave.evaluate(self._mean)[0], self._mean)

    def _keep(self, value: float, point: Point) -> None:
        """Keep a point if it is the best."""
        if value > self.value:
            self.value, self.point = value, point


def ascend(concave: Concave, point: Point, steps: Steps, budget: Budget) -> Top:
    """Return the best of the points on a way upwards, and of moving means of these."""
    ascent = Ascent(concave, point, steps)
    while not (is_late := budget.over()) and ascent.step():
        pass
    ascent.try_mean()
    return Top(ascent.value, ascent.point, not is_late)
