"""Proofs by configurations as they are written: what they give, and mistakes planted in them."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import oracle
import pytest
from certificates import proved
from effort import many
from strategies import instance_of, plain, random_instances

import kvopt.verify as checker
from kvopt import Instance, generate, verify
from kvopt.bounds.configurations.ascent import Stage
from kvopt.bounds.configurations.bound import rising_bounds
from kvopt.bounds.configurations.evaluation import Evaluation
from kvopt.bounds.configurations.forward_search import ForwardSearch, twins_of
from kvopt.bounds.configurations.stages import Rising
from kvopt.certificates import Certificate, write_certificate
from kvopt.certificates.files import certificate_text, proof_to_json
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.proofs import CheckedBound, ConfigurationProof

Proof = dict[str, Any]
Mutation = Callable[[Proof, random.Random], None]


def claim(instance: Instance, value: int, proof: ConfigurationProof) -> Certificate:
    """Return a certificate of a lower bound alone."""
    return Certificate(instance, None, CheckedBound(value, "configuration", proof))


def proofs_of(instance: Instance, rule_out: bool) -> Iterator[tuple[int, ConfigurationProof]]:
    """Yield each bound on the way, bound-only and searched, with its proof."""
    search = Search(instance)
    offer_list_schedules(search)
    for rising, evaluation in rising_bounds(search, rule_out=rule_out):
        assert search.schedule is not None
        target = search.schedule.objective
        yield rising.proved(evaluation, target)
        yield min(evaluation.bound, target), rising.proof(target)
        forward = ForwardSearch(rising.states, twins_of(instance), evaluation, target)
        found = forward.search_exhaustively(100_000)
        if found is not None:
            search.offer_starts(found, "test")
        value = search.schedule.objective
        yield value, rising.proof(value, searched=True)


def short_stages(instance: Instance, optimum: int) -> Iterator[tuple[Rising, Evaluation, int]]:
    """Yield prices, what they prove and a target, as starts are ruled out for lower targets.

    Stages are so short that they leave something to those after.
    """
    search = Search(instance)
    offer_list_schedules(search)
    assert search.schedule is not None
    rising = Rising(instance, search.schedule.makespan)
    for steps, more in ((1, 3), (2, 1), (5, 1), (9, 0)):
        target = optimum + more
        evaluation = rising.climb(Stage(1, 0.1, 0.0, steps), optimum)
        yield rising, evaluation, target
        if evaluation.bound >= target:
            break
        rising.rule_out(evaluation, target)


def proofs_in_stages(instance: Instance, optimum: int) -> Iterator[tuple[int, ConfigurationProof]]:
    """Yield proofs of short stages, bound-only and searched."""
    for rising, evaluation, target in short_stages(instance, optimum):
        yield rising.proved(evaluation, target)
        yield min(evaluation.bound, target), rising.proof(target)
        forward = ForwardSearch(rising.states, twins_of(instance), evaluation, optimum)
        assert forward.search_exhaustively(100_000) is None
        yield optimum, rising.proof(optimum, searched=True)


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
    def test_every_proof_on_the_way_gives_what_is_offered(self, kind: str, tmp_path: Path) -> None:
        """Some targets are lower than those that starts were ruled out for, as in a search."""
        counts: Counter[str] = Counter()
        for number, instance in enumerate(small_instances(3, many(20))):
            optimum, _ = oracle.optimum(*plain(instance))
            found = (
                proofs_in_stages(instance, optimum)
                if kind == "in stages"
                else proofs_of(instance, kind == "rule out")
            )
            for value, proof in found:
                assert value <= optimum
                path = tmp_path / f"{number}.json"
                write_certificate(claim(instance, value, proof), path)
                verdict = verify(path)
                assert verdict.valid, verdict.lines
                counts["all"] += 1
                counts["searched"] += proof.searched
                counts["stages"] += len(proof.stages) > 1
        assert counts["all"] > 50
        assert counts["searched"] > 25
        assert kind != "in stages" or counts["stages"] > 25

    def test_last_prices_alone_are_the_proof_where_they_prove_as_much(self) -> None:
        alone = staged = 0
        for instance in small_instances(5, many(20)):
            optimum, _ = oracle.optimum(*plain(instance))
            for rising, evaluation, target in short_stages(instance, optimum):
                value, proof = rising.proved(evaluation, target)
                assert value >= min(evaluation.bound, target)
                assert value <= min(optimum, given(instance, proof_to_json(proof)))
                alone += proof.target is None and len(rising.proof(target).stages) > 1
                staged += proof.target is not None
        assert alone > 10
        assert staged > 10

    @pytest.mark.slow
    @pytest.mark.parametrize("n", [10, 16])
    def test_bounds_of_more_requests(self, n: int) -> None:
        instance = generate("arrival-2", n, seed=2)
        search = Search(instance, Limits(time_limit=20))
        offer_list_schedules(search)
        for count, _ in enumerate(rising_bounds(search)):
            if count == 1:
                break
        assert search.checked is not None
        found = given(instance, proof_to_json(search.checked.proof))
        assert found == search.checked.value


def given(instance: Instance, proof: Proof) -> int:
    """Return what the verifier makes of a proof."""
    return proved(instance, json.loads(json.dumps(proof)))


# Mistakes.


def some_row(proof: Proof, source: random.Random) -> list[int]:
    row: list[int] = source.choice(source.choice(proof["stages"])["numerators"])
    return row


def lower_a_row(proof: Proof, source: random.Random) -> None:
    row, factor = some_row(proof, source), source.choice((0, 1, 2))
    row[:] = [price * factor // 3 for price in row]


def raise_a_row(proof: Proof, source: random.Random) -> None:
    row, factor = some_row(proof, source), source.choice((4, 6, 30))
    row[:] = [price * factor // 3 for price in row]


def raise_a_price(proof: Proof, source: random.Random) -> None:
    row = some_row(proof, source)
    row[source.randrange(len(row))] += source.choice((1, 10**5, 10**7))


def raise_a_column(proof: Proof, source: random.Random) -> None:
    stage = source.choice(proof["stages"])
    place, more = source.randrange(len(stage["numerators"][0])), stage["denominator"]
    for row in stage["numerators"]:
        row[place] += more


def shuffle_a_row(proof: Proof, source: random.Random) -> None:
    source.shuffle(some_row(proof, source))


def drop_a_time(proof: Proof, source: random.Random) -> None:
    stage = source.choice(proof["stages"])
    place = source.randrange(len(stage["times"]))
    del stage["times"][place], stage["numerators"][place]


def move_a_time(proof: Proof, source: random.Random) -> None:
    times = source.choice(proof["stages"])["times"]
    times[source.randrange(len(times))] += source.choice((-1, 1))


def move_all_times(proof: Proof, source: random.Random) -> None:
    delay = source.choice((-1, 1, 3))
    for stage in proof["stages"]:
        stage["times"] = [time + delay for time in stage["times"]]


def change_a_denominator(proof: Proof, source: random.Random) -> None:
    stage = source.choice(proof["stages"])
    stage["denominator"] = max(1, int(stage["denominator"] * source.choice((0, 0.5, 0.9, 2))))


def remove_a_stage(proof: Proof, source: random.Random) -> None:
    if len(proof["stages"]) > 1:
        del proof["stages"][source.randrange(len(proof["stages"]))]
    else:
        proof["stages"] = []


def repeat_a_stage(proof: Proof, source: random.Random) -> None:
    proof["stages"].append(copy.deepcopy(source.choice(proof["stages"])))


def shuffle_the_stages(proof: Proof, source: random.Random) -> None:
    source.shuffle(proof["stages"])


def change_the_target(proof: Proof, source: random.Random) -> None:
    proof["target"] = source.choice((None, 0, (proof["target"] or 9) + source.choice((-1, 1, 7))))


def change_the_search(proof: Proof, source: random.Random) -> None:
    proof["searched"] = not proof["searched"] or source.random() < 0.2


def change_the_peaks(proof: Proof, source: random.Random) -> None:
    pair = source.choice(source.choice(proof["stages"])["peaks"])
    pair[source.randrange(2)] += source.choice((-1, 1))


def swap_the_peaks(proof: Proof, source: random.Random) -> None:
    peaks = source.choice(proof["stages"])["peaks"]
    one, other = source.randrange(len(peaks)), source.randrange(len(peaks))
    peaks[one][0], peaks[other][0] = peaks[other][0], peaks[one][0]


MUTATIONS: tuple[Mutation, ...] = (
    lower_a_row,
    raise_a_row,
    raise_a_price,
    raise_a_column,
    shuffle_a_row,
    drop_a_time,
    move_a_time,
    move_all_times,
    change_a_denominator,
    remove_a_stage,
    repeat_a_stage,
    shuffle_the_stages,
    change_the_target,
    change_the_search,
    change_the_peaks,
    swap_the_peaks,
)

Example = tuple[Instance, int, list[ConfigurationProof]]


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    """Return instances, their optima and true proofs, some in several stages."""
    found = []
    for number, instance in enumerate(small_instances(8, 12)):
        optimum, _ = oracle.optimum(*plain(instance))
        proofs = proofs_in_stages(instance, optimum) if number % 3 else proofs_of(instance, True)
        if some := [proof for _, proof in proofs][-4:]:
            found.append((instance, optimum, some))
    assert any(len(proof.stages) > 1 for _, _, proofs in found for proof in proofs)
    return found


class TestMistakes:
    """Whatever is wrong with a proof, it proves nothing above the optimum."""

    @pytest.mark.slow
    @pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.__name__)
    def test_a_mistake_is_refused_or_gives_less(
        self, mutation: Mutation, examples: list[Example]
    ) -> None:
        source = random.Random(5)
        changed = 0
        for instance, optimum, proofs in examples:
            for proof in proofs:
                for times in (1, 3):
                    content = json.loads(json.dumps(proof_to_json(proof)))
                    for _ in range(times):
                        if content["stages"]:
                            mutation(content, source)
                    changed += content != json.loads(json.dumps(proof_to_json(proof)))
                    try:
                        value = given(instance, content)
                    except (checker.Invalid, checker.Unreadable):
                        continue
                    assert value <= optimum, (plain(instance), content)
        assert changed > 10

    def test_mistakes_together(self, examples: list[Example]) -> None:
        source = random.Random(6)
        accepted = 0
        for instance, optimum, proofs in examples:
            for _ in range(12):
                content = json.loads(json.dumps(proof_to_json(source.choice(proofs))))
                for mutation in source.sample(MUTATIONS, 3):
                    if content["stages"]:
                        mutation(content, source)
                try:
                    assert given(instance, content) <= optimum, (plain(instance), content)
                    accepted += 1
                except (checker.Invalid, checker.Unreadable):
                    continue
        assert accepted > 20

    @pytest.mark.slow
    def test_no_file_claims_more_than_the_optimum(
        self, examples: list[Example], tmp_path: Path
    ) -> None:
        source = random.Random(7)
        path = tmp_path / "false.json"
        for instance, optimum, proofs in examples:
            for proof in proofs:
                text = certificate_text(claim(instance, optimum, proof))
                for mutation in (None, *source.sample(MUTATIONS, 4)):
                    content = json.loads(text)
                    content["lower"]["value"] += 1
                    if mutation is not None:
                        mutation(content["lower"]["proof"], source)
                    path.write_text(json.dumps(content))
                    assert not verify(path).valid

    def test_a_proof_for_another_instance_is_not_taken(self, examples: list[Example]) -> None:
        for instance, _, proofs in examples:
            memory, requests = plain(instance)
            others = [(memory + 1, requests), (memory, requests[1:]), (memory, requests[:-1])]
            for other in others:
                optimum, _ = oracle.optimum(*other)
                for proof in proofs:
                    try:
                        found = given(instance_of(*other), proof_to_json(proof))
                    except (checker.Invalid, checker.Unreadable):
                        continue
                    assert found <= optimum
