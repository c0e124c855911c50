"""A run as a table: a row for each request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvopt.timetable.runs import PolicyRun


def columns_of(run: PolicyRun) -> dict[str, list[Any]]:
    """Return columns by name; times of a clock of seconds are seconds, and their names say so."""
    evicted = Counter(piece.request for piece in run.lost)
    requests = run.instance.requests
    suffix = "" if run.clock.is_even else "_seconds"
    shown: Callable[[int], float] = int if run.clock.is_even else lambda t: t / run.clock.scale
    starts, firsts, ends = run.start_times, run.first_tokens, run.completions
    times = {
        "arrival": run.arrivals,
        "start": starts,
        "first_token": firsts,
        "completion": ends,
        "latency": list(map(_since, ends, run.arrivals)),
        "wait": list(map(_since, starts, run.arrivals)),
    }
    return {
        "id": [request.id for request in requests],
        "prompt": [request.prompt for request in requests],
        "output": [request.output for request in requests],
        **{
            name + suffix: [None if time is None else shown(time) for time in each]
            for name, each in times.items()
        },
        "evictions": [evicted[i] for i in range(len(requests))],
    }


def _since(time: int | None, begin: int) -> int | None:
    return None if time is None else time - begin
