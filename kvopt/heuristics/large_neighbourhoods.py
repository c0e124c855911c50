"""Large-neighbourhood search: a few requests move at a time, all others stay where they are.

The few are neighbours in time.  With everything else that can meet them, held at its
start, they make a small problem for the pair model (`kvopt.formulations.cpsat`), which CP-SAT
mostly solves to the end in a fraction of a second.  Neighbourhoods grow while that is
so and shrink when it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from kvopt.formulations.cpsat import pair_model
from kvopt.formulations.windows import Windows
from kvopt.heuristics.turns import Passes, Turn, take_one
from kvopt.kernels.dependencies import load_cp_model
from kvopt.model.instance import Instance
from kvopt.search.incumbent import Search
from kvopt.search.threads import run_in_thread


def search_neighbourhoods(
    search: Search, seconds: float, seed: int = 0, most_rounds: int | None = None
) -> None:
    """Improve the schedule of a search for so long, or until nothing improves any more."""
    take_one(search, solve_neighbourhoods, seconds, seed, most_rounds)


def solve_neighbourhoods(turn: Turn, seed: int = 0) -> Passes:
    """Solve one neighbourhood after the other, until nothing improves any more."""
    search = turn.search
    if search.schedule is None or len(search.instance) < 2:
        return
    params = search.params.improve
    random, size, idle = Random(seed), 6, 0
    while idle < params.idle_neighbourhoods:
        starts = search.schedule.starts
        free = chosen(search.instance, starts, size, random)
        members, windows = neighbourhood(search.instance, starts, free)
        if len(members) > params.neighbourhood:
            if size == 2:
                return  # even two requests meet too many others
            size = max(2, size - 1)
        else:
            improved, complete = _solve(search, starts, members, windows)
            idle = 0 if improved else idle + 1
            size = min(size + 1, len(search.instance)) if complete else max(2, size - 1)
        yield


def chosen(instance: Instance, starts: Sequence[int], size: int, random: Random) -> list[int]:
    """Choose neighbours in time: a stretch of the order of starts, or a part of a longer one."""
    order = sorted(range(len(instance)), key=lambda i: (starts[i], i))
    length = size if random.random() < 0.7 else 2 * size
    length = min(length, len(order))
    first = random.randrange(len(order) - length + 1)
    stretch = order[first : first + length]
    return stretch if length <= size else random.sample(stretch, size)


def neighbourhood(
    instance: Instance, starts: Sequence[int], free: Sequence[int]
) -> tuple[list[int], Windows]:
    """Let some requests move by up to their longest output, and hold all that they can meet.

    Returned are these and those, and the rounds at which each of them may start.
    """
    requests = instance.requests
    slack = max(requests[i].output for i in free)
    first = min(starts[i] for i in free) - slack
    last = max(starts[i] for i in free) + slack
    windows = [range(max(requests[i].arrival, first), last + 1) for i in free]
    begin = min(window[0] for window in windows)
    end = max(window[-1] + requests[i].output for i, window in zip(free, windows, strict=True))
    moving = set(free)
    held = [
        i
        for i, start in enumerate(starts)
        if i not in moving and start < end and start + requests[i].output > begin
    ]
    windows += [range(starts[i], starts[i] + 1) for i in held]
    return [*free, *held], tuple(windows)


def _solve(
    search: Search, starts: Sequence[int], members: list[int], windows: Windows
) -> tuple[bool, bool]:
    """Solve one small problem; return whether it improved and whether it was solved to the end."""
    assert search.schedule is not None
    cp_model = load_cp_model()
    instance, workers = search.instance, list(search.schedule.workers)
    part = replace(instance, requests=tuple(instance.requests[i] for i in members))
    allowed = [
        range(instance.workers) if len(window) > 1 else (workers[i],)
        for i, window in zip(members, windows, strict=True)
    ]
    with search.timing("build"):
        built = pair_model(part, windows, order_identical=False, workers=allowed)
        for place, i in enumerate(members):
            built.hint(place, starts[i], workers[i])
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1  # so that one seed gives one result
    solver.parameters.random_seed = search.seed % 2**31
    solver.parameters.max_deterministic_time = search.params.improve.neighbourhood_effort
    solver.parameters.catch_sigint_signal = False
    outcome: list[Any] = []
    with search.timing("solve"):
        ended = run_in_thread(
            search,
            lambda: outcome.append(solver.solve(built.model)),
            cancel=solver.stop_search,
        )
    if not ended or outcome[0] not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return False, False
    moved = list(starts)
    for i, start, worker in zip(members, *built.places(solver.value), strict=True):
        moved[i], workers[i] = start, worker
    found = search.offer_starts(moved, "large-neighbourhood search", workers)
    return found, outcome[0] == cp_model.OPTIMAL
