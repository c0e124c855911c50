"""Several runs on one instance, side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvopt.errors import InvalidInput
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Problem, as_problem
from kvopt.problem.scopes import least_scope
from kvopt.show.dataframes import frame
from kvopt.show.summary import Facts, Summarised
from kvopt.simulate.policies.interface import Policy
from kvopt.simulate.run_policy import GivenSchedule, given_schedule, run
from kvopt.timetable.policy_run import PolicyRun
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.waiting_times import MEASURES, waiting_cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class Comparison(Summarised):
    """Runs of policies on one instance and one clock.

    It is a sequence of `PolicyRun`: ``found[0]``, ``len(found)`` and loops work.

    Parameters
    ----------
    runs
        The runs, at least one.
    optimum
        The least total latency of all schedules, if it is known.
    """

    runs: Sequence[PolicyRun]
    optimum: int | None = None

    def __post_init__(self) -> None:
        vars(self)["runs"] = tuple(self.runs)
        if not self.runs:
            raise InvalidInput("must hold at least one run", field="runs")
        for other in self.runs[1:]:
            if other.instance.hash != self.instance.hash or other.clock != self.clock:
                reason = "is of another instance or clock than the first"
                raise InvalidInput(reason, field=f"run of {other.policy}")

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[PolicyRun]:
        return iter(self.runs)

    def __getitem__(self, which: int) -> PolicyRun:
        return self.runs[which]

    @property
    def instance(self) -> Instance:
        """The common instance of the runs."""
        return self.runs[0].instance

    @property
    def clock(self) -> Clock:
        """The clock of the runs."""
        return self.runs[0].clock

    @cached_property
    def best(self) -> int | None:
        """Least total latency of the completed runs, on the clock."""
        return min((ended.objective for ended in self if ended.objective is not None), default=None)

    @property
    def _multiple(self) -> str:
        """Header of the column of multiples."""
        return "times the best of these" if self.optimum is None else "times the optimum"

    def facts(self) -> Facts:
        """Return the facts of a summary."""
        unit, times = "rounds" if self.clock.is_even else "seconds", self._multiple
        cells: dict[str, object] = {"instance": self.instance.name, "requests": len(self.instance)}
        for ended, row in zip(self, self.rows(), strict=True):
            cells[ended.policy] = (
                ended.outcome
                if ended.objective is None
                else f"mean latency {row[self._mean]} {unit}, {row[self._compared]} {times}"
            )
        return cells

    def to_dataframe(self) -> DataFrame:
        """Return a row for each run, as a DataFrame of pandas.

        Times are in rounds, or in seconds on such a clock, and unknown after a livelock.
        """
        columns = defaultdict[str, list[object]](list)
        for ended in self:
            value, scale = ended.objective, self.clock.scale
            times = {
                f"{name}_{share}": number
                for name in MEASURES
                for share, number in ended.measures()[name].items()
            }
            times |= {
                self._multiple.replace(" ", "_"): self._times(value),
                "makespan": ended.makespan / scale,
            }
            total = value if value is None or scale == 1 else value / scale
            row = {
                "policy": ended.policy,
                "outcome": str(ended.outcome),
                "completed": ended.completed,
                "total_latency": total,
                **(dict.fromkeys(times) if value is None else times),
                "evictions": ended.evictions,
                "peak_memory": ended.peak_memory,
            }
            for name, cell in row.items():
                columns[name].append(cell)
        return frame(columns)

    def plot(self) -> Figure:
        """Draw the runs side by side: requests above, memory below, on common axes."""
        from kvopt.show.plots import plot_runs

        return plot_runs(self.runs)

    def _times(self, value: int | None) -> float | None:
        lowest = self.best if self.optimum is None else self.optimum
        return value / lowest if value is not None and lowest else None

    @property
    def _mean(self) -> str:
        return "mean" if self.clock.is_even else "mean s"

    @property
    def _compared(self) -> str:
        return self._multiple.removesuffix(" of these")

    def rows(self) -> list[dict[str, object]]:
        """Return the cells of a table by column, a row for each run.

        Times are empty after a livelock: with only the few requests completed before it, the run
        would look like the best one.
        """
        return [self._row(ended) for ended in self]

    def _row(self, ended: PolicyRun) -> dict[str, object]:
        """Return the cells of a run; a livelock has no times."""
        value, clock, outcome = ended.objective, self.clock, str(ended.outcome)
        if ended.completed < len(self.instance) and not clock.is_even:
            outcome += f"; {ended.completed} of {len(self.instance)} finished"

        def cell(number: float | None, places: int = 3) -> str:
            return "-" if value is None or number is None else f"{number:,.{places}f}"

        measures = ended.measures()
        cells: dict[str, object] = {"policy": ended.policy}
        if clock.is_even:
            cells["latency"] = value
        cells[self._mean] = cell(measures["latency"]["mean"], 2 if clock.is_even else 3)
        if not clock.is_even:
            cells["median s"] = cell(measures["latency"]["median"])
        cells |= waiting_cells(None if value is None else measures, clock)
        cells[self._compared] = cell(self._times(value), 4)
        if clock.is_even:
            cells["makespan"] = cell(ended.makespan, 0)
        else:
            cells["tokens/s"] = cell(ended.throughput)
            cells["makespan s"] = cell(ended.makespan / clock.scale)
        cells |= {"evictions": ended.evictions, "peak": ended.peak_memory}
        if clock.is_even:
            cells["seconds"] = f"{ended.wall_seconds:.2f}"
        return cells | {"outcome": outcome if ended.note is None else f"{outcome}; {ended.note}"}


def compare(
    instance: Problem | Instance | str | Path,
    policies: str | Iterable[GivenSchedule],
    *,
    clock: Clock | str | None = None,
) -> Comparison:
    """Compare schedulers and schedules on one instance.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from.
    policies
        Schedulers, as for `run`; earlier runs; schedules in any form that `solve` accepts as a
        start, and results.  An optimal one gives the optimum with which all are compared.
    clock
        How long rounds last, see `run`.

    Examples
    --------
    >>> from kvopt import Instance, Request, compare
    >>> found = compare(Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)]), ["fcfs", "mc-sf"])
    >>> [each.objective for each in found], found.best
    ([28, 28], 28)
    """
    problem = as_problem(instance, clock=clock)
    chosen: list[Any] = [policies] if isinstance(policies, str) else list(policies)
    runs = [_run(problem, choice, place) for place, choice in enumerate(chosen, 1)]
    scope = least_scope(result.scope for result in runs)
    optima = [
        result.objective
        for result in chosen
        if getattr(result, "gap", None) == 0 and result.scope.covers(scope)
    ]
    return Comparison(runs, min(optima, default=None))


def _run(problem: Problem, choice: GivenSchedule, place: int) -> PolicyRun:
    """Return the run of a scheduler, or a schedule as one."""
    if isinstance(choice, str | Policy):
        return run(problem, choice)
    if isinstance(choice, PolicyRun):
        return choice
    schedule = getattr(choice, "schedule", None)  # the result may be in seconds
    if not isinstance(schedule, Schedule) or schedule.clock.is_even:
        schedule = given_schedule(problem.instance, choice, "policies")
    return PolicyRun.of(schedule, f"{getattr(choice, 'status', 'schedule')} {place}")
