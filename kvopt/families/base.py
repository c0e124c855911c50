"""What a family is, and how its keys become an instance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from kvopt.errors import InvalidInput, shown
from kvopt.families.draw import Draw, Value
from kvopt.model.instance import Instance, Request


@dataclass(frozen=True, slots=True)
class Parameter:
    """A key of a family, given as ``-p name=value``.

    Parameters
    ----------
    name, help
        What it is called and what it does.
    default
        Its value when it is not given; None for one that the family draws or works out, as
        the help says.
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
            parsed = self._converted(value)
        except (TypeError, ValueError, OverflowError):
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

    def _converted(self, value: Value) -> Value:
        # int(1.5) is 1 and int(True) is 1: neither is what the caller meant.
        if isinstance(value, bool) or (self.kind is int and isinstance(value, float)):
            raise TypeError
        return self.kind(value)


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
    asked = {k: v for k, v in (("n", n), ("memory", memory)) if v is not None}
    for option in asked:
        if option in family.fixed:
            raise InvalidInput(f"follows from the keys of {family.name}", field=f"--{option}")
    values = _values(family, parameters)
    draw = Draw(Random(seed), n, memory, values)
    cache, requests = family.draw(draw)
    notes: dict[str, Value] = {"family": family.name, "source": family.source, "seed": seed}
    notes.update({**asked, **values, **draw.drawn})
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
