"""Stages of the plan for service levels: a ceiling, and schedules in which many attain theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any

from kvopt.bounds.relaxations import chain
from kvopt.bounds.slo_ceiling import least_times, slo_ceiling, spans_of
from kvopt.errors import Stopped
from kvopt.heuristics.attaining.in_rounds import AttainingSets, attaining_in_rounds
from kvopt.heuristics.attaining.in_seconds import attaining_in_seconds
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import Clock
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Levels
from kvopt.search.exact.all_runs import best_in_time
from kvopt.simulate.run_policy import run
from kvopt.timetable.schedule import Schedule

_SCHEDULERS_IN_TIME = 0.3
"""Share of the time: runs of schedulers, before the search for a schedule."""
_SERVERS = (
    ("vllm-fcfs:", 0.9),
    ("vllm-fcfs:", 0.75),
    ("vllm-priority:by=prompt,", 0.9),
)
"""Servers, in scopes with their pauses and pieces, and parts of the pace that a round lasts."""
_MAX_RUNNING = 512
"""Limit of the requests that run on such a server."""
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
    search.ceiling = replace(ceiling, relaxations=chain(search.problem, "ceiling"))


def search_in_time(search: Search, budget: Budget) -> None:
    """Search for a schedule in which many requests attain it; for few requests all schedules."""
    if search.ceiling is None or not len(search.instance):
        return
    # The first scheduler may take all of the time, as without any run there is no answer.
    others = budget.part(_SCHEDULERS_IN_TIME)
    for number, (policy, router) in enumerate(schedulers_in_time(search.problem)):
        with suppress(Stopped):
            schedule = run(
                search.instance,
                policy,
                router=router,
                clock=search.clock,
                slo=search.problem.slo,
                should_stop=(others if number else budget).over,
            )
            behind = "" if router == "central" else f" behind {router}"
            search.offer(schedule, f"policy {policy}{behind}")
        if search.attained_count == search.ceiling.value:
            return
        if others.over():
            break
    if search.instance.extras or search.problem.in_blocks:
        search.note("service levels: schedulers alone are tried, as the search knows tokens only")
        return
    # Prices of the ceiling tell which requests are cheap; of few requests all runs are searched.
    instance, model, costs = search.instance, search.clock.model, search.ceiling.costs
    spans = spans_of(_levels(search), *least_times(instance, model), runs=model is None)
    # A proof about latency ends `search.budget`, but says nothing of service levels: `granted`.
    limits: dict[str, Any] = {
        "seed": search.limits.seed,
        "budget": search.granted.part(most=budget.left),
    }
    attaining: AttainingSets | None
    if model is None:
        attaining = attaining_in_rounds(instance, spans, costs, **limits)
    else:
        attaining = attaining_in_seconds(instance, model, spans, costs, **limits)
    if attaining is not None and not search.problem.is_fleet:
        better = best_in_time(
            instance, model, spans, attaining.count, search.ceiling.value, search.granted.over
        )
        attaining = better or attaining
    if attaining is not None and attaining.count >= 0:  # -1 without time for a first set
        resumed: list[dict[int, int]] = [{} for _ in range(instance.workers)]
        for number, time, worker in attaining.resumed:
            resumed[worker][number] = time
        starts, workers = attaining.starts, attaining.workers
        search.offer(
            Schedule(instance, starts, workers, clock=search.clock, resumed=resumed), _SEARCHED
        )


def schedulers_in_time(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield schedulers for a service level with their routers, the likeliest first."""
    yield from servers_in_time(problem)
    yield "slo", "central"
    if problem.is_fleet:
        yield "slo", router_in_time(problem.clock)
        yield "slo:care=1.2", "central"


def router_in_time(clock: Clock) -> str:
    """Return the best router that sends requests on arrival; in rounds prompts take no time."""
    return "least-requests" if clock.is_even else "soonest-token"


def servers_in_time(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield servers whose rounds keep the pace, if the scope covers pauses and prompts in pieces.

    Rounds of so few tokens that they keep it are all that a router has to know about a server.
    """
    model = problem.clock.model
    if model is None or problem.slo is None or not problem.scope.covers(Scope.PAUSES_AND_CHUNKS):
        return
    for name, part in _SERVERS:
        if (budget := _tokens_a_round(problem, model, part)) >= 1:
            router = f"soonest-token:tokens={budget}" if problem.is_fleet else "central"
            yield f"{name}budget={budget},max_seqs={min(budget, _MAX_RUNNING)}", router


def _tokens_a_round(problem: Problem, model: BatchTime, part: float) -> int:
    """Return how many tokens a round processes in a part of the shortest pace, 0 without one."""
    assert problem.slo is not None
    rests = problem.slo.levels(problem.instance, rounds=False).rest
    paces = [
        rest / (request.output - 1)
        for rest, request in zip(rests, problem.instance, strict=True)
        if request.output > 1 and rest < inf
    ]
    limit = part * min(paces, default=0.0)
    fits = [(limit - line.round_ns) // line.token_ns for line in model.lines if line.token_ns]
    return int(min(fits, default=0))


def _levels(search: Search) -> Levels:
    """Return the limits of each request."""
    assert search.problem.slo is not None
    return search.problem.slo.levels(search.instance, rounds=search.clock.is_even)
