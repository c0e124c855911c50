"""What a policy did, as far as a certificate keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import nan
from typing import Self

from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.timetable.fleet_runs import FleetRun
from kvopt.timetable.measures import Measures
from kvopt.timetable.paused_runs import PausedRun
from kvopt.timetable.pausing import Segment
from kvopt.timetable.runs import Chunks, Lost, Outcome, PolicyRun

UNFINISHED = "unfinished"
"""Outcome of a policy that did not come to an end."""


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """What a policy, or another source, did with the instance.

    Parameters
    ----------
    policy
        The policy and its parameters, as they were given.
    outcome
        ``completed``, ``livelock``, or ``unfinished`` when time ran out.
    value
        Total latency on the clock of the certificate; None unless completed.
    starts, lost
        Round of the last start of each request, and the work that evictions threw away; None
        where a file does not say.
    resumed
        As in `PolicyRun`.
    waited
        What its users waited, where that was counted before.
    segments, chunks
        As in `PolicyRun`; empty where the starts say it all.
    scope
        What it made use of.
    workers, resumed_by_worker
        Of a fleet the worker of each request, and ``resumed`` of each worker.
    """

    policy: str
    outcome: str
    value: int | None = None
    starts: tuple[int, ...] = ()
    lost: tuple[Lost, ...] | None = ()
    resumed: Mapping[int, int] = field(default_factory=dict)
    waited: Measures | None = field(default=None, compare=False, repr=False)
    segments: tuple[tuple[Segment, ...], ...] = ()
    chunks: tuple[Chunks, ...] = ()
    scope: Scope = Scope.RUNS
    workers: tuple[int, ...] = ()
    resumed_by_worker: Mapping[int, Mapping[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, run: PolicyRun) -> Self:
        """Return what is kept of a run: of one that never ended, no starts."""
        starts = tuple(start for start in run.starts if start is not None)
        if run.objective is None:
            starts = ()
        made = cls(run.policy, str(run.outcome), run.objective, starts, run.lost, run.resumed)
        if not Scope.RESTARTS.covers(run.scope):
            chunks = () if run.clock.is_even else run.chunks
            made = replace(made, segments=run.segments, chunks=chunks)
        if isinstance(run, FleetRun) and run.objective is not None:
            workers = tuple(worker for worker in run.workers if worker is not None)
            resumed = {number: part.resumed for number, part in enumerate(run.parts)}
            made = replace(made, workers=workers, resumed_by_worker=resumed)
        return replace(made, scope=run.scope)

    @property
    def evictions(self) -> int | None:
        """Number of evictions, None if unknown."""
        return None if self.lost is None or self.outcome == UNFINISHED else len(self.lost)

    def on(self, instance: Instance, clock: Clock) -> PolicyRun | None:
        """Return the run in full, None of one that never ended: nothing is kept of it."""
        if self.value is None:
            return None
        said = (instance, self.policy, self.starts, self.lost or (), Outcome(self.outcome), nan)
        kind = PausedRun if self.segments else PolicyRun
        run = kind(*said, None, clock, self.resumed, self.segments, self.chunks)
        if instance.workers == 1:
            return run
        return FleetRun.of(run, self.workers, self.resumed_by_worker)
