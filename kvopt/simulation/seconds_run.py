"""What a policy did in continuous time, and its check in integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

from kvopt.model.batch_time import NANOSECONDS, BatchTime
from kvopt.model.instance import Instance
from kvopt.simulation.runs import Lost, Outcome, PolicyRun
from kvopt.simulation.seconds_timeline import Stretch, stretches


@dataclass(frozen=True)
class SecondsRun:
    """A run on the clock of a batch-time model.

    Rounds are numbered as the server worked; times are nanoseconds.  What is not known
    because a request never finished is None.

    Parameters
    ----------
    instance, policy, batch_time
        The problem, the policy as it was given, how long rounds last.
    arrivals_ns
        When each request arrived.
    starts
        Round of the last start of each request.
    lost
        Work that evictions threw away, in rounds.
    resumed
        Rounds at which an idle server began to work, and when that was.
    outcome
        Whether every request finished.
    seconds
        Wall time of the simulation.
    note
        What a reader should know.
    """

    instance: Instance
    policy: str
    batch_time: BatchTime
    arrivals_ns: tuple[int, ...]
    starts: tuple[int | None, ...]
    lost: tuple[Lost, ...]
    resumed: dict[int, int]
    outcome: Outcome
    seconds: float
    note: str | None = None

    @property
    def evictions(self) -> int:
        """Number of evictions."""
        return len(self.lost)

    @property
    def completed(self) -> int:
        """Requests that finished."""
        return sum(start is not None for start in self.starts)

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """What the server did, in order."""
        found = stretches(self.instance, self.batch_time, self.rounds_run.pieces(), self.resumed)
        return tuple(found)

    @cached_property
    def rounds_run(self) -> PolicyRun:
        """The same run counted in rounds, with every arrival at 0."""
        return PolicyRun(
            Instance(self.instance.memory, [replace(r, arrival=0) for r in self.instance]),
            self.policy,
            self.starts,
            self.lost,
            self.outcome,
            self.seconds,
        )

    @cached_property
    def starts_ns(self) -> tuple[int | None, ...]:
        """When each request started for the last time."""
        began = {stretch.round: stretch.began_ns for stretch in self.stretches}
        return tuple(None if k is None else began[k] for k in self.starts)

    @cached_property
    def first_tokens_ns(self) -> tuple[int | None, ...]:
        """When the round that produced each request's first token ended.

        Of a request that was evicted it is the first token that was not lost.
        """
        first = {stretch.round: stretch.first_ns for stretch in self.stretches}
        return tuple(None if k is None else first[k] for k in self.starts)

    @cached_property
    def completions_ns(self) -> tuple[int | None, ...]:
        """When each request finished."""
        ended = {stretch.round + stretch.rounds: stretch.ended_ns for stretch in self.stretches}
        return tuple(
            None if k is None else ended[k + r.output]
            for k, r in zip(self.starts, self.instance, strict=True)
        )

    @cached_property
    def objective_ns(self) -> int | None:
        """Total latency, None when something never finished."""
        latencies = self.latencies_ns
        return sum(latencies) if len(latencies) == len(self.starts) else None

    @property
    def latencies_ns(self) -> list[int]:
        """Completion minus arrival of what finished, in instance order."""
        return self._since_arrival(self.completions_ns)

    @property
    def times_to_first_token_ns(self) -> list[int]:
        """First token minus arrival of what finished, in instance order."""
        return self._since_arrival(self.first_tokens_ns)

    @cached_property
    def makespan_ns(self) -> int:
        """When the last request finished."""
        return max((c for c in self.completions_ns if c is not None), default=0)

    @property
    def busy_ns(self) -> int:
        """How long the server worked."""
        return sum(stretch.ended_ns - stretch.began_ns for stretch in self.stretches)

    @property
    def rounds(self) -> int:
        """Rounds in which something was active."""
        return sum(stretch.rounds for stretch in self.stretches)

    @property
    def peak_memory(self) -> int:
        """Most tokens held at one time."""
        return max((stretch.held_last for stretch in self.stretches), default=0)

    @property
    def tokens_per_second(self) -> float | None:
        """Output tokens of what finished over the time to the last completion."""
        tokens = sum(
            r.output for r, k in zip(self.instance, self.starts, strict=True) if k is not None
        )
        return tokens * NANOSECONDS / self.makespan_ns if self.makespan_ns else None

    def memory_over_time(self) -> tuple[list[float], list[int]]:
        """Return seconds and the tokens held, for a picture with straight lines between."""
        times, held, ended = [0.0], [0], 0
        for stretch in self.stretches:
            if stretch.began_ns > ended:  # the server was idle and held nothing
                times += [ended / NANOSECONDS, stretch.began_ns / NANOSECONDS]
                held += [0, 0]
            times += [stretch.first_ns / NANOSECONDS, stretch.ended_ns / NANOSECONDS]
            held += [stretch.held, stretch.held_last]
            ended = stretch.ended_ns
        return times, held

    def violations(self) -> list[str]:
        """Return what breaks the rules, counted again in integers; empty if nothing."""
        found = self.rounds_run.violations()
        for request, arrival, start in zip(
            self.instance, self.arrivals_ns, self.starts_ns, strict=True
        ):
            if start is not None and start < arrival:
                found.append(f"request {request.id!r} starts at {start} ns, before its arrival")
        ended = 0
        for stretch in self.stretches:
            if stretch.began_ns < ended:
                found.append(f"round {stretch.round} begins before the one before it ends")
            ended = stretch.ended_ns
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt run --seconds --json`` prints for this policy."""
        return {
            "policy": self.policy,
            "objective_seconds": _seconds(self.objective_ns),
            "outcome": str(self.outcome),
            "completed": self.completed,
            "latency": summary(self.latencies_ns),
            "time_to_first_token": summary(self.times_to_first_token_ns),
            "tokens_per_second": self.tokens_per_second,
            "makespan_seconds": _seconds(self.makespan_ns),
            "busy_seconds": _seconds(self.busy_ns),
            "rounds": self.rounds,
            "evictions": self.evictions,
            "peak_memory": self.peak_memory,
            "starts_seconds": [_seconds(start) for start in self.starts_ns],
            "seconds": round(self.seconds, 6),
            "note": self.note,
        }

    def _since_arrival(self, times: Sequence[int | None]) -> list[int]:
        pairs = zip(times, self.arrivals_ns, strict=True)
        return [time - arrival for time, arrival in pairs if time is not None]


def summary(nanoseconds: list[int]) -> dict[str, float | None]:
    """Return mean, median and 99th percentile in seconds, None for nothing.

    A percentile is the smallest value that so large a share of the values does not exceed.
    """
    if not nanoseconds:
        return {"mean": None, "median": None, "p99": None}
    ranked = sorted(nanoseconds)
    return {
        "mean": sum(ranked) / len(ranked) / NANOSECONDS,
        "median": _seconds(_percentile(ranked, 50)),
        "p99": _seconds(_percentile(ranked, 99)),
    }


def _percentile(ranked: list[int], percent: int) -> int:
    return ranked[ceil(len(ranked) * percent / 100) - 1]


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / NANOSECONDS
