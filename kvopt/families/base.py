"""What a family is, and random draws that are the same everywhere.

Draws use nothing of the random module but ``Random.random``, whose sequence Python
guarantees, and closed formulas on top.  So a seed gives the same bytes on every platform
and with every release of every package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from statistics import NormalDist

from kvopt.errors import InvalidInput, shown
from kvopt.instance import Instance, Request

Value = int | float | str

_TRIES = 10_000
_STANDARD_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A key of a family, given as ``-p name=value``.

    Parameters
    ----------
    name, help
        What it is called and what it does.
    default
        Its value when it is not given; None to draw it, as the help says.
    kind
        ``int``, ``float`` or ``str``.
    least, most
        Range of a number, inclusive.
    choices
        Values of a text.
    """

    name: str
    help: str
    default: Value | None
    kind: type[int] | type[float] | type[str] = int
    least: float = -math.inf
    most: float = math.inf
    choices: tuple[str, ...] = ()

    def parsed(self, value: Value) -> Value:
        """Return a value of the right type and range, or raise."""
        label = f"-p {self.name}"
        try:
            parsed = self.kind(value)
        except (TypeError, ValueError):
            kind = {int: "an integer", float: "a number", str: "a text"}[self.kind]
            raise InvalidInput(f"must be {kind}, got {shown(value)}", field=label) from None
        if isinstance(parsed, str):
            if self.choices and parsed not in self.choices:
                reason = f"must be one of {', '.join(self.choices)}, got {shown(value)}"
                raise InvalidInput(reason, field=label)
        elif not (self.least <= parsed <= self.most and math.isfinite(parsed)):
            reason = f"must be in {self.least:g} .. {self.most:g}, got {shown(value)}"
            raise InvalidInput(reason, field=label)
        return parsed


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
        What the family drew for itself; it ends up in the notes of the instance.
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

    def until(self, draw: Callable[[], tuple[int, int]], memory: int) -> tuple[int, int]:
        """Redraw a (prompt, output) until it fits the memory."""
        for _ in range(_TRIES):
            prompt, output = draw()
            if prompt + output <= memory:
                return prompt, output
        raise InvalidInput(f"{memory} is too small for this family", field="memory")


@dataclass(frozen=True, slots=True)
class Family:
    """A named family of instances.

    Parameters
    ----------
    name, summary, source
        What it is called, what it holds, where it is from.
    draw
        Returns the memory and the requests of one instance.
    parameters
        Its keys.
    n, memory
        Defaults, as a help text shows them.
    fixed
        Of ``n`` and ``memory``, those that the family determines by its keys.
    """

    name: str
    summary: str
    source: str
    draw: Callable[[Draw], tuple[int, list[Request]]]
    parameters: tuple[Parameter, ...] = ()
    n: str = "50"
    memory: str = "100"
    fixed: tuple[str, ...] = ()


def draw_instance(
    family: Family,
    n: int | None,
    memory: int | None,
    seed: int,
    parameters: Mapping[str, Value],
) -> Instance:
    """Draw one instance; everything that went into it is in its notes."""
    for option, value in (("n", n), ("memory", memory)):
        if value is not None and option in family.fixed:
            raise InvalidInput(f"follows from the keys of {family.name}", field=f"--{option}")
    values = _values(family, parameters)
    draw = Draw(Random(seed), n, memory, values)
    cache, requests = family.draw(draw)
    notes = {"family": family.name, "source": family.source, "seed": seed, **values, **draw.drawn}
    name = f"{family.name}-n{len(requests)}-m{cache}-seed{seed}"
    return Instance(cache, requests, name=name, notes=notes)


def _values(family: Family, given: Mapping[str, Value]) -> dict[str, Value]:
    known = {parameter.name: parameter for parameter in family.parameters}
    for name in given:
        if name not in known:
            keys = ", ".join(known) or "no keys"
            reason = f"is not a key of {family.name}, which has {keys}"
            raise InvalidInput(reason, field=f"-p {name}")
    values: dict[str, Value] = {}
    for name, parameter in known.items():
        if name in given:
            values[name] = parameter.parsed(given[name])
        elif parameter.default is not None:
            values[name] = parameter.default
    return values
