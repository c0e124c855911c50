"""``solve_in_seconds``: the best run and the best bound on the clock of a batch-time model."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from kvopt.bounds.seconds import seconds_bound
from kvopt.errors import InvalidInput
from kvopt.heuristics.seconds.runs import (
    offer_one_by_one,
    offer_policies,
    search_runs,
)
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import signals_interrupt
from kvopt.incumbent.limits import LimitOptions, limits_of
from kvopt.incumbent.proofs import SharesProof
from kvopt.incumbent.result import SolveResult
from kvopt.kernels.dependencies import versions
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.clocks import Seconds, checked_clock
from kvopt.problem.instance import Instance, refuse_blocks
from kvopt.problem.instance_files import as_instance
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.search.exact.runs import search_all
from kvopt.show.dataframes import latex
from kvopt.show.summary import Facts, share
from kvopt.timetable.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

_TOTALS = ("objective", "lower_bound")
_BOUND_SHARE = 0.2
"""Share of a limit that the search for good weights may take."""


@dataclass(frozen=True, repr=False)
class TimedResult(SolveResult):
    """The best run and the best bound of a search; totals are nanoseconds.

    Parameters
    ----------
    run
        The run, checked in integers; None when none was found.
    """

    run: Schedule | None = None

    @property
    def objective(self) -> int | None:
        """Total latency of the run in nanoseconds."""
        return None if self.run is None else self.run.objective

    @property
    def starts(self) -> Sequence[int] | None:
        """The round of each start; each worker numbers its own rounds."""
        return None if self.run is None else self.run.starts

    @property
    def workers(self) -> Sequence[int] | None:
        """Of a fleet the worker of each request."""
        return None if self.run is None else self.run.workers

    def facts(self) -> Facts:
        """Return what a summary says; totals in seconds."""
        totals = {"total latency": self.objective, "lower bound": self.lower_bound}
        worded = {
            name: None if value is None else f"{value / NANOSECONDS:,.6g} seconds"
            for name, value in totals.items()
        }
        return {**super().facts(), **worded}

    def to_dataframe(self) -> DataFrame:
        """Return one row, as a DataFrame of pandas; totals are named as nanoseconds."""
        instance = None if self.run is None else self.run.instance
        row = super().to_dataframe().rename(columns={name: f"{name}_ns" for name in _TOTALS})
        return row.assign(
            instance=None if instance is None else instance.name,
            requests=None if instance is None else len(instance),
            memory=None if instance is None else instance.memory,
        )

    def to_latex(self) -> str:
        """Return a table with one row for the package booktabs; totals in seconds."""
        cells = [_seconds(self.objective), _seconds(self.lower_bound), share(self.gap)]
        row = ["-" if cell is None else str(cell) for cell in cells]
        heads = ["total latency s>", "at least s>", "gap>"]
        return latex(heads, [row], f"{self.status}; stopped: {self.stop_reason}")

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the run, see `PolicyRun.plot`."""
        if self.run is None:
            raise InvalidInput("has found none, so there is nothing to draw", field="run")
        return self.run.plot(ax)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt solve --seconds --json`` prints."""
        said = super().to_json()
        times = None if self.run is None else self.run.start_times
        return {
            "status": said.pop("status"),
            "objective_seconds": _seconds(said.pop("objective")),
            "lower_bound_seconds": _seconds(said.pop("lower_bound")),
            "objective_ns": self.objective,
            "lower_bound_ns": self.lower_bound,
            "starts_seconds": None if times is None else [time / NANOSECONDS for time in times],
            **said,
        }


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / NANOSECONDS


def solve_in_seconds(
    instance: Instance | str | Path,
    clock: Seconds,
    **options: Unpack[LimitOptions],
) -> TimedResult:
    """Look for a run of least total latency in seconds, and bound all of them.

    Orders are run behind every router; then requests move between workers, each move simulated.
    The search without a limit ends when nothing improves, mostly without a proof: up to six
    requests are searched exhaustively, others are optimal only where the run meets the bound.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from.
    clock
        How long rounds last.
    options
        As of `Limits`.

    Examples
    --------
    >>> from kvopt import BatchTime, Instance, Line, Request
    >>> clock = Seconds(BatchTime([Line(40_000_000, 1_000_000)]))
    >>> found = solve_in_seconds(Instance(5, [Request(0, 2, 1)] * 3, workers=2), clock)
    >>> found.objective, str(found.status)
    (172000000, 'optimal')
    """
    instance = as_instance(instance)
    if not isinstance(checked_clock(clock), Seconds):
        raise InvalidInput("is of rounds: write solve(instance)", field="clock")
    refuse_blocks(instance, "a clock of seconds")
    search = Search(Problem(instance, clock), limits_of(options))
    search.versions = versions()
    with signals_interrupt(search):
        begin(search)
        improve(search)
    result = search.result("auto")
    return TimedResult(**{**vars(result), "scope": Scope.RUNS, "run": search.best})


def begin(search: Search) -> None:
    """Offer a run that is there at once, and a bound, whose weights have a share of the time.

    The first step of the bound comes to its end even after a signal: nothing else gives one.
    """
    offer_one_by_one(search)
    search.engine = "bound"
    bound = seconds_bound(
        search.instance, search.clock.batch_time, scope=search.problem.scope,
        time_limit=_BOUND_SHARE * search.remaining,
        should_stop=lambda: search.signal_number is not None,
    )  # fmt: skip
    search.offer_checked(bound.value_ns, "shares", bound.proof)


def improve(search: Search, known: Container[str] = ()) -> None:
    """Look for better runs, after the bound: policies but for some, and all searches there are."""
    stages: dict[str, Callable[[Search], None]] = {
        "policies": partial(offer_policies, known=known),
        "exact": search_all,
        "beams": _offer_beams,
        "routers": search_runs,
    }
    for search.engine, work in stages.items():
        if search.should_stop():
            return
        with search.surviving():
            work(search)


def _offer_beams(search: Search) -> None:
    """Offer the best run of some beams by the prices of the bound, which end when they are idle."""
    if search.instance.workers > 1:
        return
    from kvopt.heuristics.seconds.searching import beams_in_seconds  # loads numba

    assert search.checked is not None, "the bound comes first"
    assert isinstance(search.clock, Seconds)
    assert isinstance(search.checked.proof, SharesProof)
    made = beams_in_seconds(
        search.instance, search.clock, search.checked.proof.lines,
        time_limit=search.remaining, threads=search.threads, seed=search.seed,
        room=search.memory_left, should_stop=search.should_stop,
    )  # fmt: skip
    if made is not None:
        search.offer(made, "beams")
