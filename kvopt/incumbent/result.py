"""Result of a search: why it stopped and its findings are separate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kvopt.errors import InvalidInput
from kvopt.files.reading import without_nulls
from kvopt.incumbent.certificate import Certificate
from kvopt.incumbent.in_time import InTime
from kvopt.incumbent.proofs import CheckedBound
from kvopt.problem.clocks import ROUNDS, Clock
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.show.dataframes import frame
from kvopt.show.summary import Facts, Summarised, relative_gap, share
from kvopt.timetable.eager_schedule import eager_sentence
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.work_intervals import Segments

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


class Status(StrEnum):
    """Status of the objective."""

    OPTIMAL = "optimal"
    """A checked schedule meets the lower bound."""
    FEASIBLE = "feasible"
    """A checked schedule, and perhaps a bound below it."""
    UNKNOWN = "unknown"
    """No schedule was found within the limits."""
    INFEASIBLE = "infeasible"
    """No schedule exists; every valid instance has one."""


class StopReason(StrEnum):
    """Why the search ended."""

    PROVED = "proved"
    TIME_LIMIT = "time-limit"
    INTERRUPTED = "interrupted"
    GAP = "gap"
    """The caller's stop criterion was met."""
    NO_ENGINE = "no-engine"
    """Every engine that can take the instance ended without a proof."""


class BoundSource(StrEnum):
    """Source of a lower bound."""

    CHECKED = "checked"
    """Re-evaluated in integers from the instance alone."""
    SOLVER = "solver"
    """A claim of an exhaustive solver, cross-checked against the schedule only."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Both sides of a running search."""

    objective: int | None
    lower_bound: int | None
    seconds: float
    engine: str

    @property
    def gap(self) -> float | None:
        """``(objective - bound) / objective``, None while a side is unknown."""
        return relative_gap(self.objective, self.lower_bound)


