"""The time-indexed integer program and its LP relaxation.

jaillet-2025-v2 equations 1 to 4, wang-2025 equations 7 to 10.  ``x[i, k]`` is 1 if and only
if request i starts at round k; in a fleet ``x[i, k, w]`` if it does so on worker w.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Unpack

import pyomo.environ as pyo

from kvopt.formulations.layout import Layout, LayoutOptions, layout
from kvopt.formulations.windows import Windows
from kvopt.problem.instance import Instance


def time_indexed(
    instance: Instance,
    windows: Windows | None = None,
    *,
    relax: bool = False,
    **options: Unpack[LayoutOptions],
) -> pyo.ConcreteModel:
    """Build the time-indexed program.

    Parameters
    ----------
    instance
        The problem.
    windows
        Start rounds to consider; by default those that are proved to hold an optimum.
    relax
        Let ``x`` be any number between 0 and 1.
    options
        See `LayoutOptions`.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With the variables ``x``, the objective ``total_latency`` and the constraints
        ``start``, ``memory`` and ``order``.
    """
    plan = layout(instance, windows, **options)
    model = pyo.ConcreteModel(name=instance.name or "time-indexed")
    add_starts(model, plan, relax=relax)
    add_total_latency(model, instance)
    add_each_starts_once(model, plan)
    add_memory(model, instance, plan)
    if instance.max_active is not None:
        add_active(model, instance, plan)
    add_order(model, instance, plan)
    return model


relaxed = partial(time_indexed, relax=True)
"""Build the LP relaxation: the same program without integrality."""


def add_starts(model: pyo.ConcreteModel, plan: Layout, *, relax: bool = False) -> None:
    """Request i may start at the rounds k of its window.

    x[i, k] in {0, 1}; relaxed, 0 <= x[i, k] <= 1   (v2 eq. 4)

    In a fleet request i may be on the workers 0 .. i only: they are equal.
    """
    columns = [column for i in range(len(plan.windows)) for column in _columns(plan, i)]
    domain = pyo.UnitInterval if relax else pyo.Binary
    model.x = pyo.Var(columns, domain=domain)


def add_total_latency(model: pyo.ConcreteModel, instance: Instance) -> None:
    """Every request adds the rounds from its arrival to its last token.

    minimise  sum over i, k of (k + o_i - a_i) x[i, k]   (v2 eq. 1)
    """
    cost = [request.output - request.arrival for request in instance]
    weight = [request.weight for request in instance]
    latency = pyo.quicksum(weight[i] * (k + cost[i]) * model.x[i, k, *at] for i, k, *at in model.x)
    model.total_latency = pyo.Objective(expr=latency)


def add_each_starts_once(model: pyo.ConcreteModel, plan: Layout) -> None:
    """Each request is scheduled exactly once, not before it arrives.

    sum over k of x[i, k] = 1   for each i   (v2 eq. 2)

    In a fleet the sum is over workers too.
    """

    def rule(model: pyo.ConcreteModel, i: int) -> object:
        return pyo.quicksum(model.x[column] for column in _columns(plan, i)) == 1

    model.start = pyo.Constraint(range(len(plan.windows)), rule=rule)


def add_memory(model: pyo.ConcreteModel, instance: Instance, plan: Layout) -> None:
    """At no time do the active requests hold more than M tokens.

    sum over i, max(a_i, t - o_i) <= k <= t - 1 of (s_i + t - k) x[i, k] <= M   for each t
    (v2 eq. 3)

    In a fleet there is such a row for each worker.
    """

    def rule(model: pyo.ConcreteModel, t: int, *at: int) -> object:
        held = [
            (request.prompt + t - k) * model.x[i, k, *at]
            for i, request in enumerate(instance)
            if not at or at[0] in plan.workers[i]
            for k in active_starts(plan.windows[i], request.output, t)
        ]
        return pyo.quicksum(held) <= instance.memory if held else pyo.Constraint.Skip

    times = [(time, *_if_fleet(plan, at)) for time, at in plan.times]
    model.memory = pyo.Constraint(times, rule=rule)


def add_active(model: pyo.ConcreteModel, instance: Instance, plan: Layout) -> None:
    """At no time are more requests active on a worker than may be.

    sum over i, max(a_i, t - o_i) <= k <= t - 1 of x[i, k] <= max_active   for each t
    """

    def rule(model: pyo.ConcreteModel, t: int, *at: int) -> object:
        active = [
            model.x[i, k, *at]
            for i, request in enumerate(instance)
            if not at or at[0] in plan.workers[i]
            for k in active_starts(plan.windows[i], request.output, t)
        ]
        return pyo.quicksum(active) <= instance.max_active if active else pyo.Constraint.Skip

    times = [(time, *_if_fleet(plan, at)) for time, at in plan.times]
    model.together = pyo.Constraint(times, rule=rule)


def add_order(model: pyo.ConcreteModel, instance: Instance, plan: Layout) -> None:
    """Of two requests of one shape the one that arrives first completes no later.

    sum over k of (k + o_i) x[i, k] <= sum over k of (k + o_j) x[j, k]   for such pairs

    Not in the papers.  The two can swap starts, so this keeps an optimum.
    """

    def completion(i: int) -> pyo.NumericValue:
        output = instance.requests[i].output
        return pyo.quicksum((k + output) * model.x[i, k, *at] for i, k, *at in _columns(plan, i))

    def rule(_: pyo.ConcreteModel, i: int, j: int) -> object:
        return completion(i) <= completion(j)

    model.order = pyo.Constraint(plan.ordered, rule=rule)


def _columns(plan: Layout, i: int) -> Iterator[tuple[int, ...]]:
    """Yield the columns of a request."""
    for worker in plan.workers[i]:
        yield from ((i, k, *_if_fleet(plan, worker)) for k in plan.windows[i])


def _if_fleet(plan: Layout, worker: int) -> tuple[int, ...]:
    """Return what names a worker: nothing where there is one only."""
    return (worker,) if plan.is_fleet else ()


def active_starts(window: range, output: int, time: int) -> range:
    """Return the start rounds of a window with which a request is active at a time."""
    if not window:
        return window
    return range(max(window[0], time - output), min(window[-1], time - 1) + 1)
