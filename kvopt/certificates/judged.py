"""What a policy did, as far as a certificate keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.timetable.measures import Measures
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.work import Chunks, Lost, Segments

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
    workers
        Of a fleet the worker of each request.
    """

    policy: str
    outcome: str
    value: int | None = None
    starts: Sequence[int] = ()
    lost: Sequence[Lost] | None = ()
    resumed: Sequence[Mapping[int, int]] = ()
    waited: Measures | None = field(default=None, compare=False, repr=False)
    segments: Segments = ()
    chunks: Sequence[Chunks] = ()
    scope: Scope = Scope.RUNS
    workers: Sequence[int] = ()

    @classmethod
    def of(cls, run: PolicyRun) -> Self:
        """Return what is kept of a run: of one that never ended, no starts."""
        starts = run.starts if run.is_complete else ()
        made = cls(run.policy, str(run.outcome), run.objective, starts, run.lost, run.resumed)
        if not Scope.RESTARTS.covers(run.scope):
            chunks = () if run.clock.is_even else run.chunks
            made = replace(made, segments=run.segments, chunks=chunks)
        if run.is_complete and run.instance.workers > 1:
            made = replace(made, workers=run.workers)
        return replace(made, scope=run.scope)

    @property
    def evictions(self) -> int | None:
        """Number of evictions, None if unknown."""
        return None if self.lost is None or self.outcome == UNFINISHED else len(self.lost)

    def on(self, instance: Instance, clock: Clock) -> PolicyRun | None:
        """Return the run in full, None of one that never ended: nothing is kept of it."""
        if self.value is None:
            return None
        return PolicyRun(
            instance, self.starts, self.workers, self.segments, clock=clock, chunks=self.chunks,
            lost=self.lost or (), resumed=self.resumed, policy=self.policy,
        )  # fmt: skip
