"""Proofs by cost-to-go bounds: these against all schedules, and what a search makes of them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from brute_force import feasible, tel
from configuration_proofs import (
    FREE,
    Problem,
    Proof,
    Stage,
    best,
    drawn_cuts,
    drawn_problem,
    drawn_stage,
    good_stage,
    plainly,
    proved,
    with_cuts,
    words,
)
from effort import many

from kvopt.verify import check_configurations as configurations
from kvopt.verify import step_budget
from kvopt.verify.carried_costs import CarriedCosts
from kvopt.verify.check_proofs import value_of_proof
from kvopt.verify.step_budget import STEPS, Invalid, Unreadable, Work

Costs = list[dict[int, int]]


def searched(
    problem: Problem, stage: Stage, target: int
) -> tuple[configurations.Stage, Costs, int]:
    """Return an evaluated stage, the reduced costs that it leaves, and the budget."""
    found = configurations.Stage(plainly(problem), stage, True, Work())
    starts = [range(r.arrival, max(r.arrival, found.last) + 1) for r in found.requests]
    costs = found.evaluate(starts)
    budget = (target - 1) * found.scale - found.total
    left = [
        {k: cost for k, cost in zip(own, paid, strict=True) if cost <= budget}
        for own, paid in zip(starts, costs, strict=True)
    ]
    return found, left, budget


def below(problem: Problem, target: int, left: Costs) -> Iterator[tuple[int, ...]]:
    """Yield the starts of all schedules below a target that are left, of few requests."""
    memory, requests = problem
    longest = [range(min(own), target + max(a for a, _, _ in requests) + 1)
               for own in left]  # fmt: skip
    for starts in product(*longest):
        if tel(requests, starts) < target and feasible(memory, requests, starts):
            yield starts


def bounded(problem: Problem, stage: Stage, cuts: list[int], target: int) -> int:
    """Compare cost-to-go bounds with what every schedule below the target has still to pay.

    Return how often a set was known.
    """
    memory, requests = problem
    first = min(arrival for arrival, _, _ in requests)
    problem = memory, tuple((a - first, s, o) for a, s, o in requests)
    found, left, budget = searched(problem, stage, target)
    if budget < 0:
        return 0
    completions, known = CarriedCosts(found, left, cuts, budget, Work()), 0
    for starts in below(problem, target, left):
        paid = [
            own[k] if k in own else own[max(own)] + (k - max(own)) * found.scale
            for own, k in zip(left, starts, strict=True)
        ]
        ends = [(k + o, s + o) for k, (_, s, o) in zip(starts, problem[1], strict=True)]
        lost = [
            found.largest[time]
            - sum(
                found.price(time, peak, end - time)
                for k, (end, peak) in zip(starts, ends, strict=True)
                if k < time <= end
            )
            for time in range(found.last + 1)
        ]
        assert found.total + sum(paid) + sum(lost) == found.scale * tel(problem[1], starts)
        for time in range(found.last + 1):
            rest = sum(cost for k, cost in zip(starts, paid, strict=True) if k >= time)
            members = tuple(
                sorted(
                    member
                    for k, (end, peak) in zip(starts, ends, strict=True)
                    if k < time < completions.last[member := end * (memory + 1) + peak]
                )
            )
            sets, cut = completions.after(time)
            known += members in sets
            assert sets.get(members, cut) <= rest + sum(lost[time + 1 :])
    return known


def drawn(seed: int, most: int = 4) -> tuple[Problem, Stage, list[int]]:
    """Return a problem, good or random prices for it, and cuts."""
    source = random.Random(seed)
    problem = drawn_problem(source, most=most, most_memory=source.choice((5, 7, 10)))
    if source.random() < 0.3:  # equal peaks
        memory, requests = problem
        problem = memory, tuple((a, memory // 2 + 1 - min(o, memory // 2), min(o, memory // 2))
                                for a, _, o in requests)  # fmt: skip
    is_good = len(problem[1]) < 4 and source.random() < 0.5
    last = source.randint(1, 12)
    stage = good_stage(source, problem) if is_good else drawn_stage(source, problem, last)
    return problem, stage, drawn_cuts(source, stage)


class TestBounds:
    """No schedule below the target pays less from a time on than its members are said to cost."""

    @pytest.mark.slow
    def test_no_schedule_costs_less_than_its_bound(self) -> None:
        known = 0
        for seed in range(many(400)):
            problem, stage, cuts = drawn(seed, most=3)
            known += bounded(problem, stage, cuts, best(problem) + seed % 4)
        assert known > many(1000)


def by_search(problem: Problem, proof: Proof) -> int | None:
    """Return what a proof gives by definition: the target, None if a schedule is below it."""
    return proof["target"] if best(problem) >= proof["target"] else None


class TestSearch:
    """A search accepts the optimum as a target, and nothing above it, with cuts and without."""

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(4))
    def test_searches_around_the_optimum_agree_with_all_schedules(self, seed: int) -> None:
        for number in range(many(200)):
            problem, stage, cuts = drawn(1000 * seed + number, most=7)
            for more in (-1, 0, 1):
                proof = with_cuts([stage], best(problem) + more, cuts)
                assert proved(problem, proof) == by_search(problem, proof), (problem, proof)
                del proof["cuts"]
                assert proved(problem, proof) == by_search(problem, proof), (problem, proof)

    @pytest.mark.slow
    def test_a_changed_number_proves_no_more(self) -> None:
        source = random.Random(3)
        for seed in range(60):
            problem, stage, cuts = drawn(seed, most=5)
            for _ in range(8):
                changed = [[*row] for row in stage["numerators"]]
                row = source.choice(changed)
                if row:
                    row[source.randrange(len(row))] = source.choice((0, 1, 7, 1000, -1))
                other = {**stage, "numerators": changed}
                for more in (0, 1):
                    target = best(problem) + more
                    found = proved(problem, with_cuts([other], target, cuts))
                    assert found in (None, best(problem)), (problem, other, cuts)
                    is_negative = min(map(min, changed), default=0) < 0 if changed[0] else False
                    assert (found is None) == (more > 0 or is_negative)

    def test_cuts_leave_fewer_partial_schedules(self) -> None:
        problem = (6, ((0, 3, 3),) * 6)
        stage = {"denominator": 1, "peaks": [[6, 3]], "times": [18], "numerators": [[1, 1, 1]]}
        counts = []
        for cuts in ([0], [10**9] * 18):
            text = words(problem, with_cuts([stage], 63, cuts), 63)
            form = r"([\d,]+) sets of states and a search of (\d+) partial schedules, none below 63"
            counts.append([int(part) for part in re.findall(form, text)[0]])
        assert counts[0][0] < counts[1][0]
        assert counts[1][1] <= counts[0][1]

    @pytest.mark.slow
    @pytest.mark.parametrize("more", [0, 1])
    def test_processes_that_share_it_find_the_same(
        self, monkeypatch: pytest.MonkeyPatch, more: int
    ) -> None:
        monkeypatch.setattr(step_budget, "WORTH_A_PROCESS", 1)
        for seed in range(3):
            problem, stage, cuts = drawn(seed, most=5)
            proof, work = with_cuts([stage], best(problem) + more, cuts), Work(jobs=2)
            if more:
                with pytest.raises(Invalid, match="a schedule has a total latency"):
                    value_of_proof(plainly(problem), proof, work)
                continue
            alone = Work()
            assert value_of_proof(plainly(problem), proof, work)[0] == best(problem)
            assert value_of_proof(plainly(problem), proof, alone)[0] == best(problem)
            assert work.used >= alone.used > 0

    def test_a_process_that_runs_out_of_steps_ends_them_all(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(step_budget, "WORTH_A_PROCESS", 1)
        problem, stage, cuts = drawn(1, most=5)
        proof, alone = with_cuts([stage], best(problem), cuts), Work()
        value_of_proof(plainly(problem), proof, alone)
        with pytest.raises(Unreadable, match="the budget of"):
            value_of_proof(plainly(problem), proof, Work(0.95 * alone.used / STEPS, jobs=2))

    @pytest.mark.parametrize("more", [0, 1])
    def test_weights_and_a_limit_count_beside_the_search(self, more: int) -> None:
        problem = (3, ((0, 2, 1), (0, 2, 1), (1, 1, 2)))
        optimum = best(problem)
        asked = replace(plainly(problem), weights=(1, 3, 1), max_active=1)
        proof = with_cuts([FREE], optimum + more, [9, 9])
        if more:
            with pytest.raises(Invalid, match="a schedule has a total latency"):
                value_of_proof(asked, proof, Work(), ["limit", "weights"])
        else:
            assert value_of_proof(asked, proof, Work(), ["limit", "weights"])[0] == optimum + 2

    @pytest.mark.parametrize("cuts", [[10**9] * 60, [10**299] * 5, [-(10**9)] * 9])
    def test_sets_of_states_are_counted(self, cuts: list[int]) -> None:
        problem = (40, tuple((0, s, 12) for s in range(1, 25)))
        stage = {**FREE, "times": [60]}
        with pytest.raises(Unreadable, match="budget"):
            value_of_proof(plainly(problem), with_cuts([stage], 2000, cuts), Work(0.01))
