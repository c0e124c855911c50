"""Evaluate the proof of a lower bound of any kind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import mul
from typing import Any

from kvopt.verify.configurations import by_configurations
from kvopt.verify.prices import by_prices, by_shared_prices
from kvopt.verify.problem import Problem, Request
from kvopt.verify.seconds import by_shares
from kvopt.verify.volume import by_volume
from kvopt.verify.work import Invalid, Prepared, Work, ascend, paired, refuse

Proof = dict[str, Any]
KINDS: dict[str, tuple[str, Callable[[Problem, Proof, Work], Prepared]]] = {
    "prices": ("prices", by_prices),
    "slot-prices": ("prices", by_prices),
    "block-prices": ("prices", by_prices),
    "volume": ("volume", by_volume),
    "configurations": ("configurations prices", by_configurations),
    "search": ("configurations prices", by_configurations),
    "shared-prices": ("prices", by_shared_prices),
    "shares": ("seconds volume", by_shares),
}
"""For each kind of proof the modules to read, and the function that prepares its evaluation."""
_OF_RUNS = ("configurations", "search", "slot-prices", "shared-prices")
"""Proofs about runs without pauses."""


def _alone(proof: Proof) -> list[Proof]:
    """Return a proof, or those of its parts."""
    return [part["proof"] for part in proof["parts"]] if proof["kind"] == "split" else [proof]


def modules_of(proof: Proof) -> set[str]:
    """Return the modules that evaluate a proof."""
    names = [KINDS[part["kind"]][0] for part in _alone(proof)]
    if any(part.get("searched", part["kind"] == "search") for part in _alone(proof)):
        names += ["completions", "jobs", "search"]
    return {"proofs", *" ".join(names).split()}


def value_of_proof(problem: Problem, proof: Proof, work: Work) -> tuple[int, str]:
    """Return the lower bound of a proof, and a description of the check.

    A limit of active requests only restricts, and no latency is below the output.  With prefixes
    each request counts its share, see `Problem.plain`.
    """
    if not problem.is_restricted:
        return _value_of_plain(problem, proof, work)
    outputs = [request.output for request in problem.requests]
    more = sum(map(mul, problem.weights, outputs)) - sum(outputs) if problem.weights else 0
    is_shared = proof["kind"] == "shared-prices"
    value, how = _value_of_plain(problem if is_shared else problem.plain(), proof, work)
    how += ", with a share of its prefix for each request," * bool(problem.nodes)
    return value + more, how


def _value_of_plain(problem: Problem, proof: Proof, work: Work) -> tuple[int, str]:
    """Return the bound and description without restrictions.

    Configurations, searches, slots and staircases are about whole runs: they do not cover pauses.
    Blocks only restrict: every bound for the tokens of all blocks holds.
    """
    kind, suffix = proof["kind"], ""
    if (kind == "shares") != (problem.clock is not None):
        raise Invalid("lower: shares of the machine are of a clock in seconds, all else of rounds")
    if problem.block > 1:
        problem = replace(problem, memory=problem.memory - problem.memory % problem.block)
        if kind != "block-prices":
            problem, suffix = replace(problem, block=1), ", in tokens,"
    parts = [*_parts(problem, proof)] if kind == "split" else [(problem, proof)]
    for part, own in parts:
        if part.pauses and (own["kind"] in _OF_RUNS or own.get("staircases")):
            raise Invalid(
                "lower: shared prices, configurations, searches, slots and "
                "staircases do not cover pauses"
            )
    work.part = f"lower: {kind}: "
    prepared = [KINDS[own["kind"]][1](part, own, work) for part, own in parts]
    work.expect(sum(steps for steps, _ in prepared))
    total, how = 0, ""
    for (_, own), (steps, evaluate) in paired(parts, prepared):
        work.part = f"lower: {own['kind']}: "
        work.spend(steps)
        value, how = evaluate()
        total += value
    if kind == "split":
        kinds, count = dict.fromkeys(own["kind"] for own in _alone(proof)), len(proof["parts"])
        how = f"{count:,} part{'s' * (count > 1)} ({', '.join(kinds)})"
    return total, how + suffix


def _parts(problem: Problem, proof: Proof) -> Iterator[tuple[Problem, Proof]]:
    """Yield parts of the requests, each with its proof; their bounds add up.

    A part has the requests that arrive from its ``from`` on, before that of the next one.  A
    feasible schedule of all requests, less those of other parts, is one of the part; and total
    latency is a sum over requests.  Without requests the bound is 0.
    """
    borders = [part["from"] for part in proof["parts"]]
    refuse(not (borders and ascend(borders)), "lower: must have a part, and their begins ascend")
    shares: list[list[Request]] = [[] for _ in borders]
    for request in problem.requests:
        place = bisect_right(borders, request.arrival) - 1
        refuse(place < 0, "lower: a request arrives before the first part")
        shares[place].append(request)
    for part, own in paired(proof["parts"], shares):
        if own:
            yield replace(problem, requests=own), part["proof"]
