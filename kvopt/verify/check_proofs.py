"""Evaluate the proof of a lower bound of any kind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kvopt.verify.certified_problem import Problem, Request, relaxed
from kvopt.verify.check_branches import by_branches
from kvopt.verify.check_configurations import by_configurations
from kvopt.verify.check_prices import by_prices
from kvopt.verify.check_seconds import by_shares
from kvopt.verify.check_shared_rounds import by_shared_rounds
from kvopt.verify.check_volume import by_volume
from kvopt.verify.step_budget import Invalid, Prepared, Work, ascend, paired, refuse, resources_of

Proof = dict[str, Any]
KINDS: dict[str, tuple[str, Callable[[Problem, Proof, Work], Prepared]]] = {
    "prices": ("check_prices", by_prices),
    "volume": ("check_volume", by_volume),
    "configurations": ("check_configurations check_prices", by_configurations),
    "branches": ("check_branches", by_branches),
    "shares": ("check_seconds check_volume", by_shares),
    "shared-rounds": ("check_shared_rounds check_backlog check_seconds", by_shared_rounds),
}
"""For each kind of proof the modules to read, and the function that prepares its evaluation."""
_TIMED = ("shares", "shared-rounds")
"""Proofs on a clock in seconds."""
_KNOWN = {
    "volume": ("limit",),
    "prices": ("tokens", "weights"),
    "prefixes": ("shares", "limit", "weights"),
    "shares": ("limit", "weights"),
    "shared-rounds": ("limit", "weights"),
}
"""Of the relaxations those that a kind of proof, or prices of prefixes, can do without."""


def _alone(proof: Proof) -> list[Proof]:
    """Return a proof, or those of its parts."""
    return [part["proof"] for part in proof["parts"]] if proof["kind"] == "split" else [proof]


def modules_of(proof: Proof) -> set[str]:
    """Return the modules that evaluate a proof."""
    names = [KINDS[part["kind"]][0] for part in _alone(proof)]
    if any(part.get("searched") for part in _alone(proof)):
        names += ["carried_costs", "check_search"]
    return {"check_proofs", *" ".join(names).split()}


def value_of_proof(
    problem: Problem, proof: Proof, work: Work, relaxations: Sequence[str] = ()
) -> tuple[int, str]:
    """Return the lower bound of a proof, and a description of the check.

    The proof is about the wider problem to which the relaxations lead.
    """
    wider, more, words = relaxed(problem, relaxations)
    value, how = _value(wider, proof, work)
    return value + more, how + f", with {words}," * bool(words)


def missing(problem: Problem, proof: Proof) -> list[str]:
    """Return the relaxations that lead from a problem to one that a proof knows."""
    covered = _KNOWN.get("prefixes" if "prefixes" in resources_of(proof) else proof["kind"], ())
    covered = (*covered, *["shares"] * bool(proof.get("block_shares")))
    used = {
        "tokens": problem.block > 1,
        "shares": bool(problem.paths),
        "limit": problem.max_active is not None,
        "weights": bool(problem.weights),
    }
    return [name for name, is_used in used.items() if is_used and name not in covered]


def _value(problem: Problem, proof: Proof, work: Work) -> tuple[int, str]:
    """Return the bound and description of a proof about a problem."""
    kind = proof["kind"]
    in_seconds = problem.clock is not None
    if any((part["kind"] in _TIMED) != in_seconds for part in _alone(proof)):
        raise Invalid(
            "lower: shares of the machine and shared rounds are of a clock in seconds, all else of "
            "rounds"
        )
    for name in missing(problem, proof):
        raise Invalid(f"lower: {kind} of this problem need the relaxation {name}")
    # Blocks are held whole, so what is beyond the last one is never held.
    memory = problem.memory - problem.memory % problem.block
    problem = replace(problem, memory=memory)
    parts = [*_parts(problem, proof)] if kind == "split" else [(problem, proof)]
    for part, part_proof in parts:
        looks_ahead = part_proof["kind"] in ("configurations", "branches")
        looks_ahead |= bool(part_proof.get("staircases"))
        if part.pauses and (looks_ahead or {"slots", "prefixes"} & {*resources_of(part_proof)}):
            raise Invalid(
                "lower: configurations, branches, slots, prefixes and "
                "staircases do not cover pauses"
            )
    work.part = f"lower: {kind}: "
    prepared = [KINDS[part_proof["kind"]][1](part, part_proof, work) for part, part_proof in parts]
    work.expect(sum(steps for steps, _ in prepared))
    total, how = 0, ""
    for (_, part_proof), (steps, evaluate) in paired(parts, prepared):
        work.part = f"lower: {part_proof['kind']}: "
        work.spend(steps)
        value, how = evaluate()
        total += value
    if kind == "split":
        kinds = dict.fromkeys(part_proof["kind"] for part_proof in _alone(proof))
        count = len(proof["parts"])
        how = f"{count:,} part{'s' * (count > 1)} ({', '.join(kinds)})"
    return total, how


def _parts(problem: Problem, proof: Proof) -> Iterator[tuple[Problem, Proof]]:
    """Yield parts of the requests, each with its proof; their bounds add up.

    A part has the requests that arrive from its ``from`` on, before that of the next one.  A
    feasible schedule of all requests, less those of other parts, is one of the part; and total
    latency is a sum over requests.  Times of a part count from its begin.  Without requests the
    bound is 0.
    """
    borders = [part["from"] for part in proof["parts"]]
    if not ascend([-1, *borders]) or not borders:
        raise Invalid("lower: must have a part, and their begins ascend from 0 on")
    shares: list[list[Request]] = [[] for _ in borders]
    for request in problem.requests:
        place = bisect_right(borders, request.arrival) - 1
        refuse(place < 0, "lower: a request arrives before the first part")
        shares[place].append(request._replace(arrival=request.arrival - borders[place]))
    for part, members in paired(proof["parts"], shares):
        if members:
            yield replace(problem, requests=members), part["proof"]
