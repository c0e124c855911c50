"""A request: its arrival, the length of its prompt, and its output.

Also the checks of numbers that other modules use.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

from kvopt.errors import InvalidInput, shown
from kvopt.problem.prefixes import Block, checked_prefix

if TYPE_CHECKING:
    import numpy.typing as npt

Number = TypeVar("Number", int, "npt.NDArray[Any]")

LARGEST_INTEGER = 2**53 - 1
"""Largest number accepted in a field: every JSON reader keeps it exactly."""

COLUMNS = ("arrival", "prompt", "output")
"""Required fields of a request."""
_MINIMA = {
    **{"arrival": 0, "prompt": 0, "output": 1, "weight": 1},
    **{"ttft": 1, "tpot": 1, "e2e": 1},
    "priority": -LARGEST_INTEGER,
}
"""The smallest value of each integer of a request."""
_NEEDED = (*COLUMNS, "weight")


def checked_integer(value: object, field: str, minimum: int) -> int:
    """Return ``value`` if it is an integer in ``minimum .. LARGEST_INTEGER``, else raise.

    Integers of numpy become Python's, which do not overflow and can be written to files.
    """
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, Integral)):
        raise InvalidInput(f"must be an integer, got {shown(value)}", field=field)
    number = int(value)
    if number < minimum:
        raise InvalidInput(f"must be at least {minimum}, got {shown(value)}", field=field)
    if number > LARGEST_INTEGER:
        raise InvalidInput(f"must be at most 2^53 - 1, got {shown(value)}", field=field)
    return number


def checked_number(value: object, field: str, *, positive: bool = False) -> float:
    """Return a finite number that is not negative as a float, else raise.

    Equal numbers, such as 1 and 1.0, get one form for files and hashes.
    """
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidInput(f"must be a number, got {shown(value)}", field=field)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        wanted = "positive" if positive else "not negative"
        raise InvalidInput(f"must be finite and {wanted}, got {shown(value)}", field=field)
    return number + 0.0  # turns -0.0 into 0.0


def volume_of(prompt: Number, output: Number) -> Number:
    """Return the token-rounds ``s o + o (o + 1) / 2`` of a request, or of arrays of requests."""
    volume: Number = prompt * output + output * (output + 1) // 2
    return volume


def can_be_written(value: object) -> bool:
    """Whether a label survives a file: no lone surrogates, no NaN, plain JSON types."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Prediction:
    """An interval ``[lower, upper]`` predicted for the output of a request.

    The true output may lie outside: predictions can be wrong.
    """

    lower: int
    upper: int

    def __post_init__(self) -> None:
        checked_integer(self.lower, "predicted.lower", 1)
        checked_integer(self.upper, "predicted.upper", 1)
        if self.lower > self.upper:
            reason = f"lower {self.lower} is above upper {self.upper}"
            raise InvalidInput(reason, field="predicted")


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its arrival, the length of its prompt, and its output.

    Parameters
    ----------
    arrival
        Round ``a_i >= 0`` from which it may start.
    prompt
        Prompt tokens ``s_i >= 0``.
    output
        Output tokens ``o_i >= 1``, one a round.
    id
        Name, unique in an instance; by default ``r0, r1, ...`` by position.
    predicted
        The interval that a predictor gives for the output.
    arrival_seconds
        Arrival on the clock of the trace that the request was taken from.
    priority
        For servers that use it: a smaller one goes first.
    ttft, tpot, e2e
        Rounds that it may take to its first token, for each further one, and to its last token.
    weight
        How many times its latency counts.
    prefix
        Ids of the blocks that its prompt begins with, see ``block_tokens`` of an instance; the
        prompt counts their tokens.
    """

    arrival: int
    prompt: int
    output: int
    id: str | None = None
    predicted: Prediction | None = None
    arrival_seconds: float | None = None
    priority: int | None = None
    ttft: int | None = None
    tpot: int | None = None
    e2e: int | None = None
    weight: int = 1
    prefix: Sequence[Block] = ()

    def __post_init__(self) -> None:
        if self.prefix != ():
            object.__setattr__(self, "prefix", checked_prefix(self.prefix))
        for name, minimum in _MINIMA.items():
            value = getattr(self, name)
            is_right = type(value) is int and minimum <= value <= LARGEST_INTEGER
            if not is_right and (value is not None or name in _NEEDED):
                object.__setattr__(self, name, checked_integer(value, name, minimum))
        if self.id is not None and (not isinstance(self.id, str) or not self.id):
            raise InvalidInput(f"must be a non-empty string, got {shown(self.id)}", field="id")
        if self.id is not None and not self.id.isascii() and not can_be_written(self.id):
            raise InvalidInput("holds what no UTF-8 file can carry", field="id")
        if self.predicted is not None and not isinstance(self.predicted, Prediction):
            reason = f"must be a Prediction, got {shown(self.predicted)}"
            raise InvalidInput(reason, field="predicted")
        if self.arrival_seconds is not None:
            seconds = checked_number(self.arrival_seconds, "arrival_seconds")
            object.__setattr__(self, "arrival_seconds", seconds)

    @property
    def peak(self) -> int:
        """Tokens held in the last active round, ``s_i + o_i``."""
        return self.prompt + self.output

    @property
    def volume(self) -> int:
        """Token-rounds of its run, ``s_i o_i + o_i (o_i + 1) / 2``."""
        return volume_of(self.prompt, self.output)

    @property
    def shape(self) -> tuple[int, int]:
        """``(prompt, output)``: requests of one shape and weight can swap places."""
        return self.prompt, self.output

    @property
    def kind(self) -> tuple[int, int, int]:
        """``(arrival, prompt, output)``, which determine all other numbers of a request."""
        return self.arrival, self.prompt, self.output
