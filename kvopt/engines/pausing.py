"""What `solve` does where requests may pause, in rounds: both sides of the answer.

Volumes and prices bound from below, orders and annealing give schedules, and where few requests
are left with a gap an exhaustive search over rounds closes it.  The whole is solved at once: a
bound of parts between idle gaps adds up as without pauses, but nothing here needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kvopt.engines.portfolio import climb, offer_volume
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.kernels.dependencies import versions
from kvopt.model.instance import Instance
from kvopt.model.pausing import PausedSchedule
from kvopt.model.scopes import Scope
from kvopt.search.incumbent import Search, StopCriterion
from kvopt.search.params import share_of
from kvopt.search.proofs import Prices
from kvopt.search.result import Progress, SolveResult, Status, StopReason
from kvopt.search.threads import run_in_thread, signals_interrupt

MOST_SEARCHED = 12
"""Requests up to which all schedules are searched: a round has up to 2^12 sets of them."""
_BOUND_SHARE, _ORDER_SHARE = 0.3, 0.4
"""Shares of the time left for prices, and then for orders."""


def solve_with_pauses(
    instance: Instance, start: PausedSchedule | None = None, **limits: Any
) -> SolveResult:
    """Look for a schedule of least total latency where requests may pause, and for a proof.

    Parameters
    ----------
    instance
        The problem.
    start
        A feasible schedule to begin from.
    limits
        As of `Search`.
    """
    work = _Work(instance, **limits)
    with signals_interrupt(work.search):
        work.begin(start)
        work.order()
        work.bound()
        work.search_all()
    return work.result()


class _Work:
    """Both sides, and what makes them meet; the search holds the bound and the limits."""

    def __init__(
        self, instance: Instance, stop: StopCriterion | None = None, **limits: Any
    ) -> None:
        self._stop = stop
        self.search = Search(instance, stop=self._is_enough, **limits)
        self.search.engine = "pauses"
        self.search.versions = versions()
        self._schedule: PausedSchedule | None = None
        self._found_by: str | None = None
        offer_volume(self.search)

    def begin(self, start: PausedSchedule | None) -> None:
        """Take a schedule that was given, and what list schedules find without pauses."""
        if start is not None:
            self._offer(start, "given schedule")
        offer_list_schedules(self.search)
        if (plain := self.search.schedule) is not None:
            self._offer(PausedSchedule.of(plain), self.search.found_by or "list schedule")

    def order(self) -> None:
        """Find schedules by orders; the first one is there whatever the limit is."""
        from kvopt.heuristics.paused_orders import search_paused_orders  # it loads numba

        search = self.search
        seconds = share_of(search.remaining, _ORDER_SHARE)
        self._run(
            lambda: search_paused_orders(
                search.instance, seconds, seed=search.seed, should_stop=search.should_stop
            ),
            "orders with pauses",
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

        self._run(work, "exhaustive search")
        if ended:
            search.offer_claimed(ended[0].objective, "exhaustive search")

    def _run(self, work: Callable[[], PausedSchedule | None], found_by: str) -> None:
        """Keep what some work finds, if it is feasible and better."""
        found: list[PausedSchedule | None] = []
        with self.search.surviving():
            run_in_thread(self.search, lambda: found.append(work()), cancel=lambda: None)
        for schedule in found:
            if schedule is not None:
                self._offer(schedule, found_by)

    def _offer(self, schedule: PausedSchedule, found_by: str) -> None:
        if broken := schedule.check().violations:
            self.search.fault(f"an infeasible schedule with pauses: {broken[0]}")
        elif self._schedule is None or schedule.objective < self._schedule.objective:
            self._schedule, self._found_by = schedule, found_by

    def _is_enough(self, progress: Progress) -> bool:
        """Whether both sides meet, or the caller's criterion is met by them."""
        known = None if self._schedule is None else self._schedule.objective
        sides = replace(progress, objective=known)
        return self._is_proved or (self._stop is not None and self._stop(sides))

    @property
    def _is_proved(self) -> bool:
        schedule = self._schedule
        return schedule is not None and schedule.objective == self.search.lower_bound

    def result(self) -> SolveResult:
        """Return both sides."""
        found = self.search.result("pauses")
        feasible = Status.UNKNOWN if self._schedule is None else Status.FEASIBLE
        return replace(
            found,
            status=Status.OPTIMAL if self._is_proved else feasible,
            stop_reason=StopReason.PROVED if self._is_proved else found.stop_reason,
            schedule=self._schedule,
            found_by=self._found_by,
            scope=Scope.PAUSES,
        )
