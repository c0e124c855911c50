"""Proofs by configurations: their values by definition, drawn at random and put into files."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import brute_force
from certificates import claiming
from effort import many
from literal import configurations as literal
from literal.best_prices import best_prices
from strategies import instance_of

from kvopt.verify import certified_problem as checker
from kvopt.verify.certified_problem import Request
from kvopt.verify.check_proofs import value_of_proof
from kvopt.verify.report import report_on
from kvopt.verify.step_budget import Invalid, Unreadable, Work

Problem = tuple[int, tuple[brute_force.Triple, ...]]
Stage = dict[str, Any]
Proof = dict[str, Any]


# The definition.


def price_at(stage: Stage, time: int, peak: int, r: int) -> int:
    """Return a price times the denominator."""
    place = 0
    for known, rounds in stage["peaks"]:
        if known == peak:
            break
        place += rounds
    else:
        return 0
    if r >= rounds:
        return 0
    return literal.between(stage["times"], [row[place + r] for row in stage["numerators"]], time)


def all_prices(memory: int, stage: Stage) -> dict[int, dict[literal.State, Fraction]]:
    """Return the prices of all states at all times."""
    return {
        time: {
            (h, r): Fraction(price_at(stage, time, h + r, r), stage["denominator"])
            for h, r in literal.all_states(memory)
        }
        for time in range(1, stage["times"][-1] + 1)
    }


def right_sides(
    memory: int, requests: Sequence[brute_force.Triple], stage: Stage, left: Any
) -> list[int]:
    """Return R at the times 0, 1, ..., each over all configurations within the copies.

    Until the first arrival nothing can be active.
    """
    times, first = stage["times"], min((arrival for arrival, _, _ in requests), default=0)
    prices = all_prices(memory, stage)
    around = literal.copies_around(requests, left, times)
    heaviest = [
        int(literal.largest(prices[time], memory, copies) * stage["denominator"])
        for time, copies in zip(times, around, strict=True)
    ]
    return [literal.between(times, heaviest, t) if t > first else 0 for t in range(times[-1] + 1)]


def replay(problem: Problem, proof: Proof) -> int | None:
    """Return what a proof gives by definition, None if a schedule below the target exists."""
    memory, requests = problem
    last: int = proof["stages"][0]["times"][-1]
    target: int = proof["target"]
    left = [list(range(a, max(a, last) + 1)) for a, _, _ in requests]
    for stage in proof["stages"]:
        scale, prices = stage["denominator"], all_prices(memory, stage)
        least = literal.least_costs(requests, prices, left)
        total = int(sum(least) * scale) - sum(right_sides(memory, requests, stage, left))
        value = math.ceil(Fraction(total, scale))
        if target is None:
            return value
        budget = (target - 1) * scale - total
        if budget < 0:
            return target
        left = [
            [k for k in own if (literal.cost(request, k, prices) - low) * scale <= budget]
            for request, own, low in zip(requests, left, least, strict=True)
        ]
    if proof.get("searched", True):
        return None if best(problem) < target else target
    return min(target, value)


@cache
def best(problem: Problem) -> int:
    return brute_force.optimum(*problem)


class Checker(NamedTuple):
    """The parts of the verifier that a proof needs: its own ones, or some with a mistake."""

    problem: Any = checker.Problem
    request: Any = Request
    value: Any = value_of_proof
    work: Any = Work
    invalid: Any = Invalid
    unreadable: Any = Unreadable


OURS = Checker()


def proved(problem: Problem, proof: Proof, using: Checker = OURS) -> int | None:
    """Return what the verifier makes of a proof, None if it is refused by a schedule."""
    memory, triples = problem
    asked = using.problem(memory, [using.request(*triple) for triple in triples])
    try:
        value: int = using.value(asked, proof, using.work())[0]
    except using.invalid:
        return None
    return value


# Proofs at random.


def proof_of(stages: Sequence[Stage], target: int | None = None, searched: bool = False) -> Proof:
    return {
        "kind": "configurations",
        "target": target,
        "searched": searched,
        "stages": list(stages),
    }


def with_cuts(stages: Sequence[Stage], target: int, cuts: Sequence[int]) -> Proof:
    """Return a proof that ends with a search by cost-to-go bounds."""
    return proof_of(list(stages), target, True) | {"cuts": list(cuts)}


def drawn_cuts(source: random.Random, stage: Stage) -> list[int]:
    """Return cuts at times before and after the last one: small, falling or of no limit."""
    count = source.choice((0, stage["times"][-1] // 2, stage["times"][-1], stage["times"][-1] + 2))
    most = stage["denominator"] * source.choice((1, 5, 30))
    drawn = [source.randint(0, most) for _ in range(count)]
    return source.choice((drawn, sorted(drawn, reverse=True), [10**9] * count))


def drawn_problem(source: random.Random, most: int = 4, most_memory: int = 7) -> Problem:
    """Return a problem of few shapes; half of them have arrivals, some far after the prices."""
    memory = source.randint(2, most_memory)
    pool = [
        (source.randint(0, memory - o), o)
        for o in source.choices(range(1, min(4, memory) + 1), k=source.choice((2, 5)))
    ]
    late = source.choice((0, 0, 4, 9))
    count = source.randint(1, most)
    return memory, tuple((source.randint(0, late), *source.choice(pool)) for _ in range(count))


def drawn_times(source: random.Random, last: int) -> list[int]:
    """Return ascending times up to the last, dense or sparse."""
    some = [t for t in range(1, last) if source.random() < source.choice((0.2, 0.6, 1))]
    return [*some, last]


def drawn_stage(source: random.Random, problem: Problem, last: int) -> Stage:
    """Return prices of some of the states and of some that no request reaches."""
    memory, requests = problem
    known = sorted({s + o for _, s, o in requests} | {source.randint(1, memory)})
    peaks = [
        [peak, source.randint(0, 1) + source.randint(1, 4)]
        for peak in source.sample(known, len(known))
        if source.random() < 0.9
    ]
    scale = source.choice((1, 2, 3, 10))
    level = source.choice((scale // 2, scale, 3 * scale)) + 1
    times = drawn_times(source, last)
    count = sum(rounds for _, rounds in peaks)
    numerators = [
        [source.choice((0, source.randint(0, level))) for _ in range(count)] for _ in times
    ]
    return {"denominator": scale, "peaks": peaks, "times": times, "numerators": numerators}


def good_stage(source: random.Random, problem: Problem) -> Stage:
    """Return about the best prices there are, at all times or only some."""
    memory, requests = problem
    prices = best_prices(memory, requests)
    peaks = sorted(
        {(s + o, max(x for _, z, x in requests if z + x == s + o)) for _, s, o in requests}
    )
    times = drawn_times(source, max(prices))
    rows = [
        [
            int(720 * prices[time].get((peak - r, r), Fraction(0)))
            for peak, n in peaks
            for r in range(n)
        ]
        for time in times
    ]
    return {
        "denominator": 720,
        "peaks": [list(pair) for pair in peaks],
        "times": times,
        "numerators": rows,
    }


def drawn_proofs(seed: int, count: int) -> Iterator[tuple[Problem, Proof]]:
    """Yield proofs of all forms; half of them begin with good prices."""
    source = random.Random(seed)
    for number in range(count):
        problem = drawn_problem(source, most=3 if number % 2 else 4)
        first = good_stage(source, problem) if number % 2 else None
        last = first["times"][-1] if first else source.randint(1, 9)
        stages = [first] if first else []
        stages += [drawn_stage(source, problem, last) for _ in range(source.randint(0, 2))]
        if first:
            stages.append(first)
        stages = stages or [drawn_stage(source, problem, last)]
        if number % 5 == 0:
            yield problem, proof_of(stages[:1])
            continue
        target = best(problem) + source.choice((-5, -1, 0, 0, 1, 1, 2, 9))
        yield problem, proof_of(stages, target, source.random() < 0.3)


@cache
def examples() -> list[tuple[Problem, Proof, int | None]]:
    """Return proofs at random and what they give."""
    return [(*pair, replay(*pair)) for pair in drawn_proofs(5, many(500))]


def plainly(problem: Problem) -> checker.Problem:
    memory, triples = problem
    return checker.Problem(memory, [Request(*triple) for triple in triples])


def content_of(problem: Problem, proof: Proof, value: int) -> dict[str, Any]:
    """Return a certificate of nothing but a proof."""
    return claiming(instance_of(*problem), lower={"value": value, "proof": proof})


def words(problem: Problem, proof: Proof, value: int) -> str:
    """Return the report on a valid certificate."""
    text = json.dumps(content_of(problem, proof, value))
    lines = report_on(json.loads(text))
    assert lines[-1] == "VALID"
    return "\n".join(lines)


SMALL: Problem = (7, ((0, 1, 1), (0, 1, 2), (0, 1, 3), (1, 1, 4)))
STAGE: Stage = {
    "denominator": 4,
    "peaks": [[2, 1], [4, 3], [5, 2]],
    "times": [1, 4, 6],
    "numerators": [[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [0, 0, 1, 1, 0, 0]],
}
FREE: Stage = {"denominator": 1, "peaks": [], "times": [9], "numerators": [[]]}
"""No state costs anything."""
