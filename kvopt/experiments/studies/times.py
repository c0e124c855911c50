"""What a run in seconds came to, as its record carries it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from kvopt.errors import InvalidInput
from kvopt.problem.arrays import Floats
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.timetable.measures import summary
from kvopt.timetable.runs import PolicyRun

COLUMNS = 200
"""Equal parts of a run for which the most tokens held are kept: enough for a picture."""


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
        Requests that run and wait in the middle of each part.
    """

    latency: Mapping[str, float | None]
    first_token: Mapping[str, float | None]
    completed: int
    tokens_per_second: float | None
    arriving_tokens_per_second: float | None
    ended: float
    mean_memory: float | None
    memory: Sequence[int]
    running: Sequence[int]
    waiting: Sequence[int]

    def __post_init__(self) -> None:
        if any(
            {"mean", "median", "p99"} - each.keys() for each in (self.latency, self.first_token)
        ):
            raise InvalidInput("must have mean, median and p99", field="latency, first_token")
        if not len(self.running) == len(self.waiting) == len(self.memory):
            raise InvalidInput("must have as many parts", field="memory, running, waiting")

    @classmethod
    def of(cls, run: PolicyRun) -> Self:
        """Sum up a run."""
        ended = run.stretches[-1].ended if run.stretches else 0
        seconds, held = map(np.array, run.memory_over_time())
        area = np.sum(np.diff(seconds) * (held[1:] + held[:-1])) / 2  # below straight lines
        running, waiting = _counts(run, ended)
        last = max(run.arrivals, default=0)
        done = sum(
            request.peak
            for request, end in zip(run.instance, run.completions, strict=True)
            if end is not None and end <= last
        )
        return cls(
            latency=summary(run.latencies),
            first_token=summary(run.times_to_first_token),
            completed=run.completed,
            tokens_per_second=run.throughput,
            arriving_tokens_per_second=done * NANOSECONDS / last if last else None,
            ended=ended / NANOSECONDS,
            mean_memory=float(area) / (ended / NANOSECONDS) if ended else None,
            memory=_highest(seconds, held) if ended else [],
            running=running,
            waiting=waiting,
        )


def _counts(run: PolicyRun, ended: int) -> tuple[list[int], list[int]]:
    """Return how many requests run and wait in the middle of each part."""
    if not ended:
        return [], []
    now = (2 * np.arange(COLUMNS) + 1) * ended // (2 * COLUMNS)
    rows = [(stretch.began, stretch.ended, stretch.active) for stretch in run.stretches]
    begins, ends, active = np.array(rows).T
    place = np.searchsorted(begins, now, "right") - 1
    running = np.where((place >= 0) & (ends[place] > now), active[place], 0)
    done = np.array(sorted(end for end in run.completions if end is not None), dtype=int)
    there, gone = (np.searchsorted(times, now, "right") for times in (sorted(run.arrivals), done))
    return running.tolist(), (there - gone - running).tolist()


def _highest(seconds: Floats, held: Floats) -> list[int]:
    """Return the most tokens held in each of equal parts of the time, between straight lines."""
    edges = np.linspace(0, seconds[-1], COLUMNS + 1)
    at_edges = np.interp(edges, seconds, held)
    highest = np.maximum(at_edges[1:], at_edges[:-1])
    part = np.searchsorted(edges[1:-1], seconds, "right")
    np.maximum.at(highest, part, held)
    return [int(most) for most in highest]
