"""Raise least costs of shapes by the cheapest lines of sets.

A line of sets is a way to go on from nothing.  The value of a line, with the least costs of all
requests, is linear in these: it rises by the requests of a shape less its starts.  The cheapest
line at some least costs is a line at all others too.  So what it proves there is a plane that
bounds the proof from above.  Next costs are the nearest ones at which no line so far is below a
level.  See docs/theory/ascent.md.

Where requests of one shape arrive at different times, and above the cost of a start after the last
price, planes are estimates.  They only choose the next costs: each value is a bound by itself.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from scipy.optimize import nnls

from kvopt.bounds.configurations.cost_to_go import CostToGo
from kvopt.bounds.configurations.dual_ascent import DualAscent
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Floats
from kvopt.problem.instance import Instance

_FIRST_SHARE, _LONGER, _SHORTER = 0.15, 1.1, 0.6
"""The first level as a share of the gap, and the factors of the next ones."""
_MORE_SETS = 2
"""Factor of the sets after a line that is cut."""
_LEAST_RISE = 0.01
"""Rounds above the best value of the lowest level that is tried."""
_TINY = 1e-9
"""Square of a distance that counts as none."""


class Planes:
    """Upper bounds on what least costs prove, each linear in them.

    Parameters
    ----------
    numbers
        Requests of each shape: distances count so much in each direction.
    """

    def __init__(self, numbers: Floats) -> None:
        self._scale = np.sqrt(numbers)
        self._slopes = np.zeros((0, len(numbers)))
        self._offsets = np.zeros(0)

    def add(self, point: Floats, value: float, slopes: Floats) -> None:
        """Add the plane through a value at a point."""
        self._slopes = np.vstack((self._slopes, slopes))
        self._offsets = np.append(self._offsets, value - slopes @ point)

    def nearest(self, point: Floats, level: float) -> Floats | None:
        """Return the nearest point, without negative entries, at which no plane is below a level.

        None if there is no such point.
        """
        # Of the least distance with A x >= b: a problem of nonnegative least squares (Lawson and
        # Hanson), whose residual has the direction of x.
        rows = np.vstack((self._slopes, np.eye(len(point)))) / self._scale
        lacking = np.append(level - self._offsets - self._slopes @ point, -point)
        system = np.vstack((rows.T, lacking))
        goal = np.append(np.zeros(len(point)), 1.0)
        try:
            residual = system @ nnls(system, goal)[0] - goal
        except RuntimeError:  # too many iterations
            return None
        if residual @ residual < _TINY:
            return None
        nearest: Floats = point - residual[:-1] / residual[-1] / self._scale
        return nearest.clip(0.0)


class LeastCosts:
    """Least costs of shapes that rise step by step, with their cost-to-go bounds.

    Parameters
    ----------
    instance, base
        The problem, and prices with an evaluation.
    sets
        Sets of a time in the first tables.

    Attributes
    ----------
    value
        What the best least costs prove, in rounds; minus infinity before the first step.
    priced, cost_to_go
        Prices with the best least costs, and their tables.
    fails
        Steps in a row that proved no more.
    sets
        Sets of a time in the next tables.
    """

    def __init__(self, instance: Instance, base: DualAscent, sets: int) -> None:
        counts = Counter(request.shape for request in instance)
        self._base, self._shapes = base, tuple(counts)
        self._numbers = np.array(list(counts.values()), dtype=float)
        self._planes, self._share = Planes(self._numbers), _FIRST_SHARE
        # Least costs as rounds above those of the base.
        self._best: Floats = np.zeros(len(counts))
        self._next: Floats | None = self._best
        self.value, self.fails, self.sets = -math.inf, 0, sets
        self.priced = base
        self.cost_to_go: CostToGo | None = None

    @property
    def is_final(self) -> bool:
        """Whether no step is left: the lines so far rule out a higher value."""
        return self._next is None

    def step(self, objective: int, window: int, max_sets: int, limit: Budget) -> None:
        """Fill tables at the next least costs, and choose those after them.

        Parameters
        ----------
        objective
            Total latency of the best schedule.
        window
            As of `CostToGo.fill`.
        max_sets
            Limit of the sets of a time.
        limit
            When it raises `Stopped`; then nothing changes.
        """
        assert self._next is not None
        point = self._next
        priced = self._base.with_entry_prices(dict(zip(self._shapes, point.tolist(), strict=True)))
        evaluation = priced.evaluation
        gap = (objective - 1) * evaluation.denominator - evaluation.total
        tables = CostToGo(priced.states, evaluation, gap)
        tables.fill(self.sets, window, limit, lines=True)
        value = (evaluation.total + tables.rise) / evaluation.denominator
        starts = tables.starts_of_cheapest()
        if starts is not None:
            missing = self._numbers - np.array([starts[shape] for shape in self._shapes])
            self._planes.add(point, value, missing)
        if value > self.value:
            self.value, self.priced, self.cost_to_go, self._best = value, priced, tables, point
            self.fails, self._share = 0, min(_LONGER * self._share, 1.0)
        else:
            self.fails, self._share = self.fails + 1, _SHORTER * self._share
        # Too few sets cut lines off, and make bounds lower.
        if starts is None or self.fails > 1:
            self.sets = max(self.sets, min(_MORE_SETS * self.sets, max_sets))
        self._choose(objective)

    def _choose(self, objective: int) -> None:
        """Set the next least costs: at a level above the best value, or at none if none is left."""
        level = self.value + self._share * (objective - self.value)
        point = self._planes.nearest(self._best, level)
        # A lower level has more points at which no line is below it.
        while point is None and level > self.value + _LEAST_RISE:
            level = (self.value + level) / 2
            point = self._planes.nearest(self._best, level)
        self._next = point
