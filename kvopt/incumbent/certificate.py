"""Content of a certificate: both sides of an optimum, and runs compared with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from kvopt.files.reading import without_nulls
from kvopt.incumbent.in_time import InTime
from kvopt.incumbent.proofs import CheckedBound
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.clocks import ROUNDS, Clock
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.show.dataframes import frame
from kvopt.show.summary import (
    UNDECIDED,
    Facts,
    Summarised,
    exact_ratio,
    far_apart,
    ratio,
    relative_gap,
    rounded,
    share,
)
from kvopt.timetable.eager_schedule import eager_sentence
from kvopt.timetable.policy_run import Outcome, PolicyRun
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.waiting_times import MEASURES, Measures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class Optimum:
    """Both sides of the optimum among the schedules of a scope.

    Parameters
    ----------
    scope
        Schedules that the bound covers, and that the best schedule may use.
    upper
        Best schedule known, checked in integers; on a clock of seconds the best run.
    lower
        Best bound with a proof.
    """

    scope: Scope
    upper: Schedule | None
    lower: CheckedBound | None

    @property
    def ends(self) -> tuple[int | None, int | None]:
        """Total latency of the schedule, and the bound."""
        upper, lower = self.upper, self.lower
        return None if upper is None else upper.objective, None if lower is None else lower.value


@dataclass(frozen=True, slots=True)
class MachineTime:
    """A lower bound on the time that all machines are on, and what proves it.

    Parameters
    ----------
    value
        The bound, in units of the clock.
    every, misses
        Length of the windows, and how many requests that arrive in each of them may miss, from the
        window of the first arrival on.
    lines
        Positions of the lines of the batch-time model that count.
    relaxations
        Names of the steps to the wider problem that the proof is about.
    """

    value: int
    every: int
    misses: tuple[int, ...]
    lines: tuple[int, ...] = ()
    relaxations: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Certificate(Summarised):
    """An instance, both sides of its optimum, and runs to compare with them.

    Parameters
    ----------
    instance
        The problem.
    upper
        Best schedule known, checked in integers; on a clock of seconds the best run.
    lower
        Best bound with a proof.
    runs
        Policies and the given schedule.
    provenance
        Origin of the certificate: versions, seed, command, times.
    notes
        Remarks for the reader.
    signal_number
        The signal that interrupted the work, if any; policies that had not run by then
        are unfinished.
    clock
        Length of rounds, and so the unit of totals: rounds, or nanoseconds.
    scope
        Schedules that the lower bound covers, and that the best schedule may use.
    narrower
        The same of narrower scopes, the narrowest first: a run is compared with the first that
        covers it.
    in_time
        Bounds on the number of requests that attain a service level, if one was given.
    eager
        Total latency of the one eager schedule of whole prompts, None unless there is exactly one
        (`kvopt.timetable.eager_schedule`).
    machine_time
        A lower bound on the time that machines are on, if one was asked for.
    """

    instance: Instance
    upper: Schedule | None
    lower: CheckedBound | None
    runs: tuple[PolicyRun, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    signal_number: int | None = None
    clock: Clock = ROUNDS
    scope: Scope = Scope.RUNS
    narrower: tuple[Optimum, ...] = ()
    in_time: InTime | None = None
    eager: int | None = None
    machine_time: MachineTime | None = None

    @property
    def whole(self) -> Optimum:
        """Bound and best schedule among all schedules of the scope."""
        return Optimum(self.scope, self.upper, self.lower)

    def optimum_of(self, run: PolicyRun) -> Optimum | None:
        """Return the sides of the narrowest scope that covers a run, None if none does."""
        sides = (*self.narrower, self.whole)
        return next((optimum for optimum in sides if optimum.scope.covers(run.scope)), None)

    @property
    def objective(self) -> int | None:
        """Total latency of the best schedule."""
        return None if self.upper is None else self.upper.objective

    @property
    def lower_bound(self) -> int | None:
        """No schedule has a smaller total latency."""
        return None if self.lower is None else self.lower.value

    @property
    def gap(self) -> float | None:
        """``(objective - bound) / objective``, None while a side is unknown."""
        return relative_gap(self.objective, self.lower_bound)

    @property
    def undecided(self) -> str | None:
        """Text about a wide gap between the sides."""
        apart = far_apart(self.gap)
        return apart and f"{apart}: {UNDECIDED}"

    @property
    def eager_sentence(self) -> str | None:
        """Sentence on the one eager schedule, None unless there is exactly one."""
        return (
            None if self.eager is None else eager_sentence(self.eager, self.instance.total_weight)
        )

    def ratio(self, run: PolicyRun) -> tuple[float | None, float | None]:
        """Return the interval ``[value / upper, value / lower]`` that holds value / optimum.

        An end is None while it is unknown, or if its bound is 0; both are None if the run is
        outside the scope.
        """
        upper, lower = self._ends(run)
        return ratio(run.objective, upper), ratio(run.objective, lower)

    def _ends(self, run: PolicyRun) -> tuple[int | None, int | None]:
        """Return the bounds with which a run is compared."""
        sides = self.optimum_of(run)
        return (None, None) if sides is None else sides.ends

    def measures(self, run: PolicyRun) -> Measures | None:
        """Return the times of users of a run, as `PolicyRun.measures`, None if it never ended."""
        return run.measures() if run.is_complete else None

    def worded_ratio(self, run: PolicyRun) -> tuple[str, str]:
        """Return the ends of that interval in words, rounded outward."""
        low, high = (exact_ratio(run.objective, end) for end in self._ends(run))
        return rounded(low, up=False), rounded(high, up=True)

    @property
    def footnote(self) -> str:  # type: ignore[override]
        """Sentence about the schedules that the bounds cover."""
        return "\n".join(optimum.scope.sentence for optimum in (*self.narrower, self.whole))

    def facts(self) -> Facts:
        """Return the facts of a summary: both sides, and the ratio of each run."""
        unit = "" if self.clock.is_even else ", ns"
        rows: dict[str, object] = {
            "instance": self.instance.name,
            "requests": len(self.instance),
            f"total latency{unit}": "unknown" if self.objective is None else self.objective,
            f"lower bound{unit}": "unknown" if self.lower_bound is None else self.lower_bound,
            "gap": share(self.gap),
        }
        for run in self.runs:
            compared = "{} to {} times the optimum".format(*self.worded_ratio(run))
            if not self.scope.covers(run.scope):
                compared = f"{run.scope}, which the bound does not cover"
            rows[run.policy] = run.outcome if run.objective is None else compared
        return {
            **rows,
            "undecided": self.undecided,
            "in time": self.in_time and self.in_time.sentence,
            "eager": self.eager_sentence,
            "machine time": self.machine_time and self.machine_time.value,
            "notes": "; ".join(self.notes) or None,
        }

    def to_dataframe(self) -> DataFrame:
        """Return a row for each policy, as a DataFrame of pandas.

        ``at_least`` and ``at_most`` are multiples of the optimum.  Times are in rounds, or in
        seconds on such a clock.
        """
        scale = self.clock.scale
        columns: dict[str, list[Any]] = {
            "policy": [run.policy for run in self.runs],
            "outcome": [run.outcome for run in self.runs],
            "value": [
                run.objective if run.objective is None or scale == 1 else run.objective / scale
                for run in self.runs
            ],
            "at_least": [self.ratio(run)[0] for run in self.runs],
            "at_most": [self.ratio(run)[1] for run in self.runs],
            "bound_scope": [
                (sides := self.optimum_of(run)) and str(sides.scope) for run in self.runs
            ],
            "evictions": [run.evictions for run in self.runs],
        }
        if self.in_time is not None:
            columns["attained"] = list(self.attained)
        waited = [self.measures(run) for run in self.runs]
        for name in MEASURES:
            for part in ("mean", "median", "p99"):
                columns[f"{name}_{part}"] = [row and row[name][part] for row in waited]
        return frame(columns)

    def worded_total(self, total: int | None, *, up: bool) -> str:
        """Return a total, in seconds its mean to the microsecond, rounded outward."""
        if total is None or self.clock.is_even:
            return "-" if total is None else f"{total:,}"
        mean = Fraction(total, max(self.instance.total_weight, 1) * NANOSECONDS)
        return rounded(mean, up=up, places=6)

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the intervals of the policies, as multiples of the optimum.

        Parameters
        ----------
        ax
            Axes to draw on; by default a new figure.
        """
        from kvopt.show.plots import Bar, intervals
        from kvopt.show.plots.style import figure_of

        bars = [Bar(run.policy, *self.ratio(run)) for run in self.runs if run.objective is not None]
        return figure_of(intervals(bars, ax))

    @property
    def attained(self) -> Sequence[int | None]:
        """Number of requests of each run that are in time, None without a service level."""
        return [None] * len(self.runs) if self.in_time is None else self.in_time.attained

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt certify --json`` prints: the claims without proofs.

        In seconds, policies that did not finish are listed separately.
        """
        totals, apart = self.clock.suffix, not self.clock.is_even
        judged = [
            {
                "policy": run.policy,
                "outcome": run.outcome,
                f"value{totals}": run.objective,
                "evictions": run.evictions,
                "ratio": list(self.ratio(run)),
                "scope": str(run.scope),
                "bound_scope": (sides := self.optimum_of(run)) and str(sides.scope),
                **(self.measures(run) or dict.fromkeys(MEASURES)),
                **({} if self.in_time is None else {"attained": attained}),
            }
            for run, attained in zip(self.runs, self.attained, strict=True)
            if not (apart and run.outcome is Outcome.UNFINISHED)
        ]
        members = {
            f"upper{totals}": self.objective,
            f"lower{totals}": self.lower_bound,
            "gap": self.gap,
            "scope": str(self.scope),
            **without_nulls({"narrower": [*map(self._sides, self.narrower)] or None}),
            **({} if self.in_time is None else self.in_time.to_json()),
            **without_nulls({"eager_ns": self.eager}),
            "policies": judged,
        }
        if apart:
            members["unfinished"] = [r.policy for r in self.runs if r.outcome is Outcome.UNFINISHED]
        return {**members, "provenance": self.provenance, "notes": list(self.notes)}

    def _sides(self, optimum: Optimum) -> dict[str, Any]:
        """Return both sides of a narrower scope, as they are printed at the top."""
        (upper, lower), totals = optimum.ends, self.clock.suffix
        return {"scope": str(optimum.scope), f"upper{totals}": upper, f"lower{totals}": lower}
