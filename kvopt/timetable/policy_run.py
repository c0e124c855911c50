"""Runs of policies: a schedule with its policy, outcome and time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from math import isnan, nan
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.show.summary import Facts, counted, worded
from kvopt.timetable.schedule import Schedule

if TYPE_CHECKING:
    from kvopt.show.plots.timeline import Timeline


class Outcome(StrEnum):
    """Outcome of a run."""

    COMPLETED = "completed"
    """Every request finished."""
    LIVELOCK = "livelock"
    """It would continue for ever without completing the other requests."""
    UNFINISHED = "unfinished"
    """Time ran out before its end."""


@dataclass(frozen=True, repr=False)
class PolicyRun(Schedule):
    """The run of a policy on an instance: a schedule and its maker.

    The start of an unfinished request is None, and so is the worker of one that never started.

    Parameters
    ----------
    policy
        The policy and its parameters, as given.
    wall_seconds
        Wall time of the simulation, without compilation; NaN for a run from a file.
    note
        Remarks for the reader: the source of a plan, the begin of a loop.
    router
        The router of a fleet, as given.
    ended
        Outcome of a run whose work is unknown.
    """

    _: KW_ONLY
    policy: str
    wall_seconds: float = field(default=nan, compare=False)
    note: str | None = None
    router: str | None = None
    ended: Outcome | None = None

    _or_else: ClassVar[type] = NoneType

    @classmethod
    def of(cls, schedule: Schedule, policy: str, **more: Any) -> Self:
        """Return a schedule as a run of a policy."""
        return cls(**_columns(schedule), policy=policy, **more)

    @classmethod
    def unknown(cls, instance: Instance, policy: str, ended: Outcome, clock: Clock) -> Self:
        """Return a run without known work."""
        nothing = (None,) * len(instance)
        return cls(instance, nothing, nothing, clock=clock, policy=policy, ended=ended)

    @cached_property
    def is_complete(self) -> bool:
        """Whether every request finished."""
        return self.ended is None and None not in self.starts

    @property
    def outcome(self) -> Outcome:
        """Outcome of the run."""
        return self.ended or (Outcome.COMPLETED if self.is_complete else Outcome.LIVELOCK)

    @property
    def evictions(self) -> int | Any:
        """Number of evictions, None if unknown."""
        return None if self.ended else len(self.lost)

    @property
    def completed(self) -> int:
        """Requests that finished."""
        return sum(start is not None for start in self.starts)

    @cached_property
    def schedule(self) -> Schedule | None:
        """The kept work, None if a request did not finish.

        In rounds it excludes evicted work and pieces of prompts, so it may hold less memory than
        the run.
        """
        if not self.is_complete:
            return None
        if self.clock.is_even:
            return Schedule(self.instance, self.starts, self.workers, self.segments)
        return Schedule(**_columns(self))

    def facts(self) -> Facts:
        """Return the facts of a summary."""
        return {
            "policy": self.policy,
            "outcome": self.outcome,
            "completed": f"{self.completed:,} of {len(self.starts):,}",
            **super().facts(),
            **dict.fromkeys(("requests", "feasible", "violations")),
            "evictions": self.evictions,
            "router": self.router,
            "note": self.note,
        }

    def timeline(self) -> Timeline:
        """Return the run as plain numbers for pictures, with times of users."""
        caption = f"{self.outcome}, {self.completed:,} of {len(self.starts):,} finished"
        if self.objective is not None:
            latency, unit = self.measures()["latency"], "" if self.clock.is_even else " s"
            waited = [f"{share} {worded(latency[share])}{unit}" for share in ("mean", "p99")]
            counts = {"eviction": self.evictions, "pause": self.pauses}
            waited += [counted(n, one) for one, n in counts.items() if n > 0]
            caption = f"latency {', '.join(waited)}"
        return replace(super().timeline(), label=self.policy, remark=caption)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt run --json`` prints for this policy."""
        even, scale = self.clock.is_even, self.clock.scale
        unit = "" if even else "_seconds"

        def in_unit(time: int | None) -> float | None:
            return time if even or time is None else time / scale

        row = {
            "policy": self.policy,
            f"objective{unit}": in_unit(self.objective),
            f"starts{unit}": list(map(in_unit, self.start_times)),
            "evictions": self.evictions,
            "outcome": str(self.outcome),
            f"makespan{unit}": in_unit(self.makespan),
            "peak_memory": self.peak_memory,
            **self.measures(),
        }
        if not even:
            row |= {
                "completed": self.completed,
                "tokens_per_second": self.throughput,
                "busy_seconds": in_unit(self.busy),
                "rounds": self.rounds,
            }
        if self.segments:
            row["pauses"] = self.pauses
            if even:
                row["segments"] = self.segments
        wall = None if isnan(self.wall_seconds) else round(self.wall_seconds, 6)
        fleet = {"router": self.router, "workers": list(self.workers)}
        more = fleet if self.instance.workers > 1 else {}
        return {**row, "seconds": wall, "note": self.note, **more}


def _columns(schedule: Schedule) -> dict[str, Any]:
    """Return the schedule of a run, without the policy."""
    return {item.name: getattr(schedule, item.name) for item in fields(Schedule)}
