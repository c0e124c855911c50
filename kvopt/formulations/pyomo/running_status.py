"""The program with "running" variables, jaillet-2025-v1 appendix B.1, corrected.

``x[i, k]`` is 1 if request i starts at round k, ``y[i, t]`` is 1 if it is running at t.

Two things cannot be taken from the print.  Its requests run while t - k < o_i, from t = k on, and
hold s + t - k tokens: the last token is never counted, so each request peaks at s + o - 1.  And
its memory row multiplies ``y`` with the start round, a variable.  Here a request runs while
1 <= t - k <= o_i, and the row sums (s_i + t - k) x[i, k] over the k that make it run at t, which
is linear and the same thing.  ``as_printed`` keeps the first of the two for comparison: on example
EC.1 of chen-2025 it gives 10 where the optimum is 12.
"""

from __future__ import annotations

from typing import Unpack

import pyomo.environ as pyo

from kvopt.formulations.layout import (
    LARGEST_COLUMNS,
    Layout,
    LayoutOptions,
    layout,
    refuse_columns,
)
from kvopt.formulations.pyomo.time_indexed import (
    active_starts,
    add_each_starts_once,
    add_memory,
    add_order,
    add_starts,
    add_total_latency,
)
from kvopt.formulations.windows import Windows
from kvopt.problem.instance import Instance, refuse_extras, refuse_fleet


def running_status(
    instance: Instance,
    windows: Windows | None = None,
    *,
    as_printed: bool = False,
    **options: Unpack[LayoutOptions],
) -> pyo.ConcreteModel:
    """Build the program with running variables.

    Parameters
    ----------
    instance, windows, options
        As in `kvopt.formulations.pyomo.time_indexed`.
    as_printed
        Let a request run while ``0 <= t - k < o_i``, one token short, as the paper prints
        it.  Its optimum is a lower bound and need not be feasible.
    """
    refuse_fleet(instance, "the program with running variables")
    refuse_extras(instance, "the program with running variables")
    plan = layout(instance, windows, **options)
    first_age = 0 if as_printed else 1
    lives = [
        range(window[0] + first_age, window[-1] + first_age + request.output) if window else window
        for window, request in zip(plan.windows, instance, strict=True)
    ]
    most = options.get("largest_columns", LARGEST_COLUMNS)
    refuse_columns(plan.num_columns + sum(map(len, lives)), most)
    model = pyo.ConcreteModel(name=instance.name or "running-status")
    add_starts(model, plan)
    add_running(model, lives)
    add_total_latency(model, instance)
    add_each_starts_once(model, plan)
    add_running_status(model, instance, plan, first_age)
    add_memory(model, instance, plan, first_age)
    add_order(model, instance, plan)
    return model


def add_running(model: pyo.ConcreteModel, lives: list[range]) -> None:
    """Request i may be running at any time that one of its starts reaches.

    y[i, t] in {0, 1}
    """
    columns = [(i, t) for i, life in enumerate(lives) for t in life]
    model.y = pyo.Var(columns, domain=pyo.Binary)


def add_running_status(
    model: pyo.ConcreteModel, instance: Instance, plan: Layout, first_age: int
) -> None:
    """A request is running from its start until its last token, and at no other time.

    y[i, t] = sum over k with 1 <= t - k <= o_i of x[i, k]   for each i, t   (v1 B.1, 2 and 4)
    """

    def rule(model: pyo.ConcreteModel, i: int, t: int) -> object:
        output = instance.requests[i].output
        starts = active_starts(plan.windows[i], output, t + 1 - first_age)
        return model.y[i, t] == pyo.quicksum(model.x[i, k] for k in starts)

    model.running = pyo.Constraint(list(model.y.keys()), rule=rule)