@dataclass(frozen=True, slots=True)
class StageLog:
    """Work of a stage of the plan, in all parts of an instance.

    Parameters
    ----------
    name
        Name of the stage.
    seconds
        How long it ran.
    fell, rose
        Decrease of total latency, and increase of the bound, meanwhile.
    is_first
        Whether it brought the first schedule.
    """

    name: str
    seconds: float = 0.0
    fell: int = 0
    rose: int = 0
    is_first: bool = False

    def __str__(self) -> str:
        brought = ["the first schedule"] if self.is_first else []
        pairs = ("latency fell", self.fell), ("bound rose", self.rose)
        brought += [f"{what} by {amount:,}" for what, amount in pairs if amount]
        return f"{self.name}: {self.seconds:.2f} s, {', '.join(brought) or 'nothing new'}"

    def plus(self, other: StageLog) -> StageLog:
        """Return the sum of both."""
        sums = self.seconds + other.seconds, self.fell + other.fell, self.rose + other.rose
        return StageLog(self.name, *sums, self.is_first or other.is_first)


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The best settings of a server so far, by simulation.

    Parameters
    ----------
    policy, router
        Policy with its limits, and the router of a fleet.
    flags
        Options of ``vllm serve`` for these limits, None if it has none.
    objective
        Total latency.
    """

    policy: str
    router: str | None
    flags: str | None
    objective: int

    def to_json(self, instance: Instance, clock: Clock) -> dict[str, Any]:
        """Return the object that results hold; its mean is the total over the weights."""
        mean = self.objective / (instance.total_weight * clock.scale)
        policy = without_nulls({"policy": self.policy, "router": self.router})
        return {**policy, "vllm": self.flags, "mean_seconds": mean}


@dataclass(frozen=True, repr=False)
class SolveResult(Summarised):
    """The best checked schedule and the best bound of a search.

    Totals are those of the clock: rounds, or nanoseconds.

    Parameters
    ----------
    problem
        The problem: instance, clock, scope and service level.
    status, stop_reason
        Whether the result is optimal, and why the search ended.
    schedule
        Best schedule, checked in integers; None when none was found.
    lower_bound
        No schedule has a smaller total latency; None when unknown.
    bound_source
        Kind of the bound; None when it is unknown.
    engine
        The requested engine.
    found_by, bounded_by
        Sources of schedule and bound.
    seconds, build_seconds, solve_seconds
        Wall time in all, in building models, and inside solvers.
    signal_number
        The signal that interrupted the search, if any.
    checked
        The best bound that was re-evaluated in integers, with its proof.
    seed, threads, versions
        Parameters of the search.
    faults
        Claims of a solver that an exact check refuted; they were not used.
    notes
        Remarks on how the result was found.
    stages
        Stages of the plan that ran, with their times and gains.
    in_time
        Bounds on the number of requests that attain a service level, if one was given.
    settings
        In seconds the best settings of a server: of all, of those that ``vllm serve`` has options
        for, and of these without knowledge of outputs.  Simulated, not proved.
    eager
        As of `Certificate`.
    """

    problem: Problem
    status: Status
    stop_reason: StopReason
    schedule: Schedule | None
    lower_bound: int | None
    bound_source: BoundSource | None
    engine: str
    found_by: str | None
    bounded_by: str | None
    seconds: float
    build_seconds: float
    solve_seconds: float
    seed: int
    threads: int
    versions: dict[str, str] = field(default_factory=dict)
    signal_number: int | None = None
    checked: CheckedBound | None = None
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stages: tuple[StageLog, ...] = ()
    in_time: InTime | None = None
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    eager: int | None = None

    @property
    def instance(self) -> Instance:
        """The instance of the problem."""
        return self.problem.instance

    @property
    def clock(self) -> Clock:
        """The clock of the problem."""
        return self.problem.clock

    @property
    def scope(self) -> Scope:
        """The scope of the problem."""
        return self.problem.scope

    @property
    def objective(self) -> int | None:
        """Total latency of the schedule."""
        return None if self.schedule is None else self.schedule.objective

    @property
    def starts(self) -> Sequence[int] | None:
        """Start rounds in instance order, None if a request pauses."""
        return None if self.schedule is None or self.schedule.pauses else self.schedule.starts

    @property
    def workers(self) -> Sequence[int] | None:
        """Workers of the requests of a fleet."""
        return None if self.schedule is None else self.schedule.workers

    @property
    def segments(self) -> Segments | None:
        """First and last times of tokens in a row, if requests may pause."""
        has_pauses = self.clock.is_even and self.scope.covers(Scope.PAUSES)
        paused = self.schedule if has_pauses else None
        return None if paused is None else paused.spans

    @property
    def gap(self) -> float | None:
        """``(objective - bound) / objective``, None while a side is unknown."""
        return relative_gap(self.objective, self.lower_bound)

    @property
    def eager_sentence(self) -> str | None:
        """Sentence on the one eager schedule, None unless there is exactly one."""
        return (
            None if self.eager is None else eager_sentence(self.eager, self.instance.total_weight)
        )

    @property
    def footnote(self) -> str:  # type: ignore[override]
        """Sentence about the schedules that the answer covers."""
        return self.scope.sentence

    def facts(self) -> Facts:
        """Return the facts of a summary."""
        found_by = None if self.found_by is None else f"found by {self.found_by}"
        source = None if self.bounded_by is None else f"{self.bounded_by}, {self.bound_source}"
        return {
            "status": self.status,
            "total latency": worded_total(self.objective, self.clock),
            "schedule": found_by,
            "lower bound": worded_total(self.lower_bound, self.clock),
            "bound by": source,
            "gap": share(self.gap),
            "stopped": self.stop_reason,
            "seconds": round(self.seconds, 2),
            "in time": self.in_time and self.in_time.sentence,
            "settings": self.settings["all"]["policy"] if self.settings else None,
            "eager": self.eager_sentence,
            "faults": "; ".join(self.faults) or None,
            "notes": "; ".join(self.notes) or None,
        }

    def certificate(self) -> Certificate:
        """Return the certificate of a result: the schedule, and the bound with its proof.

        A bound that is a claim of a solver is omitted, with a note:
        ``solve(..., checkable=True)`` looks for one that `verify` can repeat.

        Examples
        --------
        >>> from kvopt import Instance, Request, solve
        >>> instance = Instance(memory=7, requests=[Request(0, 1, o) for o in (1, 2, 3, 4)])
        >>> found = solve(instance, checkable=True).certificate()
        >>> found.objective, found.lower_bound
        (12, 12)
        """
        clock, lower, notes, stopped = self.clock, self.checked, [*self.notes], self.stop_reason
        claim = self.lower_bound
        if claim is not None and (lower is None or claim > lower.value):
            notes.append(
                f"{self.bounded_by} claims that no schedule is below {claim:,}{clock.unit}; a "
                "solver's word is no proof, so the certificate does not claim it"
            )
            stopped = StopReason.NO_ENGINE if stopped is StopReason.PROVED else stopped
        provenance: dict[str, Any] = {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": None,
            "versions": dict(self.versions),
            "seed": self.seed,
            "threads": self.threads,
            "time_limit": None,
            "seconds": round(self.seconds, 3),
            "stop_reason": str(stopped),
            "found_by": self.found_by,
            "bounded_by": None if lower is None else lower.bounded_by,
        }
        if (levels := self.in_time) is not None:
            by = None if levels.best is None else levels.best.policy
            provenance |= {"slo": str(levels.slo), "attained_by": by}
        if self.settings:
            provenance["settings"] = self.settings
        if not clock.is_even:
            del provenance["bounded_by"]
            if stopped is not StopReason.INTERRUPTED:
                del provenance["stop_reason"]
        return Certificate(
            instance=self.instance,
            upper=self.schedule,
            lower=lower,
            provenance=provenance,
            notes=(*self.faults, *notes),
            signal_number=self.signal_number,
            clock=clock,
            scope=self.scope,
            in_time=levels,
            eager=self.eager,
        )

    def to_dataframe(self) -> DataFrame:
        """Return one row, as a DataFrame of pandas, so that `pandas.concat` joins results.

        The requests are those of ``schedule.to_dataframe()``.
        """
        unit = self.clock.suffix
        row = {
            "instance": self.instance.name,
            "requests": len(self.instance),
            "memory": self.instance.memory,
            "status": str(self.status),
            f"objective{unit}": self.objective,
            f"lower_bound{unit}": self.lower_bound,
            "gap": self.gap,
            "bound_source": None if self.bound_source is None else str(self.bound_source),
            "found_by": self.found_by,
            "bounded_by": self.bounded_by,
            "stop_reason": str(self.stop_reason),
            "seconds": self.seconds,
        }
        return frame({name: [value] for name, value in row.items()})

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the schedule, see `Schedule.plot`, with its bound."""
        if self.schedule is None:
            raise InvalidInput("has found none, so there is nothing to draw", field="schedule")
        from kvopt.show.plots import plot_schedule

        bound = None if self.lower_bound is None else f"at least {self.lower_bound:,}"
        side = "proved optimal" if self.status is Status.OPTIMAL else bound
        return plot_schedule(self.schedule, ax=ax, subtitle=side)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt solve --json`` prints."""
        is_fleet = self.schedule is not None and self.problem.is_fleet
        fleet = {"workers": list(self.workers or ())} if is_fleet else {}
        return {
            "status": str(self.status),
            **self._totals(),
            "starts": None if self.starts is None else list(self.starts),
            **fleet,
            "engine": self.engine,
            "stop_reason": str(self.stop_reason),
            "seconds": round(self.seconds, 6),
            "bound_source": None if self.bound_source is None else str(self.bound_source),
            "gap": self.gap,
            "found_by": self.found_by,
            "bounded_by": self.bounded_by,
            "build_seconds": round(self.build_seconds, 6),
            "solve_seconds": round(self.solve_seconds, 6),
            "seed": self.seed,
            "threads": self.threads,
            "versions": dict(self.versions),
            "faults": list(self.faults),
            "notes": list(self.notes),
            "scope": str(self.scope),
            **without_nulls({"segments": self.segments}),
            **({} if self.in_time is None else self.in_time.to_json()),
            **without_nulls({"settings": self.settings or None, "eager_ns": self.eager}),
        }

    def _totals(self) -> dict[str, Any]:
        """Return both sides for JSON; on a clock of seconds also in seconds, with start times."""
        objective, bound, scale = self.objective, self.lower_bound, self.clock.scale
        if self.clock.is_even:
            return {"objective": objective, "lower_bound": bound}
        times = None if self.schedule is None else self.schedule.start_times
        return {
            "objective_seconds": None if objective is None else objective / scale,
            "lower_bound_seconds": None if bound is None else bound / scale,
            "objective_ns": objective,
            "lower_bound_ns": bound,
            "starts_seconds": None if times is None else [time / scale for time in times],
        }


@dataclass(frozen=True, repr=False)
class BoundResult(Summarised):
    """A lower bound on total latency, proved in integers; ``value`` is None if unknown.

    ``value`` is in rounds, or in nanoseconds on such a clock.  ``seconds`` is wall time;
    ``scope`` names the schedules that it covers; ``in_time`` has the ceiling of a service level.
    """

    method: str
    value: int | None
    seconds: float
    note: str | None = None
    signal_number: int | None = None
    checked: CheckedBound | None = None
    scope: Scope = Scope.RUNS
    clock: Clock = ROUNDS
    in_time: InTime | None = None

    @property
    def footnote(self) -> str:  # type: ignore[override]
        """Scope of the bound."""
        return self.scope.sentence

    def facts(self) -> Facts:
        """Return the facts of a summary."""
        value = worded_total(self.value, self.clock)
        return {
            "method": self.method,
            "lower bound": "unknown" if value is None else value,
            "proved by": None if self.checked is None else self.checked.bounded_by,
            "seconds": round(self.seconds, 2),
            "in time": self.in_time and self.in_time.sentence,
            "note": self.note,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt bound --json`` prints."""
        return {
            "method": self.method,
            "scope": str(self.scope),
            f"value{self.clock.suffix}": self.value,
            "seconds": round(self.seconds, 6),
            "note": self.note,
            **({} if self.in_time is None else self.in_time.to_json()),
        }


def worded_total(total: int | None, clock: Clock) -> int | str | None:
    """Return a total in words, in seconds if the clock is."""
    if total is None or clock.is_even:
        return total
    return f"{total / clock.scale:,.6g} seconds"
