"""The constraint program for requests that may pause: one variable for the time of each token.

Token j of request i is a task of length 1 that holds ``s_i + j``, after the task of token j - 1;
all of them share the memory.  Time-indexed variants were much slower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from kvopt.formulations.windows import Windows
from kvopt.kernels.dependencies import load_cp_model
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.standard_form import identical_groups, in_standard_form

LARGEST_TOKENS = 20_000
"""Limit of the tokens of all requests: each is a task."""


@dataclass(frozen=True, eq=False)  # == of two variables is a constraint
class TokenModel:
    """A ``cp_model.CpModel``, to which constraints can be added, and the times of all tokens."""

    model: Any
    instance: Instance
    times: list[list[Any]]

    def hint(self, schedule: Schedule) -> None:
        """Suggest a schedule."""
        known = in_standard_form(schedule).active_times
        for variable, time in zip(chain(*self.times), chain(*known), strict=True):
            self.model.add_hint(variable, time)

    def schedule(self, value: Callable[[Any], Any]) -> Schedule:
        """Return the schedule in the values of variables."""
        times = [[int(value(time)) for time in row] for row in self.times]
        return Schedule.at_times(self.instance, times)


def token_model(instance: Instance, windows: Windows) -> TokenModel:
    """Build the model; its objective is total latency.

    Requests of one shape produce each token in order of arrival, without loss.

    Parameters
    ----------
    instance
        The problem.
    windows
        Rounds k to consider for each request: token j comes at a time ``k + j``.
    """
    model = load_cp_model().CpModel()
    times = [
        [
            model.new_int_var(window[0] + j, window[-1] + j, f"token_{i}_{j}")
            for j in range(1, request.output + 1)
        ]
        for i, (request, window) in enumerate(zip(instance, windows, strict=True))
    ]
    for row in times:
        for time, later in pairwise(row):
            model.add(later >= time + 1)
    tasks = [model.new_fixed_size_interval_var(t, 1, f"task_{t}") for row in times for t in row]
    held = [r.prompt + j for r in instance for j in range(1, r.output + 1)]
    model.add_cumulative(tasks, held, instance.memory)
    for group in identical_groups(instance):
        for i, h in pairwise(group):
            for time, later in zip(times[i], times[h], strict=True):
                model.add(time <= later)
    arrivals = sum(request.arrival for request in instance)
    model.minimize(sum(row[-1] for row in times) - arrivals)
    return TokenModel(model, instance, times)
