"""``solve_with_pauses``: both sides of the answer where requests may pause, in rounds.

Volumes and prices bound from below, orders and annealing give schedules, and where few requests
are left with a gap an exhaustive search over rounds closes it.  The whole is solved at once: a
bound of parts between idle gaps adds up as without pauses, but nothing here needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from kvopt.engines.portfolio import climb, offer_volume
from kvopt.files.instances import as_instance
from kvopt.model.instance import Instance
from kvopt.model.pausing import PausedSchedule, Segment
from kvopt.model.scopes import Scope
from kvopt.model.summary import Facts, Summarised, share
from kvopt.search.incumbent import Search
from kvopt.search.params import share_of
from kvopt.search.proofs import CheckedBound, Prices
from kvopt.search.result import BoundSource, Status, StopReason, relative_gap
from kvopt.search.threads import run_in_thread, signals_interrupt

MOST_SEARCHED = 12
"""Requests up to which all schedules are searched: a round has up to 2^12 sets of them."""
_BOUND_SHARE, _ORDER_SHARE = 0.3, 0.4
"""Shares of the time left for prices, and then for orders."""


@dataclass(frozen=True, repr=False)
class PausedResult(Summarised):
    """The best checked schedule with pauses, and the best bound that covers pauses.

    Parameters
    ----------
    status, stop_reason
        What is known, and why the search ended.
    schedule
        Best schedule, checked in integers; None when none was found.
    lower_bound
        No schedule, with pauses or without, has a smaller total latency; None when unknown.
    bound_source
        What the bound rests on; None when it is unknown.
    checked
        The best bound that was re-evaluated in integers, with its proof.
    seconds
        Wall time, without compiling.
    notes
        What a reader should know of how the answer came about.
    """

    status: Status
    stop_reason: StopReason
    schedule: PausedSchedule | None
    lower_bound: int | None
    bound_source: BoundSource | None
    checked: CheckedBound | None
    seconds: float
    notes: tuple[str, ...] = ()

    scope: ClassVar[Scope] = Scope.PAUSES
    footnote = Scope.PAUSES.sentence

    @property
    def objective(self) -> int | None:
        """Total latency of the schedule."""
        return None if self.schedule is None else self.schedule.objective

    @property
    def segments(self) -> tuple[tuple[Segment, ...], ...] | None:
        """Active times of each request in instance order."""
        return None if self.schedule is None else self.schedule.segments

    @property
    def gap(self) -> float | None:
        """``(objective - bound) / objective``, None while a side is unknown."""
        return relative_gap(self.objective, self.lower_bound)

    def facts(self) -> Facts:
        """Return what a summary says."""
        return {
            "status": self.status,
            "scope": self.scope,
            "total latency": self.objective,
            "pauses": None if self.schedule is None else self.schedule.pauses,
            "lower bound": self.lower_bound,
            "bound source": self.bound_source,
            "gap": share(self.gap),
            "stopped": self.stop_reason,
            "seconds": round(self.seconds, 2),
            "notes": "; ".join(self.notes) or None,
        }

    def to_json(self) -> dict[str, Any]:
        """Return what is printed as JSON."""
        return {
            "status": str(self.status),
            "scope": str(self.scope),
            "objective": self.objective,
            "lower_bound": self.lower_bound,
            "segments": self.segments,
            "stop_reason": str(self.stop_reason),
            "bound_source": None if self.bound_source is None else str(self.bound_source),
            "gap": self.gap,
            "seconds": round(self.seconds, 6),
            "notes": list(self.notes),
        }


def solve_with_pauses(
    instance: Instance | str | Path,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    ram: int | None = None,
) -> PausedResult:
    """Look for a schedule of least total latency where requests may pause, and for a proof.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from.
    time_limit
        Seconds; None to go on until there is a proof, or nothing left to try.
    seed, threads, ram
        As for `solve`.

    Examples
    --------
    Without pauses the optimum is 14.

    >>> from kvopt import Instance, Request
    >>> found = solve_with_pauses(Instance(10, [Request(0, 0, 10), Request(6, 5, 1)]))
    >>> found.objective, found.lower_bound, found.segments
    (12, 12, (((1, 6), (8, 11)), ((7, 7),)))
    """
    instance = as_instance(instance)
    work = _Work(instance, time_limit=time_limit, seed=seed, threads=threads, ram=ram)
    with signals_interrupt(work.search):
        work.order()
        work.bound()
        work.search_all()
    return work.result()


class _Work:
    """Both sides, and what makes them meet; the search holds the bound and the limits."""

    def __init__(self, instance: Instance, **limits: Any) -> None:
        self.search = Search(instance, stop=lambda _: self._is_proved, **limits)
        self.search.engine = "pauses"
        self._schedule: PausedSchedule | None = None
        offer_volume(self.search)

    def order(self) -> None:
        """Find schedules by orders; the first one is there whatever the limit is."""
        from kvopt.heuristics.paused_orders import search_paused_orders  # it loads numba

        search = self.search
        seconds = share_of(search.remaining, _ORDER_SHARE)
        self._run(
            lambda: search_paused_orders(
                search.instance, seconds, seed=search.seed, should_stop=search.should_stop
            )
        )

    def bound(self) -> None:
        """Let prices rise."""
        if not self.search.should_stop():
            climb(self.search, share_of(self.search.remaining, _BOUND_SHARE), pauses=True)

    def search_all(self) -> None:
        """Search all schedules that are better, where few requests are left with a gap."""
        search, schedule = self.search, self._schedule
        few = len(search.instance) <= MOST_SEARCHED
        if schedule is None or search.should_stop() or not few:
            return
        from kvopt.heuristics.paused_layers import search_layers  # it loads numba

        proof = None if search.checked is None else search.checked.proof
        prices = proof if isinstance(proof, Prices) else Prices((), 1)
        ended: list[PausedSchedule] = []

        def work() -> PausedSchedule | None:
            found = search_layers(search.instance, prices, schedule.objective, search.should_stop)
            if found is None:
                return None
            ended.append(found.schedule or schedule)
            return found.schedule

        self._run(work)
        if ended:
            search.offer_claimed(ended[0].objective, "exhaustive search")

    def _run(self, work: Callable[[], PausedSchedule | None]) -> None:
        """Keep what some work finds, if it is feasible and better."""
        found: list[PausedSchedule | None] = []
        with self.search.surviving():
            run_in_thread(self.search, lambda: found.append(work()), cancel=lambda: None)
        for schedule in found:
            if schedule is None:
                continue
            if broken := schedule.check().violations:
                self.search.fault(f"an infeasible schedule with pauses: {broken[0]}")
            elif self._schedule is None or schedule.objective < self._schedule.objective:
                self._schedule = schedule

    @property
    def _is_proved(self) -> bool:
        schedule = self._schedule
        return schedule is not None and schedule.objective == self.search.lower_bound

    def result(self) -> PausedResult:
        """Return both sides."""
        found = self.search.result("pauses")
        feasible = Status.UNKNOWN if self._schedule is None else Status.FEASIBLE
        return PausedResult(
            status=Status.OPTIMAL if self._is_proved else feasible,
            stop_reason=StopReason.PROVED if self._is_proved else found.stop_reason,
            schedule=self._schedule,
            lower_bound=found.lower_bound,
            bound_source=found.bound_source,
            checked=found.checked,
            seconds=found.seconds,
            notes=(*found.faults, *found.notes),
        )
