"""Random draws that are the same everywhere.

Nothing of the random module is used but ``Random.random``, whose sequence Python
guarantees for a seed; the rest are formulas.  Where a logarithm or an exponential enters,
two platforms may differ in the last bit of a float: rounding down to integers hides that
unless a value falls on the very edge of an integer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from statistics import NormalDist

from kvopt.errors import InvalidInput

Value = int | float | str

MOST_REQUESTS = 10**7
"""More are refused: a mistyped key should not fill the memory of the machine."""

_TRIES = 10_000
_STANDARD_NORMAL = NormalDist()


@dataclass
class Draw:
    """One draw from a family: its source of randomness and what was asked for.

    Parameters
    ----------
    random
        The source.
    n, memory
        What the user asked for, None to leave it to the family.
    parameters
        Every key of the family that has a value.
    drawn
        What the family drew or worked out for itself; it ends up in the notes of the
        instance.
    """

    random: Random
    n: int | None
    memory: int | None
    parameters: Mapping[str, Value]
    drawn: dict[str, Value] = field(default_factory=dict)

    def number(self, name: str) -> float:
        """Return a numeric key."""
        return float(self.parameters[name])

    def integer(self, name: str) -> int:
        """Return an integer key."""
        return int(self.parameters[name])

    def uniform(self, low: float, high: float) -> float:
        """Draw uniformly from [low, high)."""
        return low + (high - low) * self.random.random()

    def uniform_integer(self, low: int, high: int) -> int:
        """Draw uniformly from the integers low .. high, both included."""
        return low + math.floor((high - low + 1) * self.random.random())

    def exponential(self, mean: float) -> float:
        """Draw from the exponential distribution."""
        return -mean * math.log(1.0 - self.random.random())

    def normal(self, mean: float, deviation: float) -> float:
        """Draw from the normal distribution."""
        level = max(self.random.random(), 2.0**-53)  # the quantile of 0 is infinite
        return mean + deviation * _STANDARD_NORMAL.inv_cdf(level)

    def lognormal(self, mean: float, deviation: float) -> float:
        """Draw a number whose logarithm is normal."""
        return math.exp(self.normal(mean, deviation))

    def binomial(self, trials: int, chance: float) -> int:
        """Draw from the binomial distribution."""
        return sum(self.random.random() < chance for _ in range(trials))

    def poisson(self, mean: float) -> int:
        """Draw from the Poisson distribution: unit-rate arrivals before ``mean``."""
        count, clock = 0, self.exponential(1.0)
        while clock < mean:
            count += 1
            clock += self.exponential(1.0)
        return count

    def fitting(self, shape: Callable[[], tuple[int, int]], memory: int) -> tuple[int, int]:
        """Redraw a (prompt, output) until it fits the memory."""
        for _ in range(_TRIES):
            prompt, output = shape()
            if prompt + output <= memory:
                return prompt, output
        reason = f"{memory} is too small: no draw out of {_TRIES} fits"
        raise InvalidInput(reason, field="--memory")
