"""Exact covers of a multiset by triples of one sum: by direct search, and by counting."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.kernels.dependencies import load_cp_model
from kvopt.simulate.simulator import Stopped

Triple = tuple[int, int, int]

_MOST_REMEMBERED = 1_000_000
"""Multisets known to have no cover that are kept; forgetting one only costs time."""

MOST_TRIPLES = 400_000
"""Triples of values that a model may have."""


def cover(
    numbers: Sequence[int], target: int, should_stop: Callable[[], bool] = lambda: False
) -> list[Triple] | None:
    """Split a multiset into triples that sum to ``target``, or return None if none exist.

    The largest number left is in some triple, so its triples are all that a step has to try.
    Equal numbers are interchangeable, so a multiset that failed once fails again.

    Raises
    ------
    Stopped
        When it is asked to stop before it knows.

    Examples
    --------
    >>> cover([6, 6, 7, 7, 6, 8], 20)
    [(8, 6, 6), (7, 7, 6)]
    >>> cover([6, 6, 6, 6, 9, 7], 20) is None
    True
    """
    left = Counter(numbers)
    chosen: list[Triple] = []
    failed: set[tuple[int, ...]] = set()
    levels = [_triples(left, target)]
    while sum(left.values()):
        if should_stop():
            raise Stopped
        triple = next(levels[-1], None)
        if triple is None:
            if len(failed) < _MOST_REMEMBERED:
                failed.add(_state(left))
            levels.pop()
            if not chosen:
                return None
            left.update(chosen.pop())
            continue
        left.subtract(triple)
        if _state(left) in failed:
            left.update(triple)
            continue
        chosen.append(triple)
        levels.append(_triples(left, target))
    return chosen


def _triples(left: Counter[int], target: int, *, of_largest: bool = True) -> Iterator[Triple]:
    """Yield the triples, falling, that are left: those of the largest number, or all of them."""
    values = sorted((value for value, count in left.items() if count), reverse=True)
    for first in values[:1] if of_largest else values:
        for second in values:
            triple = first, second, target - first - second
            if triple[2] <= second <= first and _times(triple, left):
                yield triple


def _times(triple: Triple, left: Counter[int]) -> int:
    """Return how often a triple could be taken on its own."""
    return min(left[value] // count for value, count in Counter(triple).items())


def _state(left: Counter[int]) -> tuple[int, ...]:
    return tuple(sorted(left.elements()))


def cover_by_counts(
    numbers: Sequence[int], target: int, search: Search, seconds: float
) -> list[Triple] | None:
    """Do the same with CP-SAT, by how often each triple of values is taken.

    Where numbers repeat, or are many, the direct search tries too much; here equal triples are one
    variable.  A cover that is found is checked as a schedule; that there is none is a solver's
    word.

    Raises
    ------
    Stopped
        When time runs out, the search is interrupted, or the triples are too many.
    """
    counts = Counter(numbers)
    if len(counts) ** 2 > 2 * MOST_TRIPLES:
        raise Stopped
    triples = list(_triples(counts, target, of_largest=False))
    model = load_cp_model()
    built = model.CpModel()
    taken = [built.new_int_var(0, _times(triple, counts), "") for triple in triples]
    uses: dict[int, list[Any]] = {value: [] for value in counts}
    for triple, variable in zip(triples, taken, strict=True):
        for value, times in Counter(triple).items():
            uses[value].append(times * variable)
    for value, count in counts.items():
        built.add(sum(uses[value]) == count)
    solver = model.CpSolver()
    solver.parameters.num_workers = search.threads
    solver.parameters.catch_sigint_signal = False
    if math.isfinite(seconds):
        solver.parameters.max_time_in_seconds = seconds
    outcome: list[Any] = []
    run_in_thread(search, lambda: outcome.append(solver.solve(built)), solver.stop_search)
    if outcome and outcome[0] in (model.OPTIMAL, model.FEASIBLE):
        rows = zip(triples, taken, strict=True)
        return [triple for triple, y in rows for _ in range(solver.value(y))]
    if outcome and outcome[0] == model.INFEASIBLE:
        return None
    raise Stopped
