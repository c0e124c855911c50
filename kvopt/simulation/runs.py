"""What a simulated run is, and its check in integers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

from kvopt.model.instance import Instance
from kvopt.model.schedule import Schedule
from kvopt.model.sweep import swept


class Outcome(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    """Every request finished."""
    LIVELOCK = "livelock"
    """It would go on for ever without finishing what is left."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A stretch of work that an eviction threw away.

    The request was active at the times ``start + 1 .. end``.
    """

    request: int
    start: int
    end: int


@dataclass(frozen=True)
class PolicyRun:
    """What a policy did to an instance.

    Parameters
    ----------
    instance
        The problem.
    policy
        The policy and its parameters, as they were given.
    starts
        Last start of each request in instance order, None for what never finished.
    lost
        Work that evictions threw away, in order of eviction.
    outcome
        Whether every request finished.
    seconds
        Wall time of the run, without compiling what it uses.
    note
        What a reader should know: how a plan was made, where a loop began.
    """

    instance: Instance
    policy: str
    starts: tuple[int | None, ...]
    lost: tuple[Lost, ...]
    outcome: Outcome
    seconds: float
    note: str | None = None

    @property
    def evictions(self) -> int:
        """Number of evictions."""
        return len(self.lost)

    @cached_property
    def objective(self) -> int | None:
        """Total latency, None when something never finished."""
        schedule = self.schedule
        return None if schedule is None else schedule.objective

    @cached_property
    def schedule(self) -> Schedule | None:
        """The last starts as a schedule, None when something never finished.

        Evicted work is not part of it, so it may hold less memory than the run did.
        """
        starts = [start for start in self.starts if start is not None]
        return Schedule(self.instance, starts) if len(starts) == len(self.starts) else None

    @cached_property
    def makespan(self) -> int:
        """Time of the last completion of what finished."""
        ends = (
            k + r.output for k, r in zip(self.starts, self.instance, strict=True) if k is not None
        )
        return max(ends, default=0)

    @cached_property
    def peak_memory(self) -> int:
        """Most tokens held at one time, evicted work included."""
        requests, pieces = self.instance.requests, self.pieces()
        starts, ends = [start for _, start, _ in pieces], [end for _, _, end in pieces]
        prompts = [requests[i].prompt for i, _, _ in pieces]
        return max(swept(starts, ends, prompts).held, default=0)

    def violations(self) -> list[str]:
        """Return what breaks the rules of the problem, checked in integers; empty if nothing."""
        found = []
        for request, start in zip(self.instance, self.starts, strict=True):
            if start is not None and start < request.arrival:
                found.append(f"request {request.id!r} starts at {start}, before its arrival")
        for piece in self.lost:
            request = self.instance.requests[piece.request]
            if not request.arrival <= piece.start < piece.end < piece.start + request.output:
                found.append(f"request {request.id!r} cannot lose {piece.start}..{piece.end}")
        found += self._overlaps()
        if self.peak_memory > self.instance.memory:
            found.append(f"{self.peak_memory} tokens held, memory is {self.instance.memory}")
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt run --json`` prints for this policy."""
        return {
            "policy": self.policy,
            "objective": self.objective,
            "starts": list(self.starts),
            "evictions": self.evictions,
            "outcome": str(self.outcome),
            "makespan": self.makespan,
            "peak_memory": self.peak_memory,
            "seconds": round(self.seconds, 6),
            "note": self.note,
        }

    def pieces(self) -> list[tuple[int, int, int]]:
        """Return ``(request, start, end)`` of all work, lost or not: active at start+1 .. end."""
        kept = [
            (i, start, start + self.instance.requests[i].output)
            for i, start in enumerate(self.starts)
            if start is not None
        ]
        return [(piece.request, piece.start, piece.end) for piece in self.lost] + kept

    def _overlaps(self) -> list[str]:
        found = []
        evicted = {piece.request for piece in self.lost}  # others run once
        several = sorted(piece for piece in self.pieces() if piece[0] in evicted)
        for i, pieces in groupby(several, itemgetter(0)):
            ends = -1
            for _, start, end in pieces:
                if start < ends:
                    found.append(f"request {self.instance.requests[i].id!r} runs twice at {ends}")
                ends = end
        return found
