"""The clocks of a simulation: rounds of equal length, and rounds as long as their batch.

Policies count rounds.  The clock determines the length of a round, and so at which round an arrival
is seen.  Its times are integers: rounds, or nanoseconds.

Requests that arrive while a round lasts are seen when it ends.  A server with nothing to do
begins a round as soon as a request arrives; until then it counts rounds of the shortest length,
so that a policy can be woken after some rounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from kvopt.errors import InvalidInput, shown
from kvopt.problem.batch_time import NANOSECONDS, BatchTime, Line
from kvopt.problem.instance import Instance

if TYPE_CHECKING:  # policies load numpy, and pictures of runs need none
    from kvopt.simulate.policies.interface import View


LATEST = 2**63
"""Limit in nanoseconds: 292 years, enough for clocks that count from 1970."""


def arrivals_ns(instance: Instance) -> list[int]:
    """Return the arrival of each request in nanoseconds.

    This is ``arrival_seconds``, rounded to nanoseconds, if all requests have it.  If none has it,
    rounds last ``round_ms``; without it everything has to arrive at round 0.

    Raises
    ------
    InvalidInput
        If only some requests have ``arrival_seconds``, if rounds have no length, or if an arrival
        is centuries away.
    """
    arrivals = _in_nanoseconds(instance)
    for request, arrival in zip(instance, arrivals, strict=True):
        if arrival > LATEST:
            reason = f"is {arrival // NANOSECONDS:.3g} seconds away, at most 2^63 ns are allowed"
            raise InvalidInput(reason, field="arrival", request=repr(request.id))
    return arrivals


def _in_nanoseconds(instance: Instance) -> list[int]:
    seconds = [request.arrival_seconds for request in instance]
    times = [time for time in seconds if time is not None]
    if times and len(times) == len(seconds):
        return [round(Fraction(time) * NANOSECONDS) for time in times]
    if times:
        without = instance.requests[seconds.index(None)].id
        raise InvalidInput("is missing", field="arrival_seconds", request=repr(without))
    if instance.round_ms is None and instance.last_arrival > 0:
        reason = "is missing, so that arrivals have no time in seconds"
        raise InvalidInput(reason, field="round_ms")
    length = Fraction(instance.round_ms or 0) * (NANOSECONDS // 1000)
    return [round(request.arrival * length) for request in instance]


class Clock(ABC):
    """A clock: lengths of rounds, arrivals of requests, and the format of its times."""

    batch_time: BatchTime
    """Least length of a round, in units of the clock."""
    is_even: ClassVar[bool]
    """Whether every round lasts 1, so that times are numbers of rounds."""
    scale: ClassVar[int]
    """Units of the clock in one printed unit, a round or a second."""
    unit: ClassVar[str]
    """Suffix of a time in a message."""
    suffix: ClassVar[str]
    """Suffix of names of totals in JSON."""

    @property
    def model(self) -> BatchTime | None:
        """The model of a clock in seconds, None in rounds."""
        return None if self.is_even else self.batch_time

    @abstractmethod
    def arrivals(self, instance: Instance) -> list[int]:
        """Return the arrival of each request."""

    def in_rounds(self, instance: Instance) -> Instance:
        """Return the instance with arrivals in rounds of the shortest length.

        No arrival is seen at a later round, so a limit on rounds for this instance is not too
        strict for a run.
        """
        shifted = [
            replace(request, arrival=arrival // self.batch_time.least_ns, arrival_seconds=None)
            for request, arrival in zip(instance, self.arrivals(instance), strict=True)
        ]
        return replace(instance, requests=tuple(shifted), name=None, notes=None)

    def passing(self, view: View, prompts: int, rounds: int) -> int:
        """Return the length of the next rounds if no request starts or leaves after now.

        ``prompts`` are the tokens to prefill in the first of them.
        """
        active, held = len(view.active), view.next_held
        later = self.batch_time.stretch_ns(active, held + active, rounds - 1)
        return self.batch_time.round_ns(active, prompts, held) + later

    def due(self, view: View, prompts: int, gap: int) -> int:
        """Return the first round to begin ``gap`` or more after the current one, as of now."""
        if gap <= 0:
            return view.now
        limit = gap // self.batch_time.least_ns
        if not view.active:
            return view.now + limit
        rounds = range(1, limit + 2)  # each lasts as long as the shortest one or longer
        return view.now + 1 + bisect_left(rounds, gap, key=partial(self.passing, view, prompts))


def checked_clock(clock: object) -> Clock:
    """Return a clock, else raise."""
    if isinstance(clock, Clock):
        return clock
    reason = f"must be kvopt.Seconds(model), got {shown(clock)}"
    raise InvalidInput(reason, field="clock")


@dataclass(frozen=True)
class Rounds(Clock):
    """All rounds have length 1, and arrivals are in rounds."""

    batch_time = BatchTime([Line(1, 0)])
    is_even = True
    scale = 1
    unit = ""
    suffix = ""

    def arrivals(self, instance: Instance) -> list[int]:
        """Return the rounds of arrival."""
        return [request.arrival for request in instance]

    def passing(self, view: View, prompts: int, rounds: int) -> int:  # noqa: ARG002
        """Return the number of rounds."""
        return rounds

    def due(self, view: View, prompts: int, gap: int) -> int:  # noqa: ARG002
        """Return the round after the gap."""
        return view.now + gap


ROUNDS = Rounds()


@dataclass(frozen=True)
class Seconds(Clock):
    """Rounds last as long as their batches, in nanoseconds.

    Parameters
    ----------
    batch_time
        Their length.
    """

    batch_time: BatchTime

    is_even = False
    scale = NANOSECONDS
    unit = " ns"
    suffix = "_ns"

    def arrivals(self, instance: Instance) -> list[int]:
        """Return the nanoseconds of arrival."""
        return arrivals_ns(instance)


Piece = tuple[int, int, int]
"""``(request, start, end)``: active in the rounds that end at start + 1 .. end."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rounds in a row in which no request starts or leaves after the first began.

    Parameters
    ----------
    round, began
        The boundary at which it begins, as a number and as a time.
    rounds
        Their number.
    active, prompts, held
        Those of the first round, as in `BatchTime`: requests, prompt tokens of those that start,
        tokens held when it ends.
    first, ended
        Ends of its first round and of its last round.
    """

    round: int
    began: int
    rounds: int
    active: int
    prompts: int
    held: int
    first: int
    ended: int

    @property
    def held_last(self) -> int:
        """Tokens held when its last round ends."""
        return self.held + (self.rounds - 1) * self.active
