"""What a run in seconds came to, as its record carries it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import chain, pairwise
from typing import Any, Self

from kvopt.errors import InvalidInput, shown
from kvopt.files.reading import check_fields
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.timetable.measures import summary
from kvopt.timetable.runs import PolicyRun

COLUMNS = 200
"""Equal parts of a run for which the most tokens held are kept: enough for a picture."""

_LISTS = ("memory", "running", "waiting")
_NEWER = ("running", "waiting")
_SUMMARY = ("mean", "median", "p99")


@dataclass(frozen=True, kw_only=True)
class Times:
    """What users of a run waited, in seconds, and how full the cache was.

    Parameters
    ----------
    latency, first_token
        ``mean``, ``median`` and ``p99`` over what finished.
    completed
        Requests that finished.
    tokens_per_second
        Output tokens of what finished over the time to the last completion.
    arriving_tokens_per_second
        Tokens, prompts included, of what finished by the last arrival, over the time until then;
        None for a backlog.
    ended
        When the last round ended.
    mean_memory
        Tokens held, on average over that time.
    memory
        Most tokens held in each of equal parts of that time.
    running, waiting
        Requests that run and wait in the middle of each part; empty in older records.
    """

    latency: Mapping[str, float | None]
    first_token: Mapping[str, float | None]
    completed: int
    tokens_per_second: float | None
    arriving_tokens_per_second: float | None
    ended: float
    mean_memory: float | None
    memory: tuple[int, ...]
    running: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()

    @classmethod
    def of(cls, run: PolicyRun) -> Self:
        """Sum up a run."""
        ended = run.stretches[-1].ended if run.stretches else 0
        seconds, held = run.memory_over_time()
        running, waiting = _counts(run, ended)
        return cls(
            latency=summary(run.latencies),
            first_token=summary(run.times_to_first_token),
            completed=run.completed,
            tokens_per_second=run.throughput,
            arriving_tokens_per_second=_while_arriving(run),
            ended=ended / NANOSECONDS,
            mean_memory=_area(seconds, held) / (ended / NANOSECONDS) if ended else None,
            memory=_highest(run, ended),
            running=running,
            waiting=waiting,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the object of a record."""
        return {**vars(self), **{name: list(getattr(self, name)) for name in _LISTS}}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Build it from the object of a record."""
        needed = [item.name for item in fields(cls) if item.name not in _NEWER]
        found = check_fields(value, "times", needed, _NEWER)
        numbers = [found[name] for name in ("tokens_per_second", "arriving_tokens_per_second")]
        numbers.append(found["mean_memory"])
        for name in ("latency", "first_token"):
            numbers += check_fields(found[name], name, _SUMMARY, ()).values()
        known = [found["ended"], *(number for number in numbers if number is not None)]
        lists = {name: found.get(name, []) for name in _LISTS}
        for name, values in lists.items():
            if not isinstance(values, list):
                raise InvalidInput(f"must be a list, got {shown(values)}", field=name)
        for number in known:
            if type(number) not in (int, float):
                raise InvalidInput(f"must be numbers, got {shown(number)}", field="times")
        for whole in (found["completed"], *chain(*lists.values())):
            if type(whole) is not int:
                raise InvalidInput(f"must be integers, got {shown(whole)}", field="times")
        return cls(**{**found, **{name: tuple(values) for name, values in lists.items()}})


def _while_arriving(run: PolicyRun) -> float | None:
    last = max(run.arrivals, default=0)
    done = sum(
        request.peak
        for request, end in zip(run.instance, run.completions, strict=True)
        if end is not None and end <= last
    )
    return done * NANOSECONDS / last if last else None


def _area(seconds: list[float], held: list[int]) -> float:
    """Return token-seconds below straight lines."""
    corners = list(zip(seconds, held, strict=True))
    return sum((t1 - t0) * (h0 + h1) / 2 for (t0, h0), (t1, h1) in pairwise(corners))


def _counts(run: PolicyRun, ended: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return how many requests run and wait in the middle of each part."""
    arrivals = sorted(run.arrivals)
    ends = sorted(end for end in run.completions if end is not None)
    begins = [stretch.began for stretch in run.stretches]
    running, waiting = [], []
    for part in range(COLUMNS if ended else 0):
        now = (2 * part + 1) * ended // (2 * COLUMNS)
        place = bisect_right(begins, now) - 1
        busy = place >= 0 and run.stretches[place].ended > now
        running.append(run.stretches[place].active if busy else 0)
        there = bisect_right(arrivals, now) - bisect_right(ends, now)
        waiting.append(there - running[-1])
    return tuple(running), tuple(waiting)


def _highest(run: PolicyRun, ended: int) -> tuple[int, ...]:
    """Return the most tokens held in each of equal parts of the time until ``ended``."""
    parts = [0] * COLUMNS if ended else []
    for stretch in run.stretches:
        first = stretch.began * COLUMNS // ended
        last = min(stretch.ended * COLUMNS // ended, COLUMNS - 1)
        length = max(stretch.ended - stretch.first, 1)
        for part in range(first, last + 1):
            # Tokens grow round by round, close to a straight line: its value at the part's end.
            until = min(stretch.ended, (part + 1) * ended // COLUMNS) - stretch.first
            grown = (stretch.held_last - stretch.held) * max(until, 0) // length
            parts[part] = max(parts[part], stretch.held + grown)
    return tuple(parts)
