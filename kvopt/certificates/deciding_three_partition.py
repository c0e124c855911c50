"""Decide 3-Partition through the optimum of its instance, and read the triples off a schedule."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Unpack

from kvopt.certificates.building import certify
from kvopt.errors import Stopped
from kvopt.incumbent.certificate import Certificate
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread, signals_interrupt
from kvopt.incumbent.limits import LimitOptions, limits_of
from kvopt.incumbent.result import SolveResult
from kvopt.kernels.solver_versions import load_cp_model
from kvopt.problem.three_partition import ThreePartition

Triple = tuple[int, int, int]

_TRIPLES = "CP-SAT on triples"

_SHARED = "status", "lower_bound", "bound_source", "bounded_by", "starts", "stop_reason", "seconds"
"""Fields that ``kvopt reduce --json`` and ``kvopt solve --json`` share."""
MOST_VALUES = 1_200
"""Limit of different numbers whose triples are listed, which takes a second."""
_COUNTING_SHARE = 0.5
"""Share of the time for triples; the rest is for a proof."""
_SECONDS_AFTER_YES = 5.0
"""Seconds for a checked bound on a total latency that is optimal by counting."""


@dataclass(frozen=True)
class Reduction:
    """Results on a 3-Partition problem through its instance.

    Parameters
    ----------
    problem
        The problem.
    result
        Both sides of the optimum of its instance.
    certificate
        The same with a proof that `kvopt.verify` repeats, if there was time for one.
    """

    problem: ThreePartition
    result: SolveResult
    certificate: Certificate | None

    @property
    def answer(self) -> str:
        """``yes``, ``no``, or ``open`` after a limit."""
        if self.result.objective == self.problem.threshold:
            return "yes"
        bound = self.result.lower_bound
        return "no" if bound is not None and bound > self.problem.threshold else "open"

    @cached_property
    def partition(self) -> list[Triple] | None:
        """Triples of the schedule, requests that start together; None unless the answer is yes."""
        if self.answer != "yes" or self.result.starts is None:
            return None
        batches: dict[int, list[int]] = defaultdict(list)
        for number, start in zip(self.problem.numbers, self.result.starts, strict=True):
            batches[start].append(number)
        triples = [(a, b, c) for a, b, c in map(sorted, batches.values())]
        assert all(sum(triple) == self.problem.target for triple in triples)
        return sorted(triples)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt reduce three-partition --json`` prints."""
        result = self.result.to_json()
        return {
            "answer": self.answer,
            "partition": self.partition,
            "objective": result["objective"],
            "threshold": self.problem.threshold,
            **{name: result[name] for name in _SHARED},
        }


def decide(problem: ThreePartition, **options: Unpack[LimitOptions]) -> Reduction:
    """Decide a 3-Partition problem through the optimum of its instance.

    A search for triples comes first.  Its partition becomes a schedule, or its end without one a
    claim.  Then the instance is certified, so that the answer has a proof that can be checked
    again, which ``result.bound_source`` tells.

    Parameters
    ----------
    problem
        The problem.
    options
        As of `Limits`; without a time limit it works until the optimum of the instance is proved.
    """
    instance = problem.instance()
    search = Search(instance, limits := limits_of(options))
    with signals_interrupt(search):
        search_triples(problem, search)
    if search.granted.is_interrupted:
        return Reduction(problem, search.result(_TRIPLES), None)
    left = search.granted.left
    if search.schedule is not None:  # a partition needs no more proof
        left = min(left, _SECONDS_AFTER_YES)
    certificate = certify(instance, schedule=search.schedule, limits=limits, time_limit=left)
    if certificate.upper is not None:
        search.offer_starts(certificate.upper.starts, str(certificate.provenance["found_by"]))
    if certificate.lower is not None:
        search.offer_bound(certificate.lower)
    if certificate.signal_number is not None:
        search.granted.interrupt(certificate.signal_number)
    return Reduction(problem, search.result("reduce"), certificate)


def search_triples(problem: ThreePartition, search: Search) -> None:
    """Offer bounds by counting, and results of a search of triples."""
    # At most three requests are active at a time, each for one round, so at most 3k complete by
    # round k, for any numbers.
    search.offer_claimed(problem.threshold, "at most three at a time")
    with suppress(Stopped), search.surviving(_TRIPLES):
        triples = cover(problem, search, _COUNTING_SHARE * search.budget.left)
        if triples is None:
            search.offer_claimed(problem.threshold + 1, _TRIPLES)
        else:
            search.offer_starts(_starts(problem, triples), _TRIPLES)


def _starts(problem: ThreePartition, triples: list[Triple]) -> list[int]:
    """Return the schedule that starts a triple in each round."""
    rounds: dict[int, list[int]] = defaultdict(list)
    for start, triple in enumerate(triples):
        for number in triple:
            rounds[number].append(start)
    return [rounds[number].pop() for number in problem.numbers]


def cover(
    problem: ThreePartition, search: Search, seconds: float = math.inf
) -> list[Triple] | None:
    """Split the numbers into triples that sum to the target, or return None if none exist.

    CP-SAT chooses how often each triple of values is taken, so that equal triples are one
    variable.  A cover is checked as a schedule; that none exists is a claim of the solver.
    `Stopped` is raised when time runs out, the search is interrupted, or the different numbers are
    too many.
    """
    counts = Counter(problem.numbers)
    if len(counts) > MOST_VALUES or seconds <= 0:
        raise Stopped
    triples = list(_triples(counts, problem.target))
    model = load_cp_model()
    built = model.CpModel()
    taken = [built.new_int_var(0, _times(triple, counts), "") for triple in triples]
    uses: dict[int, list[Any]] = {value: [] for value in counts}
    for triple, variable in zip(triples, taken, strict=True):
        for value, times in Counter(triple).items():
            uses[value].append(times * variable)
    for value, often in counts.items():
        built.add(sum(uses[value]) == often)
    solver = model.CpSolver()
    solver.parameters.num_workers = search.limits.threads
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


def _triples(counts: Counter[int], target: int) -> Iterator[Triple]:
    """Yield the triples of numbers, falling, that sum to the target."""
    values = sorted(counts, reverse=True)
    for first, second in product(values, repeat=2):
        triple = first, second, target - first - second
        if triple[2] <= second <= first and _times(triple, counts):
            yield triple


def _times(triple: Triple, counts: Counter[int]) -> int:
    """Return how often a triple can be taken alone."""
    return min(counts[value] // often for value, often in Counter(triple).items())
