"""Families, and random draws that are the same everywhere.

Only ``Random.random`` of the random module is used, whose sequence Python guarantees for a seed;
the rest are formulas.  Where a logarithm or an exponential enters, two platforms may differ
in the last bit of a float: rounding down to integers hides that unless a value falls on the very
edge of an integer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import NormalDist
from typing import Literal

from kvopt.errors import InvalidInput, did_you_mean, shown, unknown_name
from kvopt.files.reading import without_nulls
from kvopt.problem.requests import Request

Value = int | float | str

MAX_REQUESTS = 10**7
"""Limit of requests: a mistyped key should not fill the memory of the machine."""

_TRIES = 10_000
"""Rejected draws of a request or an instance before it counts as impossible."""
_STANDARD_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A key of a family, on the command line ``-p name=value``.

    Parameters
    ----------
    name, help
        Its name and meaning.
    default
        Its default value; None if the family draws or computes it, as the help tells.
    kind
        ``int``, ``float`` or ``str``.
    minimum, maximum
        Range of a number, inclusive.
    choices
        Values of a text.
    """

    name: str
    help: str
    default: Value | None = None
    kind: Literal["int", "float", "str"] = "int"
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: Sequence[str] = ()

    def parsed(self, value: Value) -> Value:
        """Return a value of the right type and range, or raise."""
        try:
            # int(1.5) is 1 and int(True) is 1: the caller means neither.
            if isinstance(value, bool) or (self.kind == "int" and isinstance(value, float)):
                raise TypeError
            parsed: Value = {"int": int, "float": float, "str": str}[self.kind](value)
        except (TypeError, ValueError, OverflowError):
            kind = {"int": "an integer", "float": "a number", "str": "a text"}[self.kind]
            raise self._refused(f"must be {kind}", value) from None
        if isinstance(parsed, str):
            if self.choices and parsed not in self.choices:
                raise unknown_name(value, self.choices, self.name)
        elif not (self.minimum <= parsed <= self.maximum and math.isfinite(parsed)):
            raise self._refused(f"must be in {self.minimum:g} .. {self.maximum:g}", value)
        return parsed

    def _refused(self, reason: str, value: Value) -> InvalidInput:
        return InvalidInput(f"{reason}, got {shown(value)}", field=self.name)


@dataclass
class Draw:
    """One draw from a family: its source of randomness and its arguments.

    Parameters
    ----------
    random
        The source.
    n, memory
        Value of the user, None for the family's own.
    parameters
        Every key of the family that has a value.
    drawn
        Values that the family drew or computed, for the notes of the
        instance.
    """

    random: Random
    n: int | None
    memory: int | None
    parameters: Mapping[str, Value]
    drawn: dict[str, Value] = field(default_factory=dict)

    def count(self, default: int) -> int:
        """Return how many requests to draw: ``n``, or the default of the family."""
        return default if self.n is None else self.n

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

    def lognormal(self, median: float, deviation: float) -> float:
        """Draw a number whose logarithm is normal."""
        return math.exp(self.normal(math.log(median), deviation))

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

    def arrivals(self, rate: float, rounds: range) -> list[int]:
        """Draw Poisson arrivals over some rounds."""
        if rate * len(rounds) > MAX_REQUESTS:
            reason = f"{rate:g} a round makes over {MAX_REQUESTS:,} requests"
            raise InvalidInput(f"{reason} in {len(rounds):,} rounds", field="rate")
        return [t for t in rounds for _ in range(self.poisson(rate))]

    def fitting(self, shape: Callable[[], tuple[int, int]], memory: int) -> tuple[int, int]:
        """Redraw a (prompt, output) until it fits the memory."""
        for _ in range(_TRIES):
            prompt, output = shape()
            if prompt + output <= memory:
                return prompt, output
        reason = f"{memory} is too small: no draw out of {_TRIES} fits"
        raise InvalidInput(reason, field="memory")


Drawn = tuple[int, list[Request]]
"""The memory and the requests of one instance."""
Drawing = Callable[[Draw], Drawn]
"""Draws one instance of a family."""


@dataclass(frozen=True, slots=True)
class Family:
    """A named family of instances.

    Parameters
    ----------
    name, summary, source
        Its name, content and source.
    draw
        Returns the memory and the requests of one instance.
    parameters
        Its keys.
    n, memory
        Defaults, as a help text shows them.
    fixed
        Those of ``n`` and ``memory`` that the family determines by its keys.
    """

    name: str
    summary: str
    source: str
    draw: Drawing
    parameters: Sequence[Parameter] = ()
    n: str = "50"
    memory: str = "100"
    fixed: Sequence[str] = ()

    def values(self, texts: Mapping[str, Value]) -> dict[str, Value]:
        """Return the keys that have a value, with given ones parsed."""
        by_name = {parameter.name: parameter for parameter in self.parameters}
        for name in texts:
            if name not in by_name:
                listed = ", ".join(by_name) or "no keys"
                reason = f"is not a key of {self.name}, which has {listed}"
                raise InvalidInput(reason + did_you_mean(name, by_name), field=name)
        return without_nulls(
            {
                name: parameter.parsed(texts[name]) if name in texts else parameter.default
                for name, parameter in by_name.items()
            }
        )


def clipped(value: float, maximum: int, minimum: int = 1) -> int:
    """Clip to minimum .. maximum, then round down."""
    return math.floor(min(max(value, float(minimum)), float(maximum)))
