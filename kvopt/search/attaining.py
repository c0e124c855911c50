"""Stages of the plan for deadlines: a ceiling, and schedules with many attained deadlines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kvopt.bounds.deadlines import deadline_ceiling
from kvopt.bounds.relaxations import ceiling_chain
from kvopt.heuristics.attaining.rounds import Attaining, attaining_in_rounds
from kvopt.heuristics.attaining.seconds import attaining_in_seconds
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget
from kvopt.problem.deadlines import Deadline
from kvopt.search.exact.runs import AllRuns
from kvopt.timetable.schedule import Schedule

_SEARCHED = "search for deadlines"
"""Name of its schedules in results."""


def bound_in_time(search: Search, budget: Budget) -> None:
    """Find prices that prove a ceiling on the requests that attain the deadline."""
    deadline, allowed = _asked(search)
    ceiling = deadline_ceiling(
        search.instance,
        allowed,
        deadline.aim,
        search.clock.model,
        scope=search.problem.scope,
        budget=search.granted.part(most=budget.left),
    )
    search.ceiling = replace(ceiling, relaxations=ceiling_chain(search.problem))


def search_in_time(search: Search, budget: Budget) -> None:
    """Search for a schedule in which many requests attain it; for few requests all schedules."""
    if search.ceiling is None or not len(search.instance):
        return
    if search.instance.extras or search.problem.in_blocks:
        search.note("deadlines: schedulers alone are tried, as the search knows tokens only")
        return
    (deadline, allowed), model = _asked(search), search.clock.model
    costs, aim = search.ceiling.costs, deadline.aim
    limits: dict[str, Any] = {
        "seed": search.limits.seed,
        "budget": search.granted.part(most=budget.left),
    }
    found: Attaining | None
    if model is None:
        found = attaining_in_rounds(search.instance, allowed, aim, costs, **limits)
    else:
        found = attaining_in_seconds(search.instance, model, allowed, aim, costs, **limits)
    if found is not None and not search.problem.is_fleet:
        better = AllRuns(search.instance, model, allowed, aim).best(
            found.count,
            search.ceiling.value,
            search.granted.over,
        )
        found = better or found
    if found is not None and found.count >= 0:
        search.offer(_schedule(search, found), _SEARCHED)


def _schedule(search: Search, found: Attaining) -> Schedule:
    resumed: list[dict[int, int]] = [{} for _ in range(search.instance.workers)]
    for number, time, worker in found.resumed:
        resumed[worker][number] = time
    return Schedule(
        search.instance, found.starts, found.workers, clock=search.clock, resumed=resumed
    )


def _asked(search: Search) -> tuple[Deadline, list[int]]:
    """Return the deadline, and the time that each request may take."""
    deadline = search.problem.deadline
    assert deadline is not None
    return deadline, deadline.allowed(search.instance, rounds=search.clock.is_even)
