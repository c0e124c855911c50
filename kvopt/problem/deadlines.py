"""Deadlines of requests, and the number of requests that attain theirs.

A deadline counts from the arrival, in rounds or in nanoseconds like the clock.  A request *attains*
it if its last token, or its first one if that is the aim, is produced by then.  As everywhere in
kvopt a first token that an eviction loses does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from kvopt.errors import InvalidInput, shown
from kvopt.problem.batch_time import MILLISECOND, NANOSECONDS
from kvopt.problem.instance import Instance
from kvopt.problem.requests import LARGEST_INTEGER

OWN = "own"
"""Word for the deadline that each request has of its own."""

_FORMAT = re.compile(r"(?:(first-token):)?(?:(own)|([0-9]{1,16})|([0-9]{1,16}(?:\.[0-9]{1,9})?)s)")


class Aim(StrEnum):
    """The token that a deadline asks for: the last or the first."""

    COMPLETION = "completion"
    """The last token."""
    FIRST_TOKEN = "first-token"
    """The first token."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """One deadline for all requests, or the request's own.

    Parameters
    ----------
    aim
        The token that is due.
    rounds, nanoseconds
        Time after the arrival; both None for the deadlines of the requests.

    Examples
    --------
    >>> Deadline.parse("40"), str(Deadline.parse("first-token:1.5s"))
    (Deadline(aim=<Aim.COMPLETION: 'completion'>, rounds=40, nanoseconds=None), 'first-token:1.5s')
    """

    aim: Aim
    rounds: int | None = None
    nanoseconds: int | None = None

    @classmethod
    def parse(cls, given: object) -> Deadline:
        """Return the deadline of ``40``, ``30s`` or ``own``, perhaps after ``first-token:``."""
        if isinstance(given, Deadline):
            return given
        is_number = isinstance(given, int) and not isinstance(given, bool)
        found = _FORMAT.fullmatch(given if isinstance(given, str) else str(given))
        if found is None or not (is_number or isinstance(given, str)):
            reason = f"must be rounds, seconds with an s, or own, got {shown(given)}: 40, 30s"
            raise InvalidInput(f"{reason}, own, first-token:2s", field="deadline")
        aim, _, rounds, seconds = found.groups()
        length = None if seconds is None else int(Fraction(seconds) * NANOSECONDS)
        made = cls(Aim(aim or "completion"), None if rounds is None else int(rounds), length)
        for number in (made.rounds, made.nanoseconds):
            if number is not None and not 1 <= number <= LARGEST_INTEGER:
                reason = f"must be at least 1 round or nanosecond, at most 2^53 - 1, got {given}"
                raise InvalidInput(reason, field="deadline")
        return made

    def __str__(self) -> str:
        before = "first-token:" if self.aim is Aim.FIRST_TOKEN else ""
        if self.nanoseconds is not None:
            whole, part = divmod(self.nanoseconds, NANOSECONDS)
            return f"{before}{whole}{f'.{part:09}'.rstrip('0') if part else ''}s"
        return before + (OWN if self.rounds is None else str(self.rounds))

    @property
    def worded(self) -> str:
        """Return the deadline in words."""
        aim = " to the first token" if self.aim is Aim.FIRST_TOKEN else ""
        return f"within {self.length}{aim}"

    @property
    def length(self) -> str:
        """Return its length in words."""
        if self.nanoseconds is not None:
            return str(replace(self, aim=Aim.COMPLETION)).removesuffix("s") + " seconds"
        if self.rounds is None:
            return "deadlines of their own"
        return f"{self.rounds:,} round{'s' * (self.rounds != 1)}"

    def of_all(self, instance: Instance, *, rounds: bool) -> int | None:
        """Return the time that all requests may take, None if each has a deadline of its own."""
        if self.nanoseconds is not None:
            return int(self.nanoseconds / _round_ns(instance)) if rounds else self.nanoseconds
        if self.rounds is None or rounds:
            return self.rounds
        return int(self.rounds * _round_ns(instance))

    def allowed(self, instance: Instance, *, rounds: bool) -> list[int]:
        """Return the time that each request may take, on a clock of rounds or of nanoseconds.

        Raises
        ------
        InvalidInput
            If a request has no deadline, or seconds and rounds are mixed without ``round_ms``.
        """
        of_all = self.of_all(instance, rounds=rounds)
        if of_all is not None:
            return [of_all] * len(instance)
        own = [request.deadline for request in instance]
        if None in own:
            name = repr(instance.requests[own.index(None)].id)
            raise InvalidInput("is missing", field="deadline", request=name)
        known = [number for number in own if number is not None]
        if rounds or not known:
            return known
        length = _round_ns(instance)
        return [int(number * length) for number in known]


def _round_ns(instance: Instance) -> Fraction:
    if instance.round_ms is None:
        reason = "is missing, so that rounds have no length: a deadline cannot be converted"
        raise InvalidInput(reason, field="round_ms")
    return Fraction(instance.round_ms) * MILLISECOND


def attained(times: Iterable[int | None], arrivals: Sequence[int], allowed: Sequence[int]) -> int:
    """Return how many of some times are at most so long after the arrivals; None is never."""
    rows = zip(times, arrivals, allowed, strict=True)
    return sum(time is not None and time - arrival <= most for time, arrival, most in rows)
