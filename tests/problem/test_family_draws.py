"""Draws of the families: the distributions and constructions that the papers print."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from statistics import NormalDist, fmean, median, pvariance

import pytest
from drawn import CHEN, SHARING, TRAFFIC, WANG, arrivals, noted, outputs, prompts

from kvopt.problem.families import generate
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Prediction, Request
from kvopt.timetable.schedule import Schedule

Keys = dict[str, int | float | str]


def share(values: Sequence[int], wanted: Callable[[int], bool]) -> float:
    return sum(map(wanted, values)) / len(values)


class TestJaillet:
    """The two arrival models and the randomised adversary."""

    def test_draws_that_no_release_may_change(self) -> None:
        instance = generate("arrival-1", n=5, seed=0)
        shapes = [request.shape for request in instance]
        assert instance.memory == 47
        assert shapes == [(4, 19), (2, 24), (3, 35), (2, 22), (3, 40)]

    def test_arrival_1_has_the_printed_ranges(self) -> None:
        drawn = [generate("arrival-1", seed=seed) for seed in range(400)]
        assert {instance.memory for instance in drawn} == set(range(30, 51))
        assert {len(instance) for instance in drawn} == set(range(40, 61))
        assert {arrival for instance in drawn for arrival in arrivals(instance)} == {0}

    def test_arrival_1_draws_shapes_uniformly(self) -> None:
        instance = generate("arrival-1", n=20_000, memory=30, seed=1)
        by_prompt = Counter(prompts(instance))
        assert set(by_prompt) == set(range(1, 6))
        assert all(abs(count - 4000) < 250 for count in by_prompt.values())
        for prompt in range(1, 6):
            of_prompt = [r.output for r in instance if r.prompt == prompt]
            assert set(of_prompt) == set(range(1, 30 - prompt + 1))
            assert fmean(of_prompt) == pytest.approx((31 - prompt) / 2, abs=0.5)

    def test_arrival_2_has_the_printed_ranges(self) -> None:
        drawn = [generate("arrival-2", seed=seed) for seed in range(500)]
        rates = [noted(instance)["rate"] for instance in drawn]
        assert {noted(instance)["rounds"] for instance in drawn} == set(range(40, 61))
        assert 0.5 <= min(rates) < 0.52
        assert 1.48 < max(rates) < 1.5
        assert fmean(map(len, drawn)) == pytest.approx(50, abs=2)
        for instance in drawn:
            assert set(arrivals(instance)) <= set(range(1, noted(instance)["rounds"] + 1))
            assert arrivals(instance) == sorted(arrivals(instance))

    @pytest.mark.parametrize("rate", [0.5, 3.0])
    def test_arrival_2_counts_are_poisson(self, rate: float) -> None:
        rounds = 10_000
        instance = generate("arrival-2", seed=5, parameters={"rate": rate, "rounds": rounds})
        by_round = Counter(arrivals(instance))
        counts = [by_round[t] for t in range(1, rounds + 1)]
        assert fmean(counts) == pytest.approx(rate, rel=0.05)
        assert pvariance(counts) == pytest.approx(rate, rel=0.05)
        assert counts.count(0) / rounds == pytest.approx(math.exp(-rate), abs=0.01)

    def test_arrival_2_given_n_spreads_it_evenly(self) -> None:
        instance = generate("arrival-2", n=20_000, seed=1, parameters={"rounds": 40})
        counts = Counter(arrivals(instance))
        assert set(counts) == set(range(1, 41))
        assert all(abs(count - 500) < 100 for count in counts.values())

    def test_adversary_holds_one_long_request_and_short_ones_together(self) -> None:
        instance = generate("v1-thm-6.4", memory=200, seed=4)
        long, *short = instance.requests
        assert (long.arrival, long.prompt, long.peak) == (0, 19, 200)
        assert len(short) == 20
        assert len({(request.arrival, request.shape) for request in short}) == 1
        assert short[0].shape == (19, 1)
        assert short[0].arrival == math.floor(noted(instance)["k"] * 200 + 1e-6)

    def test_adversary_draws_every_time_of_the_proof(self) -> None:
        parameters = {"epsilon": 0.25, "c": 2}
        drawn = [generate("v1-thm-6.4", seed=seed, parameters=parameters) for seed in range(600)]
        counts = Counter(noted(instance)["k"] for instance in drawn)
        assert sorted(counts) == [0.5 + 0.25 * step for step in range(9)]  # 1 - 2e .. c + 1 - 2e
        assert min(counts.values()) > 40
        assert {instance.requests[1].arrival for instance in drawn} == set(range(50, 251, 25))
        keys = {"epsilon": 0.3, "c": 2}
        last = [generate("v1-thm-6.4", seed=s, parameters=keys).last_arrival for s in range(100)]
        assert max(last) == 220  # 0.4 M + 6 steps of 0.3 M

    def test_adversary_takes_prompts_and_count(self) -> None:
        parameters = {"prompt": 0, "short-prompt": 49}
        instance = generate("v1-thm-6.4", n=8, memory=50, parameters=parameters)
        assert [r.shape for r in instance] == [(0, 50)] + [(49, 1)] * 7


class TestWang:
    """The five distributions and the two constructions."""

    @pytest.mark.parametrize("name", WANG)
    def test_defaults_are_those_of_the_appendix(self, name: str) -> None:
        instance = generate(name)
        assert instance.memory == 100
        assert len(instance) == (200 if name == "mixed" else 100)
        assert set(arrivals(instance)) == {0}
        assert all(1 <= s <= 50 and 1 <= o <= 50 for s, o in (r.shape for r in instance))

    @pytest.mark.parametrize("values", [prompts, outputs])
    def test_uniform_draws_1_to_50_alike(self, values: Callable[[Instance], list[int]]) -> None:
        counts = Counter(values(generate("uniform", n=25_000, seed=1)))
        assert set(counts) == set(range(1, 51))
        assert all(abs(count - 500) < 100 for count in counts.values())

    @pytest.mark.parametrize("values", [prompts, outputs])
    def test_normal_is_rounded_down_and_binomial_has_one_more(
        self, values: Callable[[Instance], list[int]]
    ) -> None:
        drawn, law = values(generate("normal", n=20_000, seed=1)), NormalDist(25, 8.33)
        assert fmean(drawn) == pytest.approx(24.5, abs=0.2)
        assert math.sqrt(pvariance(drawn)) == pytest.approx(8.3, abs=0.15)
        assert share(drawn, lambda x: x < 17) == pytest.approx(law.cdf(17), abs=0.012)
        drawn = values(generate("binomial", n=10_000, seed=1))
        assert fmean(drawn) == pytest.approx(25.5, abs=0.12)
        assert pvariance(drawn) == pytest.approx(49 / 4, rel=0.05)

    def test_exponential_is_clipped_then_rounded_down(self) -> None:
        instance = generate("exponential", n=20_000, seed=1)
        for drawn in (prompts(instance), outputs(instance)):
            assert share(drawn, lambda x: x == 1) == pytest.approx(1 - math.exp(-2 / 5), abs=0.012)
            expected = 1 + sum(math.exp(-k / 5) for k in range(2, 51))
            assert fmean(drawn) == pytest.approx(expected, rel=0.02)

    def test_mixed_has_two_humps_and_nothing_above_50(self) -> None:
        drawn = prompts(generate("mixed", n=20_000, seed=1))
        assert max(drawn) == 49  # what lies above 50 comes back as U(40, 50)
        tail = NormalDist(math.log(40), 0.25)
        far = 0.8 * math.exp(-4) + 0.2 * (1 - tail.cdf(math.log(40)))
        near = 0.8 * (1 - math.exp(-1)) + 0.2 * tail.cdf(math.log(10))
        assert share(drawn, lambda x: x >= 40) == pytest.approx(far, abs=0.012)
        assert share(drawn, lambda x: x < 10) == pytest.approx(near, abs=0.012)

    @pytest.mark.parametrize("name", [*WANG, "conversation"])
    def test_small_memory_is_met_by_drawing_again(self, name: str) -> None:
        instance = generate(name, n=200, memory=45, seed=1)
        assert max(request.peak for request in instance) <= 45
        assert set(prompts(instance)) - {1}

    @pytest.mark.parametrize("k", [2, 3, 4])
    def test_constructions_are_those_of_theorems_2_1_and_8_2(self, k: int) -> None:
        first, second = (generate(name, parameters={"k": k}) for name in ("thm-2.1", "thm-8.2"))
        assert (first.memory, second.memory) == (k**4, k**2)
        assert Counter(r.shape for r in first) == {(k**2 - 1, 1): k**4, (1, 2): k**5}
        assert Counter(r.shape for r in second) == {(1, k - 1): k**2, (k, 1): k**3}

    @pytest.mark.parametrize(("name", "power"), [("thm-2.1", 4), ("thm-8.2", 2)])
    def test_memory_says_k_too(self, name: str, power: int) -> None:
        by_memory = generate(name, memory=3**power)
        assert by_memory.hash == generate(name, parameters={"k": 3}).hash
        assert noted(by_memory)["k"] == 3


class TestChen:
    """One prompt, and outputs inside an interval."""

    @pytest.mark.parametrize("name", CHEN)
    def test_prompt_and_interval_are_stored(self, name: str) -> None:
        instance = generate(name, n=300, memory=30, parameters={"prompt": 7, "u": 12})
        lower = 5 if name == "two-point" else 1
        assert set(prompts(instance)) == {7}
        assert {request.predicted for request in instance} == {Prediction(lower, 12)}
        assert {lower, 12} <= set(outputs(instance)) <= set(range(lower, 13))

    def test_two_points_have_their_shares(self) -> None:
        parameters = {"l": 3, "u": 9, "share": 0.3}
        drawn = outputs(generate("two-point", n=10_000, parameters=parameters))
        assert set(drawn) == {3, 9}
        assert share(drawn, lambda o: o == 3) == pytest.approx(0.3, abs=0.02)
        assert set(outputs(generate("two-point", parameters={"l": 4, "u": 4}))) == {4}

    @pytest.mark.parametrize("q", [0.0, 0.5, 0.9, 0.9999])
    @pytest.mark.parametrize(("name", "slope"), [("geometric", 0), ("linear-geometric", 1)])
    def test_outputs_have_the_weights_of_the_paper(self, name: str, slope: int, q: float) -> None:
        drawn = outputs(generate(name, n=20_000, seed=1, parameters={"q": q, "u": 8}))
        weights = [k**slope * q ** (k - 1) for k in range(1, 9)]
        for k, weight in enumerate(weights, 1):
            found = drawn.count(k) / len(drawn)
            assert found == pytest.approx(weight / sum(weights), abs=0.015)

    @pytest.mark.parametrize("name", CHEN[1:])
    def test_weights_that_underflow_are_never_drawn(self, name: str) -> None:
        parameters = {"q": 1e-9, "u": 1000}
        assert set(outputs(generate(name, memory=1001, parameters=parameters))) == {1}


def is_three_partition(numbers: list[int], target: int) -> bool:
    """Whether the numbers split into triples of one sum, by trying them all."""
    if not numbers:
        return True
    first, *rest = numbers
    return any(
        is_three_partition([x for i, x in enumerate(rest) if i not in pair], target)
        for pair in combinations(range(len(rest)), 2)
        if first + rest[pair[0]] + rest[pair[1]] == target
    )


class TestThreePartition:
    """Numbers as prompts, one output each, M = B + 3."""

    @pytest.mark.parametrize("answer", ["yes", "any"])
    @pytest.mark.parametrize("target", [3, 6, 13, 40, 10**6, 10**9])
    def test_numbers_keep_the_promise(self, answer: str, target: int) -> None:
        parameters: Keys = {"target": target, "m": 20, "answer": answer}
        instance = generate("three-partition", seed=1, parameters=parameters)
        numbers = prompts(instance)
        assert instance.memory == target + 3
        assert len(numbers) == 60
        assert sum(numbers) == 20 * target
        assert all(target < 4 * x and 2 * x < target for x in numbers)
        assert set(outputs(instance)) == {1}
        assert sum(sorted(x + 1 for x in numbers)[:4]) > instance.memory

    @pytest.mark.parametrize("seed", range(8))
    def test_yes_can_be_solved(self, seed: int) -> None:
        parameters = {"target": 100, "m": 4}
        assert is_three_partition(
            prompts(generate("three-partition", seed=seed, parameters=parameters)), 100
        )

    @pytest.mark.parametrize("target", [100, 10**6])
    def test_any_forgets_the_triples(self, target: int) -> None:
        parameters: Keys = {"target": target, "m": 3, "answer": "any"}
        drawn = [generate("three-partition", seed=s, parameters=parameters) for s in range(30)]
        solvable = [is_three_partition(prompts(instance), target) for instance in drawn]
        assert sum(solvable) < 20

    def test_one_triple_a_round_is_the_optimum(self) -> None:
        instance = generate("three-partition", n=3, parameters={"target": 30})
        check = Schedule(instance, (0, 0, 0)).check()
        assert check.feasible
        assert (check.objective, check.peak_memory) == (3, 33)

    def test_n_stands_for_m(self) -> None:
        instance = generate("three-partition", n=12, seed=1, parameters={"m": 9})
        assert noted(instance)["m"] == 4
        assert instance.hash == generate("three-partition", seed=1, parameters={"m": 4}).hash


class TestTraffic:
    """Stand-ins against the statistics that the papers print."""

    SIZE = 20_000

    def test_conversations_have_the_printed_means(self) -> None:
        instance = generate("conversation", n=self.SIZE, seed=1)
        s, o = prompts(instance), outputs(instance)
        assert (min(s), max(s), min(o), max(o)) == (1, 468, 1, 883)
        assert fmean(s) == pytest.approx(41, rel=0.05)
        assert fmean(o) == pytest.approx(85, rel=0.05)
        assert median(s) == pytest.approx(11, abs=1)
        assert 42 <= median(o) <= 45

    def test_summarisations_have_the_printed_means(self) -> None:
        instance = generate("summarisation", n=self.SIZE, seed=1)
        s, o = prompts(instance), outputs(instance)
        assert fmean(s) == pytest.approx(2546, rel=0.01)
        assert median(s) == pytest.approx(2667.5, rel=0.015)
        assert fmean(s) < median(s)
        assert fmean(o) == pytest.approx(296, rel=0.05)
        assert median(o) == pytest.approx(161, rel=0.03)

    def test_the_mixture_is_four_to_one(self) -> None:
        instance = generate("conversation-summarisation", n=self.SIZE, seed=1)
        s, o = prompts(instance), outputs(instance)
        assert fmean(s) == pytest.approx(542.75, rel=0.03)
        assert 16 <= median(s) <= 20
        assert fmean(o) == pytest.approx(127.5, rel=0.03)

    @pytest.mark.parametrize(("part", "name"), [("0", "conversation"), ("1", "summarisation")])
    def test_share_reaches_both_ends(self, part: str, name: str) -> None:
        mixed = generate("conversation-summarisation", n=5000, parameters={"share": part})
        alone = generate(name, n=5000)
        assert fmean(prompts(mixed)) == pytest.approx(fmean(prompts(alone)), rel=0.1)

    @pytest.mark.parametrize("name", TRAFFIC)
    def test_defaults_are_those_of_the_papers(self, name: str) -> None:
        instance = generate(name)
        assert (len(instance), instance.memory) == (1000, 16_492)
        assert set(arrivals(instance)) == {0}

    @pytest.mark.parametrize("rate", [0.4, 2.0])
    def test_rate_makes_poisson_arrivals(self, rate: float) -> None:
        instance = generate("conversation", n=self.SIZE, seed=3, parameters={"rate": rate})
        counts = Counter(arrivals(instance))
        by_round = [counts[t] for t in range(1, instance.last_arrival)]
        assert counts[0] == 0
        assert arrivals(instance) == sorted(arrivals(instance))
        assert fmean(by_round) == pytest.approx(rate, rel=0.04)
        assert pvariance(by_round) == pytest.approx(rate, rel=0.06)


class TestSharing:
    """Sessions and agents: each turn begins with the turns before."""

    @pytest.mark.parametrize("name", SHARING)
    def test_a_turn_begins_with_the_turn_before(self, name: str) -> None:
        keys: Keys = {"system": 100, "kinds": 2, "turns": 3}
        instance = generate(name, n=2000, seed=2, parameters=keys)
        sessions = dict[str, list[Request]]()
        for request in instance:
            assert len(request.prefix) == request.prompt // 16
            assert list(request.prefix[:6]) in [
                [f"kind {k}, {v}" for v in range(6)] for k in (1, 2)
            ]
            if len(request.prefix) > 6:
                sessions.setdefault(str(request.prefix[6]).split(",")[0], []).append(request)
        for turns in sessions.values():
            for one, after in pairwise(turns):
                assert after.prefix[: len(one.prefix)] == one.prefix
                assert after.prompt > one.prompt + one.output
                assert after.arrival >= one.arrival + one.output
        assert {request.prefix[0] for request in instance} == {"kind 1, 0", "kind 2, 0"}
        assert 2.2 < 2000 / len(sessions) < 3.8
        assert sum(instance.forest.private) < sum(prompts(instance)) / 3

    def test_without_further_turns_only_instructions_are_shared(self) -> None:
        instance = generate("agents", n=50, parameters={"turns": 1, "kinds": 1, "system": 320})
        assert arrivals(instance) == [0] * 50
        assert instance.forest.weights == (320,)
