"""What a study changes in a trace: its cache, its rate, and requests that are too large."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

from kvopt.errors import InvalidInput
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request, checked_integer, checked_number


def changed(
    instance: Instance,
    memory: int | None = None,
    rate: float | None = None,
    max_total: int | None = None,
) -> Instance:
    """Return an instance with another cache, arrivals at another rate, without large requests.

    Parameters
    ----------
    instance
        The instance.
    memory
        Its new cache size; the same when left out.
    rate
        How many times as many requests arrive in the same time; see `at_rate`.
    max_total
        Requests of more tokens than that are left out, and counted in the notes.

    Raises
    ------
    InvalidInput
        For a request that does not fit, or if none is left.

    Examples
    --------
    >>> found = changed(Instance(9, [Request(0, 1, 2), Request(5, 1, 8)]), 6, max_total=6)
    >>> found.memory, len(found), found.notes
    (6, 1, {'max_total': 6, 'left_out': 1})
    """
    requests = list(instance)
    said: dict[str, Any] = {}
    if max_total is not None:
        checked_integer(max_total, "max_total", 1)
        requests = [request for request in requests if request.peak <= max_total]
        said |= {"max_total": max_total, "left_out": len(instance) - len(requests)}
        if not requests:
            reason = f"leaves no request: the smallest has {min(r.peak for r in instance)} tokens"
            raise InvalidInput(reason if len(instance) else "is empty", field="max_total")
    if rate is not None and rate != 1:
        requests = at_rate(instance, requests, rate)
        said["rate"] = rate
    if memory in (None, instance.memory) and not said:
        return instance
    notes = instance.notes
    if said and notes is not None:
        said = {**(notes if isinstance(notes, dict) else {"notes": notes}), **said}
    size = instance.memory if memory is None else memory
    try:
        return replace(instance, memory=size, requests=tuple(requests), notes=said or notes)
    except InvalidInput as error:
        hint = f"; max_total = {size} leaves out what does not fit" if error.request else ""
        reason = error.reason + hint
        raise InvalidInput(reason, field=error.field, request=error.request) from None


def at_rate(instance: Instance, requests: list[Request], rate: float) -> list[Request]:
    """Return requests of an instance with every arrival divided by a rate.

    It is done in integers: a round is rounded up to the next whole one, seconds to the next
    nanosecond, so that no request is there too early.  Requests whose rounds have a length get
    arrivals in seconds, which would else be rounded to whole rounds.
    """
    checked_number(rate, "rate", positive=True)
    if not any(request.arrival or request.arrival_seconds for request in instance):
        raise InvalidInput("all requests arrive at once: there is no rate to scale", field="rate")
    share = Fraction(str(rate))  # the number as it was written, 0.1 and not what is next to it
    is_timed = instance.round_ms is not None or any(r.arrival_seconds is not None for r in instance)
    times = dict(zip(instance, arrivals_ns(instance), strict=True)) if is_timed else {}
    found = []
    for request in requests:
        try:
            arrival = ceil(request.arrival / share)
            seconds = _seconds(ceil(times[request] / share)) if is_timed else None
            found.append(replace(request, arrival=arrival, arrival_seconds=seconds))
        except InvalidInput as error:
            raise error.located(request=repr(request.id)) from None
    return found


def _seconds(time: int) -> float:
    """Return nanoseconds as the seconds of a request, which give the same nanoseconds again."""
    seconds = time / NANOSECONDS
    if round(Fraction(seconds) * NANOSECONDS) != time:
        reason = "is too far from 0 to be scaled to the nanosecond: let the trace begin at 0"
        raise InvalidInput(reason, field="arrival_seconds")
    return seconds
