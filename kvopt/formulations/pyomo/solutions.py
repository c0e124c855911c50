"""Back from a solved model to a schedule."""

from __future__ import annotations

from itertools import pairwise

import pyomo.environ as pyo

from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.schedule_files import INTEGRALITY


def schedule_from(model: pyo.ConcreteModel, instance: Instance) -> Schedule | None:
    """Read the schedule of an instance from its solved model, None unless it is integral."""
    has_starts, ones = hasattr(model, "x"), []
    for index, variable in (model.x if has_starts else model.y).items():
        value = pyo.value(variable, exception=False) or 0.0
        if abs(value - round(value)) > INTEGRALITY:
            return None
        if round(value) == 1:
            ones.append(index)
    if has_starts:
        if [i for i, *_ in ones] != [*range(len(instance))]:
            return None
        workers = [worker for _, _, *at in ones for worker in at]
        return Schedule(instance, [k for _, k, *_ in ones], workers)
    first: dict[tuple[int, int], int] = {}
    for i, j, t in ones:  # times ascend
        first.setdefault((i, j), t)
    times = [
        [first.get((i, j), 0) for j in range(1, request.output + 1)]
        for i, request in enumerate(instance)
    ]
    ascends = all(a < b for active in times for a, b in pairwise([0, *active]))
    return Schedule.at_times(instance, times) if ascends else None
