"""Searches under prices of tokens: nothing better is missed, and the verifier finds the same."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import brute_force
import pytest
from certificates import proved, random_proof
from effort import many
from known import known
from msgspec import convert, to_builtins
from price_oracle import bound_of
from strategies import instance_of, plain, random_instances

from kvopt import Instance, certify, read_certificate, solve, verify, write_certificate
from kvopt.bounds.configurations.evaluation import FORBIDDEN
from kvopt.bounds.configurations.forward_search import ForwardSearch, predecessors_of
from kvopt.bounds.configurations.tokens import PricedTokens
from kvopt.certificates import Certificate
from kvopt.errors import TooLarge
from kvopt.incumbent.proofs import CheckedBound, PriceProof, Proof, SearchProof, token_prices
from kvopt.verify.step_budget import Invalid

pytestmark = pytest.mark.usefixtures("processor_clock")

LIMIT = 100_000


def drawn_prices(source: random.Random) -> PriceProof:
    proof = random_proof(source)
    prices: PriceProof = convert(proof, Proof)
    return prices


def priced(instance: Instance, prices: PriceProof) -> PricedTokens:
    last = max(len(prices.numerators), max(r.arrival + r.output for r in instance))
    return PricedTokens(instance, prices, last)


def claim(instance: Instance, value: int, proof: SearchProof) -> Certificate:
    return Certificate(instance, None, CheckedBound(value, "exact", proof))


@pytest.mark.slow
def test_the_evaluation_is_the_bound_by_its_definition() -> None:
    source = random.Random(1)
    for instance in random_instances(many(100), 4, least_requests=1):
        prices = drawn_prices(source)
        found = priced(instance, prices).evaluate()
        memory, requests = plain(instance)
        exact = bound_of(memory, requests, to_builtins(prices))
        assert Fraction(found.total, found.denominator) == exact
        assert (found.reduced_costs.min(axis=1) == 0).all()
        for row, (arrival, _, _) in zip(found.reduced_costs, requests, strict=True):
            assert (row[: min(arrival, len(row) - 1)] == FORBIDDEN).all()


@pytest.mark.slow
def test_the_optimum_is_found_below_targets_above_it_and_proved_at_it() -> None:
    source, proofs = random.Random(2), 0
    for instance in random_instances(many(60), 5, least_requests=1, last_arrival=6):
        tokens = priced(instance, drawn_prices(source))
        evaluation, optimum = tokens.evaluate(), brute_force.optimum(*plain(instance))
        for more in (0, 1, 4):
            forward = ForwardSearch(
                tokens.states, predecessors_of(instance), evaluation, optimum + more
            )
            found = forward.search_exhaustively(LIMIT)
            assert (found is None) == (more == 0)
            if found is not None:
                memory, requests = plain(instance)
                assert brute_force.feasible(memory, requests, found)
                assert brute_force.tel(requests, found) == optimum
        assert proved(instance, tokens.proof(optimum, ())) == optimum
        with pytest.raises(Invalid, match="a schedule has a total latency"):
            proved(instance, tokens.proof(optimum + 1, ()))
        proofs += 1
    assert proofs > many(40)


def test_denominators_that_would_leave_64_bits_are_made_smaller() -> None:
    instance = instance_of(2**40, [(0, 2**39, 3), (0, 2**39, 3), (1, 5, 2)])
    prices = token_prices((2**30, 2**29, 2**29, 7), 2**50)
    tokens = priced(instance, prices)
    assert tokens.prices.denominator < prices.denominator
    found = tokens.evaluate()
    exact = sum(tokens.prices.numerators) * 2**40
    assert found.largest.sum() == exact
    with pytest.raises(TooLarge, match="leave the range"):
        priced(instance_of(2**53 - 1, [(0, 2**50, 3)]), token_prices((2**40,), 1))


LARGE = instance_of(
    9000,
    [(0, 3251, 10), (0, 2766, 8), (2, 1775, 6), (2, 5412, 28), (4, 125, 6), (4, 2731, 12),
     (6, 3324, 15), (6, 3600, 7), (8, 4256, 21), (8, 1061, 30)],
)  # fmt: skip
"""A piece of a trace: sets of requests in 9,000 tokens are too many to go through."""


@pytest.mark.slow
def test_a_piece_of_a_trace_is_proved_and_checked(tmp_path: Path) -> None:
    found = solve(LARGE, time_limit=120, checkable=True)
    assert found.status.value == "optimal"
    assert found.bounded_by == "exact"
    assert found.objective == solve(LARGE, "cpsat", time_limit=120).objective
    certificate = certify(LARGE, time_limit=120)
    assert isinstance(known(certificate.lower).proof, SearchProof)
    write_certificate(certificate, tmp_path / "c.json")
    assert verify(tmp_path / "c.json").valid
    again = read_certificate(tmp_path / "c.json")
    assert known(again.lower).proof == known(certificate.lower).proof


@pytest.mark.slow
def test_the_engine_agrees_with_brute_force_in_large_caches() -> None:
    """Sizes of hundreds of tokens, of which few fit, are none for tables of sets of requests."""
    source, sources = random.Random(3), Counter[str]()
    for _ in range(many(24)):
        rows = [
            (source.randint(0, 6), 150 * source.randint(20, 500), source.randint(1, 9))
            for _ in range(source.randint(5, 6))
        ]
        instance = instance_of(100_000, rows)
        found = solve(instance, "exact", time_limit=60, checkable=True)
        assert found.objective == brute_force.optimum(*plain(instance))
        assert found.lower_bound == found.objective
        sources[type(known(found.checked).proof).__name__] += 1
    assert sources["SearchProof"] > 1
