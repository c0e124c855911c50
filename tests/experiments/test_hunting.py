"""Hunts find the worst instance that there is, and what they report is certified."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path

import brute_force
import pytest
from commands import Run
from literal import jaillet
from literal.common import Job

from kvopt import InvalidInput, verify
from kvopt import run as simulated
from kvopt.errors import Stopped
from kvopt.experiments.hunting import hunt
from kvopt.experiments.hunting.judge import Found, Judge, instance_of, one_by_one, shrunk
from kvopt.experiments.hunting.search import Chase
from kvopt.experiments.hunting.space import Case, Space, needs_order
from kvopt.problem.instance_files import instance_from_json
from kvopt.problem.scopes import Scope
from kvopt.search.exact import starts
from kvopt.search.exact.starts import best_below
from kvopt.simulate.policies.registry import policy

SEED: Case = (9, ((0, 1, 3), (0, 1, 4), (0, 1, 5), (0, 1, 7)))


def mc_sf(memory: int, requests: Sequence[brute_force.Triple]) -> int:
    """Return the total latency of ``mc-sf``, by its transcription."""
    return jaillet.mc_sf([Job(*request) for request in requests], memory).objective or 0


def best_with_pauses(case: Case, target: int) -> int | None:
    found = best_below(*case, target, pauses=True)
    return None if found is None else found[0]


def drawn_case(rng: random.Random, most: int) -> tuple[int, tuple[brute_force.Triple, ...]]:
    memory, requests = rng.randint(1, 8), []
    for _ in range(rng.randint(1, most)):
        prompt = rng.randrange(memory)
        requests.append((rng.randint(0, 4), prompt, rng.randint(1, memory - prompt)))
    return memory, tuple(requests)


@pytest.mark.slow
@pytest.mark.usefixtures("processor_clock")
@pytest.mark.parametrize(
    ("memory", "arrivals", "equal"), [(4, 0, False), (3, 1, False), (6, 0, True), (3, 2, True)]
)
def test_a_hunt_finds_the_worst_there_is(memory: int, arrivals: int, equal: bool) -> None:
    n = 4 if memory == 6 else 3
    worst = Fraction(1)
    for smaller, requests in brute_force.every_problem(memory, n, arrivals):
        if equal and len({s for _, s, _ in requests}) > 1:
            continue
        least = brute_force.optimum(smaller, requests)
        worst = max(worst, Fraction(mc_sf(smaller, requests), least))
    found = hunt(
        ["mc-sf"], n=n, memory=memory, last_arrival=arrivals, equal_prompts=equal, time_limit=60
    )
    assert found.exhausted == n
    assert worst > 1
    assert (found.ratio, found.proved, found.verified) == (worst, True, True)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("equal", [False, True])
def test_the_space_counts_what_it_yields(equal: bool, ordered: bool) -> None:
    space = Space(4, 3, last_arrival=1, equal_prompts=equal, ordered=ordered)
    for count in (1, 2, 3):
        cases = list(space.every(count))
        assert len(cases) == len(set(cases)) == space.size(count)
        assert all(map(space.holds, cases))
    rng = random.Random(1)
    case = space.drawn(rng)
    for _ in range(300):
        case = space.neighbour(case, rng)
        assert space.holds(case)
        instance_of(case)  # which refuses what is no instance


def test_order_matters_to_policies_that_ask_for_it() -> None:
    assert not needs_order([policy("mc-sf"), policy("svf")])
    assert needs_order([policy("mc-sf"), policy("fcfs")])
    assert needs_order([policy("svf-1bit:threshold=2,short=1,long=4")])
    assert needs_order([policy("mc-sf:pred=noise,eps=0.5")])


@pytest.mark.parametrize("label", ["mc-sf", "mc-sf:alpha=0.1", "mc-sf-total", "svf", "h-sf"])
def test_the_order_of_requests_is_nothing_to_the_blind(label: str) -> None:
    rng = random.Random(5)
    for _ in range(60):
        case = Space(9, 6, last_arrival=2).drawn(rng)
        shuffled = (case[0], tuple(rng.sample(case[1], len(case[1]))))
        one, other = (simulated(instance_of(c), label).objective for c in (case, shuffled))
        assert one == other


@pytest.mark.slow
def test_local_search_beats_the_seed() -> None:
    space = Space(10, 6, equal_prompts=True)
    judge = Judge([policy("mc-sf")], lambda: judge.tried > 1200)  # by work, not by the clock
    chase = Chase(space, judge, random.Random(1), lambda *_: None, math.inf)
    with pytest.raises(Stopped):
        chase.climb()
    assert chase.worst is not None
    assert chase.worst.ratio > Fraction(28, 27)
    memory, requests = chase.worst.case
    assert len({prompt for _, prompt, _ in requests}) == 1
    best = best_below(*chase.worst.case, 10**6)
    assert best is not None
    assert chase.worst.ratio == Fraction(mc_sf(memory, requests), best[0])


@pytest.mark.slow
def test_what_would_take_too_long_is_searched_locally() -> None:
    found = hunt(["mc-sf"], n=10, memory=14, equal_prompts=True, time_limit=1, seed=1)
    assert found.exhausted < 10
    assert found.tried > 0


def test_shrinking_keeps_the_ratio_and_ends_where_nothing_can_go() -> None:
    judge, space = Judge([policy("mc-sf")], lambda: False), Space(12, 6)
    padded: Case = (9, (*SEED[1], (0, 1, 3), (0, 1, 7)))
    ratio = judge.at_least(padded, Fraction(1))
    assert ratio is not None
    small = shrunk(Found(padded, ratio), judge, space.holds)
    assert small.ratio >= ratio
    assert len(small.case[1]) <= len(padded[1])
    assert shrunk(small, judge, space.holds) == small


def test_several_policies_are_beaten_together() -> None:
    found = hunt(["mc-sf", "svf"], n=3, memory=4, time_limit=60)
    assert found.certificate is not None
    assert found.ratio is not None
    instance = found.certificate.instance
    values = [simulated(instance, label).objective for label in ("mc-sf", "svf")]
    assert found.value == min(value for value in values if value is not None)
    assert found.ratio > 1


def test_who_is_never_worse_is_not_found(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "none.json"
    arguments = ("hunt", "-P", "mc-sf", "--n", 1, "--memory", 5, "-o", file)
    code, out, _ = run(*arguments, "--json")
    assert code == 3
    assert (json.loads(out)["ratio"], json.loads(out)["exhausted"]) == (None, 1)
    assert not file.exists()


def test_livelocks_are_counted_and_have_no_ratio(run: Run) -> None:
    code, out, _ = run("hunt", "-P", "alpha-protect:alpha=0.5", "--n", 2, "--memory", 4, "--json")
    found = json.loads(out)
    assert code in (0, 3)
    assert 0 < found["livelocks"] < found["tried"]


@pytest.mark.slow
@pytest.mark.usefixtures("processor_clock")
def test_the_command_writes_a_certificate(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "worst.json"
    arguments = ("hunt", "-P", "mc-sf", "--n", 4, "--memory", 6, "--equal-prompts")
    code, out, _ = run(*arguments, "-o", file, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["value"], found["optimum"], found["lower_bound"]) == (22, 20, 20)
    assert (found["proved"], found["verified"], found["exhausted"]) == (True, True, 4)
    assert verify(file).valid
    content = json.loads(file.read_text())
    assert content["hash"] == instance_from_json(found["instance"]).hash
    prompts = {request["prompt"] for request in found["instance"]["requests"]}
    assert len(prompts) == 1


def test_nobody_to_hunt() -> None:
    with pytest.raises(InvalidInput, match="--policy"):
        hunt([], n=2, memory=4)


def test_orders_are_all_tried_where_they_matter() -> None:
    found = hunt(["fcfs"], n=2, memory=4, time_limit=30)
    worst, tried = Fraction(1), 0
    for memory in range(1, 5):
        shapes = [(0, s, o) for s in range(memory) for o in range(1, memory + 1 - s)]
        tried += len(shapes) + len(shapes) ** 2
        for requests in product(shapes, repeat=2):
            value = simulated(instance_of((memory, requests)), "fcfs").objective
            assert value is not None
            worst = max(worst, Fraction(value, brute_force.optimum(memory, requests)))
    assert found.ratio == worst
    assert found.tried == tried


def test_ctrl_c_keeps_the_worst_so_far() -> None:
    def interrupt(ratio: Fraction, tried: int) -> None:
        assert ratio > 1
        assert tried > 0
        raise KeyboardInterrupt

    found = hunt(["mc-sf"], n=4, memory=5, time_limit=30, watch=interrupt)
    assert found.interrupted
    assert found.exhausted < 4
    assert found.verified
    assert found.ratio is not None
    assert found.ratio > 1


# ---- hunts with a scope


@pytest.mark.parametrize("steps", [1, 7])
def test_a_search_in_many_turns_finds_the_same(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(6)
    for _ in range(60):
        case = drawn_case(rng, 5)
        limit = one_by_one(case) + 1
        found = [best_below(*case, limit, pauses=pauses) for pauses in (False, True)]
        monkeypatch.setattr(starts, "_STEPS", steps)
        monkeypatch.setattr(starts, "_MOST_TURNS", 10**9)
        assert [best_below(*case, limit, pauses=pauses) for pauses in (False, True)] == found
        monkeypatch.undo()


def test_labels_take_over_where_starts_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "_STEPS", 2)
    monkeypatch.setattr(starts, "_MOST_TURNS", 1)
    rng = random.Random(4)
    for _ in range(20):
        memory, requests = case = drawn_case(rng, 3)
        least = brute_force.optimum(memory, requests, scope="pauses")
        assert best_with_pauses(case, least + 1) == least
        assert best_with_pauses(case, least) is None
    for pauses in (False, True):
        with pytest.raises(Stopped):
            best_below(9, ((0, 1, 5), (0, 1, 6)), 99, lambda: True, pauses=pauses)


def test_one_by_one_is_not_below_the_optimum() -> None:
    rng = random.Random(5)
    for _ in range(50):
        case = drawn_case(rng, 3)
        found = best_below(*case, one_by_one(case) + 1)
        assert found is not None
        assert found[0] == brute_force.optimum(*case)


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "arrivals"), [(4, 0), (2, 2)])
def test_a_hunt_finds_where_pausing_is_worth_most(memory: int, arrivals: int) -> None:
    worst = max(
        Fraction(
            brute_force.optimum(smaller, requests),
            brute_force.optimum(smaller, requests, scope="pauses"),
        )
        for smaller, requests in brute_force.every_problem(memory, 3, arrivals)
    )
    found = hunt([], n=3, memory=memory, last_arrival=arrivals, scope="pauses", time_limit=30)
    assert found.exhausted == 3
    assert found.verified
    assert found.ratio == worst > 1
    assert (found.scope, found.runs is not None) == (Scope.PAUSES, True)


@pytest.mark.slow
def test_a_server_is_judged_by_the_optimum_with_pauses(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "worst.json"
    arguments = ("hunt", "-P", "sglang", "--n", 2, "--memory", 4, "-t", 20, "-o", file, "--json")
    code, out, _ = run(*arguments)
    found = json.loads(out)
    assert (code, found["scope"], found["verified"]) == (0, "pauses", True)
    requests = [(r["arrival"], r["prompt"], r["output"]) for r in found["instance"]["requests"]]
    least = brute_force.optimum(found["instance"]["memory"], requests, scope="pauses")
    assert found["lower_bound"] <= least <= found["optimum"]
    assert verify(file).valid


def test_no_policy_goes_with_pauses_alone() -> None:
    with pytest.raises(InvalidInput, match="needs at least one; none goes with --scope pauses"):
        hunt([], n=2, memory=4, scope="chunks")


def test_pauses_that_are_worth_nothing(run: Run) -> None:
    code, out, _ = run("hunt", "--scope", "pauses", "--n", 1, "--memory", 3)
    assert (code, out.splitlines()[-1]) == (3, "pausing is worth nothing on any")
