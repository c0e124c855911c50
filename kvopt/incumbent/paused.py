"""The incumbent where requests may pause: a `Search` whose schedules have segments."""

from __future__ import annotations

from dataclasses import replace

from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.result import SolveResult
from kvopt.problem.scopes import Scope
from kvopt.timetable.pausing import PausedSchedule
from kvopt.timetable.schedule import Schedule


class PausedSearch(Search):
    """Both sides of a search of schedules with pauses.

    Bounds have to hold for all of these.  Schedules without pauses are among them; the best of
    those is ``schedule``, the best of all is ``paused``.
    """

    paused: PausedSchedule | None = None

    def offer_schedule(self, schedule: Schedule, found_by: str) -> bool:
        """Keep a schedule without pauses if it is feasible and better."""
        with self._lock:
            return self.offer_paused(PausedSchedule.of(schedule), found_by) and (
                super().offer_schedule(schedule, found_by)
            )

    def offer_paused(self, schedule: PausedSchedule, found_by: str) -> bool:
        """Keep a schedule if it is feasible and better; return whether it was kept."""
        broken = schedule.check().violations
        with self._lock:
            if broken:
                self._fault(f"{found_by} offered an infeasible schedule with pauses: {broken[0]}")
                return False
            if self.objective is not None and schedule.objective >= self.objective:
                return False
            self.paused, self.found_by = schedule, found_by
            self._cross_check()
            self._tell()
            return True

    @property
    def best(self) -> Schedule | PausedSchedule | None:
        """The best schedule, by its starts where nothing pauses."""
        plain = None if self.paused is None else self.paused.without_pauses()
        return self.paused if plain is None else plain

    @property
    def objective(self) -> int | None:
        """Total latency of the best schedule, None without one."""
        return None if self.paused is None else self.paused.objective

    def result(self, engine: str) -> SolveResult:
        """Return both sides as a result."""
        return replace(super().result(engine), schedule=self.paused, scope=Scope.PAUSES)
