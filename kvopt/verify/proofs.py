"""Evaluate the proof of a lower bound, whatever its kind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from operator import mul
from typing import Any

from kvopt.verify.configurations import by_configurations
from kvopt.verify.pairs import paired, pairwise
from kvopt.verify.prices import check_prices, price_bound
from kvopt.verify.problem import Problem, Request
from kvopt.verify.seconds import by_shares
from kvopt.verify.volume import volume_bound
from kvopt.verify.work import Invalid, Work

_OF_RUNS = ("configurations", "search", "slot-prices")
"""Proofs that look ahead along a run."""


def value_of_proof(problem: Problem, proof: dict[str, Any], work: Work) -> tuple[int, str]:
    """Return the lower bound of a proof, and a description of the check.

    Configurations, searches, slots and staircases judge runs as wholes: they do not cover pauses.
    Blocks only restrict: every bound for the tokens of all blocks holds.
    """
    if problem.is_restricted:
        # A limit and an order only restrict, and no latency is below the output.  From a release
        # latency may be less than from the arrival: with an order outputs alone are counted.
        outputs, plain = (
            [r.output for r in problem.requests],
            replace(problem, weights=(), after=(), most=None),
        )
        more = sum(map(mul, problem.weights, outputs)) - sum(outputs) if problem.weights else 0
        value, how = value_of_proof(plain, proof, work)
        return (sum(outputs) + more, "outputs") if problem.after else (value + more, how)
    kind = proof["kind"]
    if (kind == "shares") != (problem.clock is not None):
        raise Invalid("lower: shares of the machine are of a clock in seconds, all else of rounds")
    if problem.pauses and (kind in _OF_RUNS or proof.get("staircases")):
        raise Invalid("lower: configurations, searches, slots and staircases do not cover pauses")
    if problem.block > 1:
        problem = replace(problem, memory=problem.memory - problem.memory % problem.block)
        if kind != "block-prices":
            value, how = value_of_proof(replace(problem, block=1), proof, work)
            return value, f"{how}, in tokens,"
    if kind == "split":
        judged = [value_of_proof(part, own, work)[0] for part, own in _parts(problem, proof)]
        parts = proof["parts"]
        kinds = dict.fromkeys(part["proof"]["kind"] for part in parts)
        return sum(judged), f"{len(parts):,} part{'s' * (len(parts) > 1)} ({', '.join(kinds)})"
    work.part = f"lower: {kind}: "
    if "first" in proof:
        check_prices(proof)
    if kind == "shares":
        return by_shares(problem, proof, work), "shares of the machine"
    if kind in ("search", "configurations"):
        return by_configurations(problem, proof, work)
    if kind == "volume":
        return volume_bound(problem, proof.get("staircases", []), work), "volume"
    names = {"slot-prices": "prices of tokens and slots", "block-prices": "prices of whole blocks"}
    how = "prices" if kind == "block-prices" and problem.block == 1 else names.get(kind, kind)
    return price_bound(problem, proof, work), how


def _parts(problem: Problem, proof: dict[str, Any]) -> Iterator[tuple[Problem, dict[str, Any]]]:
    """Yield parts of the requests, each with its proof; what these give adds up.

    A part holds the requests that arrive from its ``from`` on, before that of the next one.  A
    feasible schedule of all requests, less those of other parts, is one of the part; and total
    latency is a sum over requests.  Of no requests the bound is 0.
    """
    borders = [part["from"] for part in proof["parts"]]
    if not borders or any(a >= b for a, b in pairwise(borders)):
        raise Invalid("lower: must have a part, and their begins ascend")
    shares: list[list[Request]] = [[] for _ in borders]
    for request in problem.requests:
        place = bisect_right(borders, request.arrival) - 1
        if place < 0:
            raise Invalid("lower: a request arrives before the first part")
        shares[place].append(request)
    for part, own in paired(proof["parts"], shares):
        if own:
            yield replace(problem, requests=own), part["proof"]
