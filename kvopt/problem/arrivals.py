"""When requests arrive, in integers of nanoseconds: the one reading of an instance's clock."""

from __future__ import annotations

from fractions import Fraction

from kvopt.errors import InvalidInput
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.instance import Instance

LATEST = 2**63
"""In nanoseconds: 292 years, far enough for clocks that count from 1970."""


def arrivals_ns(instance: Instance) -> list[int]:
    """Return the arrival of each request in nanoseconds.

    That is ``arrival_seconds``, rounded to nanoseconds, where all requests have it.  Where none
    has, rounds are as long as ``round_ms`` says; without it everything has to arrive at round 0.

    Raises
    ------
    InvalidInput
        If only some requests have ``arrival_seconds``, if rounds have no length, or if an arrival
        is centuries away.
    """
    found = _in_nanoseconds(instance)
    for request, arrival in zip(instance, found, strict=True):
        if arrival > LATEST:
            reason = f"is {arrival // NANOSECONDS:.3g} seconds away, at most 2^63 ns are allowed"
            raise InvalidInput(reason, field="arrival", request=repr(request.id))
    return found


def _in_nanoseconds(instance: Instance) -> list[int]:
    seconds = [request.arrival_seconds for request in instance]
    known = [time for time in seconds if time is not None]
    if known and len(known) == len(seconds):
        return [round(Fraction(time) * NANOSECONDS) for time in known]
    if known:
        without = instance.requests[seconds.index(None)].id
        raise InvalidInput("is missing", field="arrival_seconds", request=repr(without))
    if instance.round_ms is None and instance.last_arrival > 0:
        reason = "is missing, so that arrivals have no time in seconds"
        raise InvalidInput(reason, field="round_ms")
    length = Fraction(instance.round_ms or 0) * (NANOSECONDS // 1000)
    return [round(request.arrival * length) for request in instance]
