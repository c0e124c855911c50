"""Schedules that callers give, in whatever form they have them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from kvopt.errors import InvalidInput, shown
from kvopt.problem.instance import Instance
from kvopt.simulate.policies.base import Policy
from kvopt.simulate.running import run
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.schedule_files import read_schedule


class _Result(Protocol):
    """A schedule, or what holds one: a run, a result, a certificate."""

    @property
    def objective(self) -> int | None: ...


GivenSchedule = _Result | Policy | Iterable[int] | str | Path
"""What is taken for a schedule."""


def given_schedule(instance: Instance, given: GivenSchedule, field: str) -> Schedule:
    """Return a feasible schedule of an instance from what a caller gave, else raise.

    Parameters
    ----------
    instance
        The problem.
    given
        A schedule or the path of one; a run in rounds, a result or a certificate, which hold one;
        the start of each request; or a policy, or its name, which is run.
    field
        What errors call it.
    """
    if isinstance(given, str | Policy):
        given = run(instance, given)
    found: Any = read_schedule(given, instance) if isinstance(given, Path) else given
    for held in ("upper", "schedule"):
        found = getattr(found, held, None) or found
    if isinstance(found, Iterable):
        found = Schedule(instance, tuple(found))
    if not (isinstance(found, Schedule) and found.is_complete and found.clock.is_even):
        reason = f"must hold a schedule in rounds, be one, starts or a policy, got {shown(given)}"
        raise InvalidInput(reason, field=field)
    check = found.check()
    if found.instance.hash != instance.hash or not check.feasible:
        raise InvalidInput((*check.violations, "is for another instance")[0], field=field)
    return found
