"""The most that the verifier accepts of random proofs, where features meet, against brute force."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from certificates import prices_between
from claims import Problem
from drawn_claims import Content, drawn, proof_of, restricted, some_lines
from effort import many

from kvopt.verify.report import report_on
from kvopt.verify.step_budget import Invalid

MOST = 10_000
"""Above all total latencies and numbers of requests."""


def largest(accepted: Callable[[int], bool]) -> int | None:
    """Return the largest number that is accepted, None if none is, where smaller ones are too."""
    if not accepted(-MOST):
        return None
    low, high = -MOST, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepted(middle) else (low, middle)
    return low


def is_valid(content: Content, **claims: object) -> bool:
    try:
        return report_on({**content, **claims})[-1] == "VALID"
    except Invalid:
        return False


def most_of_bound(content: Content, proof: Content) -> int | None:
    return largest(lambda n: is_valid(content, lower={"value": n, "proof": proof}))


def least_ceiling(content: Content, claim: Content) -> int | None:
    found = largest(lambda n: is_valid(content, slo={**claim, "ceiling": -n}))
    return None if found is None else -found


@pytest.mark.slow
def test_what_is_accepted_is_true() -> None:
    source, known = random.Random(2), Counter[str]()
    for number in range(many(130)):
        content = drawn(source) if number % 4 else restricted(source)
        problem, proof = Problem(content), proof_of(content, source)
        lower = most_of_bound(content, proof)
        if lower is not None:
            best = problem.least()
            assert lower <= best, (content, proof)
            known.update(bounds=lower > 0, tight=lower == best)
    assert min(known[name] for name in ("bounds", "tight")) > many(10)


@pytest.mark.slow
def test_no_more_attain_than_any_prices_say() -> None:
    source, known = random.Random(7), Counter[str]()
    for _ in range(many(200)):
        content = drawn(source)
        times = sorted(source.sample(range(30), source.randint(2, 6)))
        scale = source.choice((1, 3, 10))
        lines = None if content["clock"] == "rounds" else some_lines(content, source)
        numbers = [source.randint(0, scale) for _ in times[1:]]
        prices = prices_between(times, numbers, scale, lines)
        if lines is None and "pauses" not in content["scope"] and source.random() < 0.5:
            numbers = [source.randint(0, scale) for _ in times]
            slots = {"name": "slots", "capacity": source.randint(1, 3), "times": times}
            prices["resources"].append({**slots, "numerators": numbers})
        unit = "" if content["clock"] == "rounds" else "ns"
        lengths = [source.randint(1, most) for most in (20, 5, 30)]
        limits = {name: f"{n}ns" if unit else n
                  for name, n in zip(("ttft", "tpot", "e2e"), lengths, strict=True)
                  if source.random() < 0.6} or {"e2e": "own"}  # fmt: skip
        claim: Content = {"limits": limits, "attained": [], "best": None, "proof": prices}
        ceiling = least_ceiling(content, claim)
        if ceiling is None:
            continue
        claim["ceiling"] = ceiling
        assert not [*Problem(content).untrue_in_time(claim)], (content, claim)
        known.update(fewer=ceiling < len(content["instance"]["requests"]))
    assert known["fewer"] > many(10)
