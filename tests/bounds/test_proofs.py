"""Proofs in rounds: kvopt and its verifier evaluate the definition, which no schedule is below."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from certificates import SHAPES, long_prices, prices_proof, proved, random_proof
from effort import many
from known import known
from msgspec import convert, to_builtins
from price_oracle import bound_of
from strategies import drawn_in_blocks, instance_of, optimum_of, plain, random_instances

from kvopt import Instance, Request, bound, generate
from kvopt.bounds.fluid import fluid_prices
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.prices import price_value, rounded_prices
from kvopt.bounds.scan import Scanner
from kvopt.bounds.staircases import staircase_bound
from kvopt.bounds.volume import volume_bound
from kvopt.incumbent.proofs import PriceProof, Proof, token_prices

Content = dict[str, Any]


def alone(count: int, seed: int) -> Iterator[Instance]:
    return random_instances(count, seed, most_memory=9, last_arrival=(0, 4, 9)[seed % 3])


def few(count: int, seed: int) -> Iterator[Instance]:
    """Yield instances of which all choices of active times can be tried."""
    return random_instances(count, seed, most_requests=4, most_memory=8, most_output=4)


def fleets(count: int, seed: int) -> Iterator[Instance]:
    source = random.Random(seed)
    for each in random_instances(count, seed, least_requests=2, most_memory=8, most_output=3):
        yield replace(each, workers=source.choice((2, 2, 3)))


def blocks(count: int, seed: int) -> Iterator[Instance]:
    source = random.Random(seed)
    return (drawn_in_blocks(source) for _ in range(count))


class Kind(NamedTuple):
    """Instances, and what proves a bound of them."""

    instances: Callable[[int, int], Iterator[Instance]]
    resource: str = "tokens"
    pauses: bool = False


KINDS = {
    "runs": Kind(alone),
    "pauses": Kind(few, pauses=True),
    "blocks": Kind(blocks),
    "blocks and pauses": Kind(blocks, pauses=True),
    "slots": Kind(alone, "slots"),
    "fleets": Kind(fleets),
    "slots of fleets": Kind(fleets, "slots"),
}


def drawn(source: random.Random, instance: Instance, resource: str) -> Content:
    """Return any prices, or some that are about the best there are, and maybe prices of slots."""
    proof = random_proof(source, 9)
    if source.random() < 0.5:
        proof = to_builtins(rounded_prices(fluid_prices(instance), 60))
    if resource == "tokens":
        return proof
    times = sorted(source.sample(range(25), source.randint(2, 6)))
    level = proof["denominator"] // source.choice((1, 9))
    for count in source.sample(range(1, 8), source.choice((0, 1, 3))):
        numbers = [source.randint(0, level) for _ in times]
        slots = {"name": "slots", "capacity": count, "times": times, "numerators": numbers}
        proof["resources"] = [*proof["resources"], slots]
    return proof


def defined(instance: Instance, proof: Content, pauses: bool) -> Fraction:
    memory, requests = plain(instance)
    block, workers = instance.block_size, max(1, min(instance.workers, len(instance)))
    return bound_of(memory, requests, proof, block=block, workers=workers, pauses=pauses)


def evaluated(instance: Instance, proof: Content, pauses: bool) -> Iterator[Fraction]:
    """Yield the value of a proof in all ways in which kvopt finds it."""
    prices: PriceProof = convert(proof, Proof)
    yield Fraction(price_value(instance, prices, pauses=pauses), prices.denominator)
    for threads in (1, 2):
        scanner = Scanner(Kinds.of(instance), threads=threads, pauses=pauses)
        yield Fraction(price_value(instance, prices, scanner), prices.denominator)


def least(instance: Instance, pauses: bool) -> int:
    """Return the optimum by brute force."""
    return optimum_of(instance, scope="pauses" if pauses else "runs")


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_evaluation_is_the_definition_and_no_schedule_is_below_it(name: str) -> None:
    (instances, resource, pauses), counts = KINDS[name], Counter[str]()
    for seed in range(3):
        source = random.Random(seed)
        for instance in instances(many(150), seed):
            proof = drawn(source, instance, resource)
            exact, best = defined(instance, proof, pauses), least(instance, pauses)
            value = math.ceil(exact)
            assert {*evaluated(instance, proof, pauses)} == {exact}, (instance, proof)
            assert proved(instance, proof, pauses=pauses) == value <= best
            counts.update(tight=value == best, raised=value > instance.total_output)
            counts["paused"] += pauses and exact < defined(instance, proof, False)
    assert counts["tight"] > many(10)
    assert counts["raised"] >= many(1)
    assert not pauses or counts["paused"] > many(3), "prices that rise, where a pause is cheaper"


@pytest.mark.parametrize("pauses", [False, True])
def test_values_of_floats_are_near_the_definition(pauses: bool) -> None:
    """Memory costs nothing here: they are the sums of least costs."""
    source = random.Random(1)
    for instance in (*few(many(40), 1), *blocks(many(40), 2)):
        proof = random_proof(source, 9)
        prices = convert(proof, Proof)
        scanner = Scanner(Kinds.of(instance), pauses=pauses)
        values = np.array(prices.numerators) / prices.denominator
        memory = instance.in_tokens().memory if instance.block_size > 1 else instance.memory
        rent = memory * Fraction(sum(prices.numerators), prices.denominator)
        exact = defined(instance, proof, pauses) + rent
        assert scanner.lagrangian(values, 0)[0] == pytest.approx(float(exact))


@pytest.mark.slow
@pytest.mark.parametrize("instances", [alone, fleets])
def test_volumes_are_verified_and_no_schedule_is_below_them(
    instances: Callable[[int, int], Iterator[Instance]],
) -> None:
    counts = Counter[str]()
    for seed in range(3):
        source = random.Random(seed)
        for instance in instances(many(100), seed):
            stairs = [
                tuple(sorted(source.choices(range(1, instance.memory + 1), k=source.randint(1, 5))))
                for _ in range(3)
            ]
            volume, value = volume_bound(instance), staircase_bound(instance, stairs)
            best = least(instance, False)
            assert volume <= value <= best
            assert proved(instance, {"kind": "volume"}) == volume
            proof = {"kind": "volume", "staircases": [*map(list, stairs)]}
            assert proved(instance, proof) == value
            assert instance.workers > 1 or len(instance) > 4 or volume <= least(instance, True)
            counts.update(tight=volume == best, raised=value > volume)
    assert counts["tight"] > many(75), "a bound that is hardly ever tight proves little"
    assert counts["raised"] > 0


@pytest.mark.parametrize(
    ("n", "last", "count", "pauses"),
    [(200, 0, 1500, False), (200, 3000, 1500, False), (60, 300, 500, True)],
)
def test_evaluations_agree_on_large_instances_whatever_was_found_before(
    n: int, last: int, count: int, pauses: bool
) -> None:
    """Sums pass 64 bits in the end, though no cost does."""
    rng, drawn = random.Random(5), generate("conversation", n, 4000, seed=n)
    requests = [Request(rng.randint(0, last), r.prompt, r.output) for r in drawn]
    instance = Instance(4000, requests)
    scanner = Scanner(Kinds.of(instance), pauses=pauses)
    for shape, size in zip(SHAPES, (20, 25, 36, 44), strict=True):
        unit = 2**size
        proof = prices_proof(unit, 1, [p * unit // 10**8 for p in long_prices(shape, rng, count)])
        prices: PriceProof = convert(proof, Proof)
        found = {price_value(instance, prices, with_, pauses=pauses) for with_ in (None, scanner)}
        value = -(-found.pop() // unit)
        assert (found, proved(instance, proof, pauses=pauses)) == (set(), value), shape


@pytest.mark.parametrize("pauses", [False, True])
def test_what_is_too_large_for_64_bits_is_still_exact(pauses: bool) -> None:
    instance = instance_of(50, [(0, 3, 5), (2, 1, 9)])
    proof = prices_proof(2**71, 1, [2**69, 5, 2**70])
    assert {*evaluated(instance, proof, pauses)} == {defined(instance, proof, pauses)}


def test_the_last_priced_time_is_a_start_too() -> None:
    """At a price of 0.357 each starts at 1 for 2; the start 0 alone gives 3.071, more than 3."""
    pair, proof = instance_of(3, [(0, 2, 1)] * 2), prices_proof(1000, 1, [357])
    assert {*evaluated(pair, proof, False)} == {Fraction(2929, 1000)}
    assert proved(pair, proof) == least(pair, False) == 3


def test_a_proof_of_prices_begins_with_the_first_that_is_not_zero() -> None:
    for numerators, first in (((0, 0, 5, 0), 3), ((5,), 1), ((0, 0), 1), ((), 1)):
        written = json.dumps(to_builtins(token_prices(numerators, 9)))
        assert json.loads(written) == prices_proof(9, first, numerators[first - 1 :])


def test_counting_blocks_raises_the_bound() -> None:
    requests = drawn_in_blocks(random.Random(1)).requests
    instance = Instance(12, requests, block_size=4)
    found = bound(instance, "lagrangian", threads=1)
    inside = bound(instance.in_tokens(), "lagrangian", threads=1)
    assert known(found.value) >= known(inside.value)
    assert isinstance(known(found.checked).proof, PriceProof)
