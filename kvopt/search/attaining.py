"""Stages of the plan for service levels: a ceiling, and schedules in which many attain theirs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from kvopt.bounds.relaxations import ceiling_chain
from kvopt.bounds.slo import least_times, slo_ceiling, spans_of
from kvopt.errors import Stopped
from kvopt.heuristics.attaining.rounds import Attaining, attaining_in_rounds
from kvopt.heuristics.attaining.seconds import attaining_in_seconds
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget
from kvopt.problem.slo import Levels
from kvopt.search.exact.runs import AllRuns
from kvopt.simulate.running import run
from kvopt.timetable.schedule import Schedule

_SCHEDULER = "slo"
_SEARCHED = "search for service levels"
"""Name of its schedules in results."""


def bound_in_time(search: Search, budget: Budget) -> None:
    """Find prices that prove a ceiling on the requests that attain the service level."""
    ceiling = slo_ceiling(
        search.instance,
        _levels(search),
        search.clock.model,
        scope=search.problem.scope,
        budget=search.granted.part(most=budget.left),
    )
    search.ceiling = replace(ceiling, relaxations=ceiling_chain(search.problem))


def search_in_time(search: Search, budget: Budget) -> None:
    """Search for a schedule in which many requests attain it; for few requests all schedules."""
    if search.ceiling is None or not len(search.instance):
        return
    with suppress(Stopped):
        search.offer(_scheduled(search, budget), f"policy {_SCHEDULER}")
    if search.most_attained == search.ceiling.value:
        return
    if search.instance.extras or search.problem.in_blocks:
        search.note("service levels: schedulers alone are tried, as the search knows tokens only")
        return
    instance, model, costs = search.instance, search.clock.model, search.ceiling.costs
    spans = spans_of(_levels(search), *least_times(instance, model), runs=model is None)
    limits: dict[str, Any] = {
        "seed": search.limits.seed,
        "budget": search.granted.part(most=budget.left),
    }
    attaining: Attaining | None
    if model is None:
        attaining = attaining_in_rounds(instance, spans, costs, **limits)
    else:
        attaining = attaining_in_seconds(instance, model, spans, costs, **limits)
    if attaining is not None and not search.problem.is_fleet:
        better = AllRuns(instance, model, spans).best(
            attaining.count,
            search.ceiling.value,
            search.granted.over,
        )
        attaining = better or attaining
    if attaining is not None and attaining.count >= 0:
        search.offer(_schedule(search, attaining), _SEARCHED)


def _scheduled(search: Search, budget: Budget) -> Schedule:
    """Return the run of the scheduler for service levels."""
    problem = search.problem
    instance, slo = problem.instance, problem.slo
    return run(instance, _SCHEDULER, clock=search.clock, slo=slo, should_stop=budget.over)


def _schedule(search: Search, attaining: Attaining) -> Schedule:
    resumed: list[dict[int, int]] = [{} for _ in range(search.instance.workers)]
    for number, time, worker in attaining.resumed:
        resumed[worker][number] = time
    return Schedule(
        search.instance, attaining.starts, attaining.workers, clock=search.clock, resumed=resumed
    )


def _levels(search: Search) -> Levels:
    """Return the limits of each request."""
    assert search.problem.slo is not None
    return search.problem.slo.levels(search.instance, rounds=search.clock.is_even)
