"""The time-indexed program where requests may pause, as in `kvopt.formulations.paused`.

``y[i, j, t]`` is 1 if and only if request i has produced j tokens by time t.
"""

from __future__ import annotations

from typing import Unpack

import pyomo.environ as pyo

from kvopt.formulations.layout import Layout, LayoutOptions
from kvopt.formulations.paused import paused_layout, shared_rounds
from kvopt.formulations.windows import Windows
from kvopt.problem.instance import Instance


def time_indexed_with_pauses(
    instance: Instance,
    windows: Windows | None = None,
    *,
    relax: bool = False,
    **options: Unpack[LayoutOptions],
) -> pyo.ConcreteModel:
    """Build the program with pauses.

    Parameters
    ----------
    instance, windows, relax, options
        As in `kvopt.formulations.pyomo.time_indexed`; a round k of a window lets token j be
        produced at time ``k + j``.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With the variables ``y``, the objective ``total_latency`` and the constraints ``done``,
        ``keep``, ``after``, ``memory`` and ``order``.
    """
    plan = paused_layout(instance, windows, **options)
    model = pyo.ConcreteModel(name=instance.name or "time-indexed-with-pauses")
    add_tokens(model, instance, plan, relax=relax)
    add_total_latency(model, instance, plan)
    add_chains(model, instance, plan)
    add_memory(model, instance, plan)
    add_order(model, instance, plan)
    return model


def add_tokens(
    model: pyo.ConcreteModel, instance: Instance, plan: Layout, *, relax: bool = False
) -> None:
    """Request i may have produced j tokens by the times t of its window.

    y[i, j, t] in {0, 1}; relaxed, 0 <= y[i, j, t] <= 1
    """
    columns = [
        (i, j, k + j)
        for i, (window, request) in enumerate(zip(plan.windows, instance, strict=True))
        for j in range(1, request.output + 1)
        for k in window
    ]
    model.y = pyo.Var(columns, domain=pyo.UnitInterval if relax else pyo.Binary)


def add_total_latency(model: pyo.ConcreteModel, instance: Instance, plan: Layout) -> None:
    """Every request adds the rounds from its arrival to its last token.

    minimise  sum over i of (T_i - a_i) y[i, o_i, T_i] - sum over t < T_i of y[i, o_i, t]

    T_i is the last time at which i may complete, where y is 1.
    """
    terms = []
    for i, (request, window) in enumerate(zip(instance, plan.windows, strict=True)):
        last = window[-1] + request.output
        early = (model.y[i, request.output, k + request.output] for k in window[:-1])
        terms.append((last - request.arrival) * model.y[i, request.output, last] - sum(early))
    model.total_latency = pyo.Objective(expr=pyo.quicksum(terms))


def add_chains(model: pyo.ConcreteModel, instance: Instance, plan: Layout) -> None:
    """All tokens are produced, each once and after the one before it.

    y[i, j, t] = 1                     for each i, j, at the last t      (done)
    y[i, j, t] <= y[i, j, t + 1]       for each i, j, t but the last     (keep)
    y[i, j, t] <= y[i, j - 1, t - 1]   for each i, j > 1, t but the last (after)
    """
    tokens = [(i, j) for i, r in enumerate(instance) for j in range(1, r.output + 1)]
    early = [(i, j, k + j) for i, j in tokens for k in plan.windows[i][:-1]]
    later = [(i, j, t) for i, j, t in early if j > 1]
    y = model.y
    model.done = pyo.Constraint(tokens, rule=lambda _, i, j: y[i, j, plan.windows[i][-1] + j] == 1)
    model.keep = pyo.Constraint(early, rule=lambda _, i, j, t: y[i, j, t] <= y[i, j, t + 1])
    model.after = pyo.Constraint(later, rule=lambda _, i, j, t: y[i, j, t] <= y[i, j - 1, t - 1])


def add_memory(model: pyo.ConcreteModel, instance: Instance, plan: Layout) -> None:
    """At no time do the active requests hold more than M tokens.

    sum over i, j of (s_i + j) (y[i, j, t] - y[i, j, t - 1]) <= M   for each t
    """
    held: dict[int, list[object]] = {time: [] for span in plan.spans for time in span}
    for (i, j, t), variable in model.y.items():
        before = model.y[i, j, t - 1] if t - j > plan.windows[i][0] else 0
        held[t].append((instance.requests[i].prompt + j) * (variable - before))

    def rule(_: pyo.ConcreteModel, t: int) -> object:
        return pyo.quicksum(held[t]) <= instance.memory

    model.memory = pyo.Constraint(list(held), rule=rule)


def add_order(model: pyo.ConcreteModel, instance: Instance, plan: Layout) -> None:
    """Of two requests of one shape the one that arrives first is never behind.

    y[h, j, t] <= y[i, j, t]   for such pairs i, h, each j and t

    Of their two times for token j the earlier one can be that of i, for each j.
    """
    rows = [
        (i, h, j, k + j)
        for i, h in plan.ordered
        for j in range(1, instance.requests[i].output + 1)
        for k in shared_rounds(plan, i, h)
    ]
    model.order = pyo.Constraint(rows, rule=lambda m, i, h, j, t: m.y[h, j, t] <= m.y[i, j, t])
