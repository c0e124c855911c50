"""Check claims on slower machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kvopt.verify.problem import Problem
from kvopt.verify.proofs import value_of_proof
from kvopt.verify.words import as_decimal
from kvopt.verify.work import Invalid, Work


def check_slower(
    problem: Problem, claim: dict[str, Any], lower: dict[str, Any] | None, work: Work
) -> tuple[int, int, str]:
    """Check that no schedule on a machine P / Q times slower has a total latency of ``value``.

    Return P / Q in thousandths, rounded up, the value, and a description of the check.

    *Seconds.*  All coefficients times P, arrivals times Q: times then count in 1 / Q nanoseconds.
    *Rounds* of length phi = P / Q or more, which begin at any time.  Let round r end at e_r, and
    g(r) = floor(e_r / phi), so that g(r + 1) >= g(r) + 1.  A request that completes with round c
    is moved to complete at g(c), without a gap; with pauses each of its rounds r is moved to g(r).
    At a time t let c be the first round with g(c) >= t: a request that is moved to t has no fewer
    rounds to go then than with round c, so it holds no more, and all of them fit.  It starts at
    floor(a / phi) or later, since its first round began at a or later.  So phi times a bound on the
    sum of completions of an instance with these arrivals is a bound for the slow
    machine.  Times count from the first arrival.

    A still slower machine has longer rounds, so the bound holds for it too.
    """
    if len(claim["machine"]) != 2 or not 1 <= claim["machine"][1] <= claim["machine"][0]:
        raise Invalid("slower: a machine must be [P, Q], P / Q times slower, with P >= Q >= 1")
    (by, of), value = claim["machine"], claim["value"]
    proof = claim.get("proof", lower and lower["proof"])
    if proof is None:
        raise Invalid("slower: needs a proof, as there is no lower bound")
    there = _slow(problem, by, of)
    try:
        proved, how = value_of_proof(there, proof, work)
    except Invalid as error:
        raise Invalid(f"slower: {str(error).removeprefix('lower: ')}") from None
    least, most, parts = proved, of * value, -(-1000 * by // of)
    if problem.clock is None:  # of the sums of completions
        late, early = ([r.arrival for r in own.requests] for own in (problem, there))
        first = min(late, default=0)
        least, most = by * (proved + sum(early)), of * (value + sum(late) - first * len(late))
    if least <= most:
        raise Invalid(
            f"slower: on a machine {as_decimal(parts)} times slower the proof does not give more "
            f"than {value:,}"
        )
    return parts, value, how


def _slow(problem: Problem, by: int, of: int) -> Problem:
    """Return the problem of a machine by / of times slower, see `check_slower`."""
    arrivals = [request.arrival for request in problem.requests]
    if problem.clock is not None:
        there = problem.arriving(of * arrival for arrival in arrivals)
        return replace(there, clock=problem.clock.slower(by))
    first = min(arrivals, default=0)
    return problem.arriving(of * (arrival - first) // by for arrival in arrivals)


def no_slower(name: str, value: int, machines: list[tuple[int, int]]) -> list[str]:
    """State on which machines no schedule is as good as this value."""
    parts = [parts for parts, most in machines if most >= value]
    if not parts:
        return []
    return [
        f"  as good as {name} on a machine more than {as_decimal(min(parts))} times slower is "
        "impossible"
    ]
