"""3-Partition by counting: how often each triple of values is taken, with CP-SAT.

Where numbers repeat, or are many, the direct search tries too much; here equal triples are one
variable.  A cover that is found is checked as a schedule; that there is none is a solver's word.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from kvopt.experiments.reductions.triples import Triple
from kvopt.kernels.dependencies import load_cp_model
from kvopt.search.incumbent import Search
from kvopt.search.threads import run_in_thread
from kvopt.simulation.simulator import Stopped

MOST_TRIPLES = 400_000
"""Triples of values that a model may have."""


def cover_by_counts(
    numbers: Sequence[int], target: int, search: Search, seconds: float
) -> list[Triple] | None:
    """Split a multiset into triples that sum to ``target``, or return None if none exist.

    Raises
    ------
    Stopped
        When time runs out, the search is interrupted, or the triples are too many.
    """
    counts = Counter(numbers)
    if len(counts) ** 2 > 2 * MOST_TRIPLES:
        raise Stopped
    triples = triples_of(counts, target)
    model = load_cp_model()
    built = model.CpModel()
    taken = [built.new_int_var(0, most, "") for most in (_most(t, counts) for t in triples)]
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


def triples_of(counts: Counter[int], target: int) -> list[Triple]:
    """Return every triple of values, falling, that sums to the target and that there is."""
    values = sorted(counts, reverse=True)
    found = []
    for first in values:
        for second in values:
            third = target - first - second
            if third <= second <= first and _most((first, second, third), counts):
                found.append((first, second, third))
    return found


def _most(triple: Triple, counts: Counter[int]) -> int:
    """Return how often a triple could be taken on its own."""
    return min(counts[value] // times for value, times in Counter(triple).items())
