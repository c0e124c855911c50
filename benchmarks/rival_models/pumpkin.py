"""Lazy clause generation, with Pumpkin: one start variable a request and one cumulative.

A request is a tower of tasks.  Its prompt and first token are a task of o_i rounds, and each token
after the first is one that begins a round later than the one before; all end together.  So a
single cumulative over all tasks is memory, exactly, without a variable for each round.
"""

from __future__ import annotations

from pumpkin_solver import Model, constraints
from pumpkin_solver.optimisation import Direction, Optimiser

from kvopt.timetable.standard_form import start_order
from rival_models import Offers, Problem


def work(problem: Problem, offers: Offers) -> None:
    """Look for better and better schedules until there are none."""
    instance = problem.instance
    model = Model()
    starts = [
        model.new_integer_variable(window[0], window[-1], f"start_{i}")
        for i, window in enumerate(problem.windows)
    ]
    tasks, lengths, tokens = [], [], []
    for start, request in zip(starts, instance, strict=True):
        for grown in range(request.output):
            tasks.append(start.offset(grown))
            lengths.append(request.output - grown)
            tokens.append(1 if grown else request.prompt + 1)
    tag = model.new_constraint_tag
    model.add_constraint(constraints.Cumulative(tasks, lengths, tokens, instance.memory, tag()))
    for i, j in start_order(instance):
        both = [starts[i], starts[j].scaled(-1)]
        model.add_constraint(constraints.LessThanOrEquals(both, 0, tag()))
    fixed = instance.total_output - sum(request.arrival for request in instance)
    least = sum(window[0] for window in problem.windows)
    total = model.new_integer_variable(least, problem.known.objective - fixed, "total")
    model.add_constraint(constraints.Equals([*starts, total.scaled(-1)], 0, tag()))
    model.propagate_to_fixpoint()
    offers.bound(fixed + model.lower_bound(total))  # it says no other before the end
    hints = dict(zip(starts, problem.known.starts, strict=True))
    found = model.optimise(
        total,
        optimiser=Optimiser.LinearSatUnsat,
        direction=Direction.Minimise,
        timeout=problem.clock_seconds,
        on_solution=lambda s: offers.starts([s.int_value(start) for start in starts]),
        warm_start=hints,
    )
    if type(found).__name__ == "Optimal":
        offers.bound(fixed + found._0.int_value(total))
