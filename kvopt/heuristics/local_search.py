"""Local search over orders: simulated annealing in cycles that get longer.

A schedule is an order and a release for each request (`kvopt.heuristics.decode`).  A step moves
one request in the order, swaps two or holds one back, and decodes again from the change on.
Each cycle starts from the best schedule so far and cools down.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvopt.errors import TooLarge
from kvopt.heuristics.annealing import Trial, anneal, trial_of
from kvopt.heuristics.decode import Line, Problem, first_arrival, line_of, problem_of
from kvopt.kernels.compiling import working_time
from kvopt.search.incumbent import Search

_FIRST_CYCLE = 20_000
"""Steps of the first cycle; each further one has twice as many."""
_LONGEST_CYCLE = 2_000_000
"""Limit of the steps of a cycle."""
_CHUNKS = 40
"""Parts of a cycle, between which limits are looked at."""
_COLD = 0.3
"""Heat at the end of a cycle, in rounds of latency."""
_IDLE_CYCLES = 4
"""Cycles without improvement after which a search without a limit ends."""


def search_orders(
    search: Search, seconds: float, seed: int = 0, most_cycles: int | None = None
) -> None:
    """Improve the schedule of a search for so long, or until nothing improves any more."""
    if search.schedule is None or len(search.instance) < 2:
        return
    try:
        problem = problem_of(search.instance)
    except TooLarge as error:
        search.note(f"local search: {error}")
        return
    end = working_time() + seconds
    steps, cycles, idle = _FIRST_CYCLE, 0, 0
    while idle < _IDLE_CYCLES and cycles != most_cycles and not _is_over(search, end):
        before = search.schedule.objective
        _cycle(search, problem, steps, seed + cycles, end)
        idle = 0 if search.schedule.objective < before else idle + 1
        cycles += 1
        steps = min(2 * steps, _LONGEST_CYCLE)


def _is_over(search: Search, end: float) -> bool:
    return working_time() >= end or search.should_stop()


def _cycle(search: Search, problem: Problem, steps: int, seed: int, end: float) -> None:
    """Cool down once, from the best schedule so far."""
    assert search.schedule is not None
    line = _line(search, problem, search.schedule.starts)
    trial = trial_of(problem, line, seed)
    count = len(search.instance)
    reach = max(1, min(count - 1, 20 if count > 200 else count))
    hot = max(2.0, search.instance.total_output / count / 2)
    for part in range(_CHUNKS):
        heats = tuple(hot * (_COLD / hot) ** (step / _CHUNKS) for step in (part, part + 1))
        anneal(problem, line, trial, heats, max(1, steps // _CHUNKS), reach)
        _offer(search, trial)
        if _is_over(search, end):
            return


def _line(search: Search, problem: Problem, starts: Sequence[int]) -> Line:
    """Return the schedule as a line: its order, and its starts as releases where it needs them."""
    first = first_arrival(search.instance)
    order = sorted(range(len(starts)), key=lambda i: (starts[i], i))
    line = line_of(problem, order)
    if int(line.starts.sum()) + first * len(starts) > sum(starts):
        line = line_of(problem, order, [start - first for start in starts])
    return line


def _offer(search: Search, trial: Trial) -> None:
    assert search.schedule is not None
    first = first_arrival(search.instance)
    if int(trial.best.sum()) + first * len(trial.best) < sum(search.schedule.starts):
        search.offer_starts([int(start) + first for start in trial.best], "local search")
