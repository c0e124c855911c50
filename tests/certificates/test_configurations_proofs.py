"""Proofs by configurations as they are written: what they give, and mistakes planted in them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import brute_force
import pytest
from certificates import proved, verified
from effort import many
from known import known
from msgspec import to_builtins
from strategies import instance_of, plain, random_instances

from kvopt import Instance, generate
from kvopt.bounds.configurations.ascent import AscentStage
from kvopt.bounds.configurations.dual_ascent import DualAscent
from kvopt.bounds.configurations.evaluation import Evaluation
from kvopt.bounds.configurations.forward_search import ForwardSearch, predecessors_of
from kvopt.certificates import Certificate
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.proofs import CheckedBound, ConfigurationProof
from kvopt.search.stages import states_priced

Proof = dict[str, Any]


def claim(instance: Instance, value: int, proof: ConfigurationProof) -> Certificate:
    """Return a certificate of a lower bound alone."""
    return Certificate(instance, None, CheckedBound(value, "configuration", proof))


def proofs_of(instance: Instance, rule_out: bool) -> Iterator[tuple[int, ConfigurationProof]]:
    """Yield each bound on the way, bound-only and searched, with its proof."""
    search = Search(instance)
    offer_list_schedules(search)
    for rising in states_priced(search, search.budget, fixes=rule_out):
        evaluation = rising.evaluation
        target = known(search.schedule).objective
        yield rising.proved(evaluation, target)
        yield min(evaluation.bound, target), rising.proof(target)
        forward = ForwardSearch(rising.states, predecessors_of(instance), evaluation, target)
        found = forward.search_exhaustively(100_000)
        if found is not None:
            search.offer_starts(found, "test")
        value = known(search.schedule).objective
        yield value, rising.proof(value, ())


def short_stages(instance: Instance, optimum: int) -> Iterator[tuple[DualAscent, Evaluation, int]]:
    """Yield prices, what they prove and a target, as starts are ruled out for lower targets.

    Stages are so short that they leave something to those after.
    """
    search = Search(instance)
    offer_list_schedules(search)
    rising = DualAscent(instance, known(search.schedule).makespan)
    for steps, more in ((1, 3), (2, 1), (5, 1), (9, 0)):
        target = optimum + more
        evaluation = rising.ascend(AscentStage(1, 0.1, 0.0, steps), optimum)
        yield rising, evaluation, target
        if evaluation.bound >= target:
            break
        rising.fix_starts(evaluation, target)


def proofs_in_stages(instance: Instance, optimum: int) -> Iterator[tuple[int, ConfigurationProof]]:
    """Yield proofs of short stages, bound-only and searched."""
    for rising, evaluation, target in short_stages(instance, optimum):
        yield rising.proved(evaluation, target)
        yield min(evaluation.bound, target), rising.proof(target)
        forward = ForwardSearch(rising.states, predecessors_of(instance), evaluation, optimum)
        assert forward.search_exhaustively(100_000) is None
        yield optimum, rising.proof(optimum, ())


def small_instances(seed: int, count: int) -> Iterator[Instance]:
    """Yield tiny instances; some mix a short prompt and a long output with large prompts."""
    source = random.Random(seed)
    yield from random_instances(count, seed, least_requests=2, most_memory=12, most_output=6)
    for _ in range(count):
        memory = source.randint(8, 20)
        shapes = [(0, source.randint(2, 6))]
        for _ in range(source.randint(2, 4)):
            prompt = source.randint(2, memory - 4)
            shapes.append((prompt, source.randint(1, min(4, memory - prompt))))
        yield instance_of(memory, [(source.randint(0, 3), *shape) for shape in shapes])


class TestReplay:
    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["rule out", "keep all", "in stages"])
    def test_every_proof_on_the_way_gives_what_is_offered(self, kind: str) -> None:
        """Some targets are lower than those that starts were ruled out for, as in a search."""
        counts: Counter[str] = Counter()
        for instance in small_instances(3, many(12)):
            optimum = brute_force.optimum(*plain(instance))
            found = (
                proofs_in_stages(instance, optimum)
                if kind == "in stages"
                else proofs_of(instance, kind == "rule out")
            )
            for value, proof in found:
                assert value <= optimum
                verified(claim(instance, value, proof))
                counts["all"] += 1
                counts["searched"] += proof.searched
                counts["stages"] += len(proof.stages) > 1
        assert counts["all"] > many(30)
        assert counts["searched"] > many(15)
        assert kind != "in stages" or counts["stages"] > many(15)

    def test_last_prices_alone_are_the_proof_where_they_prove_as_much(self) -> None:
        alone = staged = 0
        for instance in small_instances(5, many(20)):
            optimum = brute_force.optimum(*plain(instance))
            for rising, evaluation, target in short_stages(instance, optimum):
                value, proof = rising.proved(evaluation, target)
                assert value >= min(evaluation.bound, target)
                assert value <= min(optimum, given(instance, to_builtins(proof)))
                alone += proof.target is None and len(rising.proof(target).stages) > 1
                staged += proof.target is not None
        assert alone > many(10)
        assert staged > many(10)

    @pytest.mark.slow
    @pytest.mark.parametrize("n", [10, 16])
    def test_bounds_of_more_requests_are_what_was_offered(self, n: int) -> None:
        instance = generate("arrival-2", n, seed=2)
        search = Search(instance, Limits(time_limit=20))
        offer_list_schedules(search)
        for count, _ in enumerate(states_priced(search, search.budget)):
            if count == 1:
                break
        found = given(instance, to_builtins(known(search.checked).proof))
        assert found == known(search.checked).value


def given(instance: Instance, proof: Proof) -> int:
    """Return what the verifier makes of a proof."""
    return proved(instance, json.loads(json.dumps(proof)))
