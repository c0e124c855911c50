"""Proofs by cases of what is active together: every bound holds, and complete trees are exact."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path

import brute_force
import numpy as np
import pytest
from certificates import changed, in_file, numbers_in, proved
from drawn_claims import random_branches
from effort import examples, many
from grown_trees import grown_tree
from hypothesis import given
from known import known
from strategies import instance_of, instances, plain, random_instances

from kvopt import Instance, certify, read_certificate, solve, verify, write_certificate
from kvopt.incumbent.proofs import BranchProof
from kvopt.problem.arrays import Floats
from kvopt.search.exact.branch_search import BranchTree, Program
from kvopt.verify.step_budget import Invalid, Unreadable

pytestmark = pytest.mark.usefixtures("processor_clock")

LARGE = instance_of(
    9000,
    [(0, 3251, 10), (0, 2766, 8), (2, 1775, 6), (2, 5412, 28), (4, 125, 6), (4, 2731, 12),
     (6, 3324, 15), (6, 3600, 7), (8, 4256, 21), (8, 1061, 30)],
)  # fmt: skip
"""A piece of a trace: sets of requests in 9,000 tokens are too many to go through."""
ALL = 10_000


def untrue(instance: Instance, proof: dict[str, object], optimum: int) -> bool:
    """Return whether the checker accepts more than the optimum."""
    try:
        return proved(instance, proof) > optimum
    except (Invalid, Unreadable):
        return False


@examples(200)
@given(instances())
def test_a_complete_tree_proves_the_optimum_and_finds_its_schedule(instance: Instance) -> None:
    optimum = brute_force.optimum(*plain(instance))
    for more in (0, 1, 7):
        tree = grown_tree(instance, optimum + more, ALL)
        assert (tree.value, tree.target) == (optimum, optimum)
        assert proved(instance, tree.proof()) == optimum


def test_every_tree_on_the_way_proves_what_it_says() -> None:
    source = random.Random(1)
    for instance in random_instances(many(60), 6, least_requests=1, last_arrival=8):
        optimum = brute_force.optimum(*plain(instance))
        values = []
        for steps in count():
            tree = grown_tree(instance, optimum + source.randint(0, 3), steps)
            values.append(tree.value)
            assert proved(instance, tree.proof()) == tree.value <= optimum
            if tree.value == tree.target or steps > 12:
                break
        assert values == sorted(values)


class AnyCases(BranchTree):
    """Branches of any requests, or any time, whether they cut off starts or not."""

    source = random.Random(2)

    def _branches(self, starts: Floats) -> list[tuple[int, ...]]:
        if not super()._branches(starts):
            return []
        count, source = len(starts), self.source
        if count == 1 or source.random() < 0.2:
            return [(-1 - source.randrange(count), source.randint(-1, 15))]
        return [tuple(source.sample(range(count), source.randint(2, min(3, count))))]


def test_no_cases_prove_more_than_the_optimum() -> None:
    source, helped = random.Random(2), 0
    for instance in random_instances(many(400), 4, least_requests=1, last_arrival=6):
        optimum = brute_force.optimum(*plain(instance))
        tree = AnyCases(instance, optimum + source.choice((1, 1, 2, 9)))
        for _ in range(source.randint(0, 12)):
            if tree.value < tree.target:
                tree.grow()
        value = proved(instance, tree.proof())
        assert value == tree.value <= optimum
        helped += value > instance.total_output
        proof = random_branches(source, len(instance), optimum + 1)
        assert not untrue(instance, proof, optimum)
    assert helped > many(60)


@pytest.mark.slow
def test_no_changed_tree_of_a_larger_target_proves_it() -> None:
    source, helped = random.Random(3), 0
    for instance in random_instances(many(60), 5, least_requests=2, last_arrival=6):
        optimum = brute_force.optimum(*plain(instance))
        proof = in_file(grown_tree(instance, optimum + 1, ALL).proof())
        proof["target"] = optimum + 1
        assert not untrue(instance, proof, optimum)
        for _ in range(20):
            place = source.choice(list(numbers_in(proof)))
            other = changed(proof, place, lambda number: number + source.choice((-1, 1, 2)))
            assert not untrue(instance, other, optimum) or other["target"] > optimum + 1
            helped += other != proof
    assert helped > many(200)


@pytest.mark.slow
def test_a_piece_of_a_trace_is_proved_and_checked(tmp_path: Path) -> None:
    certificate = certify(LARGE, time_limit=120)
    assert certificate.lower is not None
    assert isinstance(certificate.lower.proof, BranchProof)
    assert known(certificate.upper).objective == certificate.lower.value
    assert certificate.lower.value == solve(LARGE, "cpsat", time_limit=120).objective
    write_certificate(certificate, tmp_path / "c.json")
    assert verify(tmp_path / "c.json").valid
    again = read_certificate(tmp_path / "c.json")
    assert known(again.lower).proof == certificate.lower.proof


def test_a_program_without_an_answer_keeps_the_bound_of_its_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = grown_tree(LARGE, 340, 3)
    before = tree.value
    nothing = (-np.inf, None, np.zeros(0))
    monkeypatch.setattr(Program, "solve", lambda _: nothing)
    for _ in range(ALL):
        if tree.is_stuck:
            break
        tree.grow()
    assert tree.is_stuck
    assert before <= tree.value == proved(LARGE, tree.proof())
