"""The constraint program for requests that may pause: one variable for the wait until each token.

Token j of request i is a task of length 1 that holds ``s_i + j``, after the task of token j - 1;
all of them share the memory.  Time-indexed variants were much slower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from kvopt.formulations.windows import Windows
from kvopt.kernels.dependencies import load_cp_model
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.standard_form import in_standard_form, start_order

LARGEST_TOKENS = 20_000
"""Limit of the tokens of all requests: each is a task."""


@dataclass(frozen=True, eq=False)  # == of two variables is a constraint
class TokenModel:
    """A ``cp_model.CpModel``, to which constraints can be added, and the waits of all tokens.

    Token j of a request that waits w rounds in all until then comes at the time a + w + j.
    """

    model: Any
    instance: Instance
    waits: list[list[Any]]

    def hint(self, schedule: Schedule) -> None:
        """Suggest a schedule."""
        rows = zip(self.instance, self.waits, in_standard_form(schedule).active_times, strict=True)
        for request, waits, times in rows:
            for j, (wait, time) in enumerate(zip(waits, times, strict=True), 1):
                self.model.add_hint(wait, time - request.arrival - j)

    def schedule(self, value: Callable[[Any], Any]) -> Schedule:
        """Return the schedule in the values of variables."""
        waits = [[int(value(wait)) for wait in row] for row in self.waits]
        return Schedule.at_times(self.instance, _times(self.instance, waits))


def _times(instance: Instance, waits: list[list[Any]]) -> list[list[Any]]:
    """Return the time of each token, from the wait until it."""
    return [
        [wait + (request.arrival + j) for j, wait in enumerate(row, 1)]
        for request, row in zip(instance, waits, strict=True)
    ]


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
    waits = [
        [
            model.new_int_var(window[0] - r.arrival, window[-1] - r.arrival, f"wait_{i}_{j}")
            for j in range(1, r.output + 1)
        ]
        for i, (r, window) in enumerate(zip(instance, windows, strict=True))
    ]
    for row in waits:
        for wait, later in pairwise(row):
            model.add(later >= wait)
    times = _times(instance, waits)
    tasks = [model.new_fixed_size_interval_var(t, 1, f"task_{t}") for row in times for t in row]
    held = [r.prompt + j for r in instance for j in range(1, r.output + 1)]
    model.add_cumulative(tasks, held, instance.memory)
    for i, h in start_order(instance):
        for time, later in zip(times[i], times[h], strict=True):
            model.add(time <= later)
    ended = zip(waits, instance, strict=True)
    model.minimize(sum(row[-1] + request.output for row, request in ended))
    return TokenModel(model, instance, waits)
