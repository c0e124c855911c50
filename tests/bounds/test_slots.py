"""Prices of slots: any are valid, kvopt and its verifier evaluate them alike, large ones gain."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificates import certificate, judged, proved
from effort import many
from hypothesis import given
from hypothesis import strategies as st
from known import known
from msgspec import to_builtins

from kvopt import Instance, Request, bound, generate, run
from kvopt.bounds.prices import price_bound, thresholds
from kvopt.bounds.slots import coarse_prices, sampled
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import PriceProof, Slots, token_prices


def random_slot_prices(source: random.Random, last: int) -> PriceProof:
    borders = tuple(sorted(source.sample(range(last + 1), source.randint(2, 7))))
    level = source.choice((3, 50, 2000))
    slots = tuple(
        Slots(count, borders, tuple(source.randint(0, level) for _ in borders))
        for count in source.sample(range(1, 6), source.randint(1, 3))
    )
    tokens = tuple(source.randint(0, 6) for _ in range(source.randint(0, last)))
    return token_prices(tokens, source.randint(1, 90), slots)


@given(
    held=st.lists(st.integers(1, 30), max_size=8), slots=st.integers(1, 9), free=st.integers(0, 9)
)
def test_requests_that_fit_need_no_more_slots_than_there_are(
    held: list[int], slots: int, free: int
) -> None:
    memory = max(1, sum(held) + free)
    steps = thresholds(memory, slots)
    needs = [sum(tokens >= step for step in steps) for tokens in held]
    assert needs == [(slots + 1) * tokens // (memory + 1) for tokens in held]
    assert sum(needs) <= slots


def test_evaluations_agree_over_long_times() -> None:
    source = random.Random(8)
    for _ in range(many(15)):
        memory, last = source.randint(20, 300), source.choice((200, 900, 3000))
        shapes = ((source.randint(0, memory - 12), source.randint(1, 12)) for _ in range(12))
        requests = [
            Request(source.choice((0, source.randint(0, last))), *shape) for shape in shapes
        ]
        instance, proof = Instance(memory, requests), random_slot_prices(source, last)
        assert price_bound(instance, proof) == proved(instance, proof)


def crowded(n: int, seed: int = 0) -> Instance:
    """Return requests of which two hardly ever fit together, while tokens say that they do."""
    source = random.Random(seed)
    shapes = ((source.randint(50, 55), source.randint(5, 12)) for _ in range(n))
    return Instance(100, [Request(source.choice((0, 20, 100)), *shape) for shape in shapes])


@pytest.mark.usefixtures("few_steps")
def test_large_requests_are_told_apart_from_what_fits() -> None:
    instance = crowded(24)
    tokens, slots = (bound(instance, method) for method in ("lagrangian", "slots"))
    assert slots.value is not None
    assert slots.value > 1.5 * known(tokens.value)
    assert slots.checked is not None
    assert isinstance(slots.checked.proof, PriceProof)
    assert len(slots.checked.proof.resources) > 1
    assert proved(instance, slots.checked.proof) == slots.value
    reached = known(run(instance, "svf").objective)
    assert 0.9 * reached < slots.value <= reached


@pytest.mark.usefixtures("few_steps")
def test_fleets_of_large_requests_gain_as_much() -> None:
    instance = crowded(20)
    instance = Instance(instance.memory, instance.requests, workers=2)
    tokens, slots = (bound(instance, method) for method in ("lagrangian", "slots"))
    assert known(slots.value) > 1.4 * known(tokens.value)


def test_where_slots_are_worth_nothing_there_is_no_bound_and_a_note() -> None:
    instance = generate("arrival-2", 30, 200, seed=1)
    found = bound(instance, "slots")
    assert found.checked is None or found.checked.bounded_by == "volume"
    assert "slots: no gain over prices of tokens" in (found.note or "")
    assert bound(crowded(60), "slots", time_limit=0).value is None
    assert bound(Instance(5, []), "slots").value == 0


def test_threads_do_not_change_the_bound() -> None:
    assert len({bound(crowded(12), "slots", threads=k).value for k in (1, 2)}) == 1


PROOF = token_prices(
    (1, 2, 1), 60, (Slots(1, (0, 10, 40), (40, 30, 2)), Slots(2, (0, 10, 40), (0, 5, 0)))
)


def by_slots(instance: Instance, proof: PriceProof) -> dict[str, Any]:
    """Return a valid certificate with such a proof."""
    return certificate(
        instance,
        random.Random(0),
        lower={"value": price_bound(instance, proof), "proof": to_builtins(proof)},
    )


def test_a_certificate_says_how_it_was_proved_and_cannot_claim_more(tmp_path: Path) -> None:
    instance = crowded(8)
    content = by_slots(instance, PROOF)
    said = judged(tmp_path / "valid.json", content)
    assert said.valid
    assert "its proof by prices of tokens and slots" in "\n".join(said.lines)
    content["lower"]["value"] += 1
    assert not judged(tmp_path / "more.json", content).valid


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("times", [0], "needs two times"),
        ("times", [0, 40, 10], "which ascend"),
        ("times", [0, 10, 10], "which ascend"),
        ("times", [-1, 10, 40], "ascend from 0 on"),
        ("times", [0, 10, 40, 50], "negative or missing"),
        ("times", [0, 10, 10**12], "prices: needs about"),
        ("capacity", 0, "capacities and first times are at least 1"),
        ("capacity", 10**12, "times the default budget"),
        ("numerators", [1, -1, 1], "negative or missing"),
        ("numerators", [], "negative or missing"),
        ("numerators", [1, 1], "negative or missing"),
    ],
)
def test_what_is_no_proof_by_slots_is_refused(
    tmp_path: Path, field: str, value: object, words: str
) -> None:
    content = by_slots(crowded(8), PROOF)
    content["lower"]["proof"]["resources"][1][field] = value
    said = judged(tmp_path / "changed.json", content)
    assert not said.valid
    assert words in "\n".join(said.lines)


@pytest.mark.usefixtures("few_steps")
def test_auto_takes_slots_where_many_requests_are_large() -> None:
    source = random.Random(4)
    prompts = (source.choice((range(1000, 1400), range(20, 300))) for _ in range(120))
    shapes = [(source.choice(prompt), source.randint(2, 30)) for prompt in prompts]
    instance = Instance(2000, [Request(source.randint(0, 500), *shape) for shape in shapes])
    found, tokens = bound(instance), bound(instance, "lagrangian")
    assert known(found.checked).bounded_by == "slots"
    assert known(found.value) > 1.4 * known(tokens.value)


def test_the_coarse_program_stands_for_all_requests() -> None:
    instance = crowded(200)
    search = Search(instance)
    offer_list_schedules(search)
    coarse = coarse_prices(
        instance, known(search.schedule), (1, 2), 50, 20, search.budget, search.limits
    )
    assert coarse is not None
    assert coarse.borders[0] == 0
    assert (np.diff(coarse.borders) > 0).all()
    assert coarse.worth.shape == (3, len(coarse.borders) - 1)
    assert (coarse.worth >= 0).all()
    assert coarse.worth[1].sum() > 0.5 * coarse.worth.sum()


def test_a_sample_goes_through_arrivals_and_volumes() -> None:
    instance = generate("mixed", 5000, 16_492, seed=2)
    some, each = sampled(instance, 500)
    assert 500 <= len(some) <= 510
    assert len(some) * each == pytest.approx(5000)
    whole, part = (np.mean([r.volume for r in kind]) for kind in (instance, some))
    assert part == pytest.approx(whole, rel=0.1)
