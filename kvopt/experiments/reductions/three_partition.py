"""3-Partition as scheduling, corrected, and the partition read off a schedule.

Given are 3m integers in (T/4, T/2) with the sum mT; can they be split into triples that sum to
T each?  A number x becomes a request with prompt x and one token of output, and the cache has
T + 3 tokens.  Four requests never fit together, three do if and only if their numbers sum to at
most T, so the total latency reaches 3m(m+1)/2 if and only if the triples exist.
``docs/three-partition.md`` has the proof, and why the cache is not T as wang-2025 prints.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kvopt.certificates import Certificate, certify
from kvopt.engines.solving import available_threads, checked_limit
from kvopt.errors import InvalidInput
from kvopt.experiments.reductions.triples import Triple, cover
from kvopt.model.instance import Instance, Request, checked_integer
from kvopt.model.schedule import Schedule
from kvopt.search.incumbent import Search
from kvopt.search.result import SolveResult
from kvopt.search.threads import signals_interrupt
from kvopt.simulation.simulator import Stopped

_TRIPLES = "search of triples"

_MOST_STEPS = 20_000
"""Steps of the direct search, a second or so; what is not decided by then rarely is later."""
_COUNTING_SHARE = 0.5
"""Share of the time left for triples by counting; the rest is for a proof."""
_SECONDS_AFTER_YES = 5.0
"""For a checked bound on a total latency that counting shows to be least."""


@dataclass(frozen=True)
class ThreePartition:
    """A 3-Partition problem; a multiset that is none is refused.

    Parameters
    ----------
    target
        The sum T of every triple.
    numbers
        3m integers in (T/4, T/2) with the sum mT.
    """

    target: int
    numbers: tuple[int, ...]

    def __post_init__(self) -> None:
        checked_integer(self.target, "--target", 1)
        for position, number in enumerate(self.numbers, 1):
            field = f"X{position}"
            checked_integer(number, field, 1)
            if not self.target < 4 * number < 2 * self.target:
                quarter, half = self.target / 4, self.target / 2
                reason = f"must lie between T/4 = {quarter:g} and T/2 = {half:g}, got {number}"
                raise InvalidInput(reason, field=field)
        if len(self.numbers) % 3:
            raise InvalidInput(f"must be 3m of them, got {len(self.numbers)}", field="numbers")
        wanted = self.triples * self.target
        if sum(self.numbers) != wanted:
            reason = f"must sum to mT = {wanted}, got {sum(self.numbers)}"
            raise InvalidInput(reason, field="numbers")

    @property
    def triples(self) -> int:
        """The number m of triples."""
        return len(self.numbers) // 3

    @property
    def threshold(self) -> int:
        """Total latency ``3m(m+1)/2``, reached if and only if a partition exists."""
        return 3 * self.triples * (self.triples + 1) // 2

    def instance(self) -> Instance:
        """Return the corrected instance: M = T + 3."""
        return self._with_memory(self.target + 3, "with M = T + 3")

    def printed_instance(self) -> Instance:
        """Return the instance as wang-2025 prints it, M = T, which the answer does not follow."""
        return self._with_memory(self.target, "as printed, M = T")

    def _with_memory(self, memory: int, how: str) -> Instance:
        name = f"three-partition-n{len(self.numbers)}-m{memory}"
        notes = {"source": f"wang-2025 theorem 2.2, {how}", "target": self.target}
        return Instance(memory, [Request(0, x, 1) for x in self.numbers], name, notes)


@dataclass(frozen=True)
class Reduction:
    """What is known of a 3-Partition problem through its instance.

    Parameters
    ----------
    problem
        The problem.
    result
        Both sides of the optimum of its instance.
    certificate
        The same with a proof that `kvopt.verify` repeats, where time was left for one.
    """

    problem: ThreePartition
    result: SolveResult
    certificate: Certificate | None

    @property
    def answer(self) -> str:
        """``yes``, ``no``, or ``open`` when a limit came first."""
        if self.result.objective == self.problem.threshold:
            return "yes"
        bound = self.result.lower_bound
        return "no" if bound is not None and bound > self.problem.threshold else "open"

    @cached_property
    def partition(self) -> list[Triple] | None:
        """Triples read off the schedule: what starts together; None unless the answer is yes."""
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
        result = self.result
        triples = None if self.partition is None else [list(triple) for triple in self.partition]
        return {
            "answer": self.answer,
            "partition": triples,
            "objective": result.objective,
            "threshold": self.problem.threshold,
            "status": str(result.status),
            "lower_bound": result.lower_bound,
            "bound_source": None if result.bound_source is None else str(result.bound_source),
            "bounded_by": result.bounded_by,
            "starts": None if result.starts is None else list(result.starts),
            "stop_reason": str(result.stop_reason),
            "seconds": round(result.seconds, 6),
        }


def decide(
    problem: ThreePartition, *, time_limit: float | None = None, threads: int | None = None
) -> Reduction:
    """Decide a 3-Partition problem through the optimum of its instance.

    Searches of triples come first; what they find becomes a schedule, and that nothing exists a
    claim.  Then the instance is certified, so that the answer rests on a proof that can be
    checked again: ``result.bound_source`` says whether it does.

    Parameters
    ----------
    problem
        The problem.
    time_limit
        Seconds for all of it; None to go on until the optimum of the instance is proved.
    threads
        For the solvers.
    """
    instance = problem.instance()
    search = Search(
        instance,
        time_limit=checked_limit(time_limit),
        threads=threads or available_threads(),
    )
    with signals_interrupt(search):
        search_triples(problem, search)
    if search.signal_number is not None:
        return Reduction(problem, search.result(_TRIPLES), None)
    certificate = certify(
        instance,
        schedule=search.schedule,
        time_limit=_left(search, time_limit),
        threads=search.threads,
    )
    _take(certificate, search)
    return Reduction(problem, search.result("reduce"), certificate)


def _left(search: Search, time_limit: float | None) -> float | None:
    """Return the seconds for a certificate; a partition that was found needs no more proof."""
    if search.schedule is not None:
        return min(search.remaining, _SECONDS_AFTER_YES)
    return None if time_limit is None else search.remaining


def search_triples(problem: ThreePartition, search: Search) -> None:
    """Offer what counting says, and what searches of triples find or rule out."""
    # At most three requests are active at a time, each for one round, so at most 3k complete by
    # round k, whatever the numbers are.
    search.offer_claimed(problem.threshold, "at most three at a time")
    steps = 0

    def enough() -> bool:
        nonlocal steps
        steps += 1
        return steps > _MOST_STEPS or _is_over(search)

    try:
        _offer(problem, search, cover(problem.numbers, problem.target, enough), _TRIPLES)
    except Stopped:
        if not _is_over(search):
            _search_by_counts(problem, search)


def _search_by_counts(problem: ThreePartition, search: Search) -> None:
    # Imported here: most problems never need it, and it stands on a solver.
    from kvopt.experiments.reductions.counting import cover_by_counts

    seconds = _COUNTING_SHARE * search.remaining
    with suppress(Stopped):
        triples = cover_by_counts(problem.numbers, problem.target, search, seconds)
        _offer(problem, search, triples, "CP-SAT on triples")


def _offer(
    problem: ThreePartition, search: Search, triples: list[Triple] | None, found_by: str
) -> None:
    if triples is None:
        search.offer_claimed(problem.threshold + 1, found_by)
    else:
        search.offer_starts(_starts(problem, triples), found_by)


def _is_over(search: Search) -> bool:
    return search.remaining <= 0 or search.signal_number is not None


def _starts(problem: ThreePartition, triples: list[Triple]) -> list[int]:
    """Return the schedule that starts a triple in each round."""
    rounds: dict[int, list[int]] = defaultdict(list)
    for start, triple in enumerate(triples):
        for number in triple:
            rounds[number].append(start)
    return [rounds[number].pop() for number in problem.numbers]


def _take(certificate: Certificate, search: Search) -> None:
    if isinstance(certificate.upper, Schedule):
        search.offer_starts(certificate.upper.starts, str(certificate.provenance["found_by"]))
    if certificate.lower is not None:
        lower = certificate.lower
        search.offer_bound(lower)
    if certificate.signal_number is not None:
        search.interrupt(certificate.signal_number)
