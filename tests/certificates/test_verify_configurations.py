"""Proofs by configurations: each step of the verifier against its definition, by enumeration."""

from __future__ import annotations

import copy
import json
import math
import random
import re
import sys
import types
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import oracle
import pytest
from certificates import judged
from literal import configurations as literal
from literal.best_prices import best_prices
from oracle import Triple
from strategies import instance_of

import kvopt.verify as checker
from kvopt.certificates.writing import proof_to_json
from kvopt.files import instance_to_json
from kvopt.search.proofs import ConfigurationProof, StatePrices
from kvopt.verify import Invalid, Unreadable

Problem = tuple[int, tuple[Triple, ...]]
Stage = dict[str, Any]
Proof = dict[str, Any]


# The definition.


def price_at(stage: Stage, time: int, peak: int, r: int) -> int:
    """Return a price times the denominator."""
    place = 0
    for known, rounds in stage["peaks"]:
        if known == peak:
            break
        place += rounds
    else:
        return 0
    if r >= rounds:
        return 0
    return between(stage["times"], [row[place + r] for row in stage["numerators"]], time)


def between(times: Sequence[int], values: Sequence[int], time: int) -> int:
    """Return a value at a time, rounded down, from those at neighbouring times."""
    if time in times:
        return values[times.index(time)]
    if not times[0] < time < times[-1]:
        return 0
    x = max(x for x, known in enumerate(times) if known < time)
    (a, b), (low, high) = times[x : x + 2], values[x : x + 2]
    return math.floor(Fraction((b - time) * low + (time - a) * high, b - a))


def all_prices(memory: int, stage: Stage) -> dict[int, dict[literal.State, Fraction]]:
    """Return the prices of all states at all times."""
    return {
        time: {
            (h, r): Fraction(price_at(stage, time, h + r, r), stage["denominator"])
            for h, r in literal.all_states(memory)
        }
        for time in range(1, stage["times"][-1] + 1)
    }


def right_sides(memory: int, requests: Sequence[Triple], stage: Stage, left: Any) -> list[int]:
    """Return R at the times 0, 1, ..., each over all configurations within the copies."""
    times = stage["times"]
    heaviest = []
    prices = all_prices(memory, stage)
    for before, time, after in zip([0, *times], times, [*times[1:], times[-1] + 1], strict=False):
        near = [literal.copies_in(requests, left, t) for t in range(before + 1, after)]
        copies = {state: max(found[state] for found in near) for state in set().union(*near)}
        most = literal.largest(prices[time], memory, copies) * stage["denominator"]
        heaviest.append(int(most))
    return [between(times, heaviest, time) for time in range(times[-1] + 1)]


def replay(problem: Problem, proof: Proof) -> int | None:
    """Return what a proof gives by definition, None if a schedule below the target exists."""
    memory, requests = problem
    last: int = proof["stages"][0]["times"][-1]
    target: int = proof["target"]
    left = [list(range(a, max(a, last) + 1)) for a, _, _ in requests]
    for stage in proof["stages"]:
        scale, prices = stage["denominator"], all_prices(memory, stage)
        least = literal.least_costs(requests, prices, left)
        total = int(sum(least) * scale) - sum(right_sides(memory, requests, stage, left))
        value = math.ceil(Fraction(total, scale))
        if target is None:
            return value
        budget = (target - 1) * scale - total
        if budget < 0:
            return target
        left = [
            [k for k in own if (literal.cost(request, k, prices) - low) * scale <= budget]
            for request, own, low in zip(requests, left, least, strict=True)
        ]
    if proof["searched"]:
        return None if best(problem) < target else target
    return min(target, value)


@cache
def best(problem: Problem) -> int:
    return oracle.optimum(*problem)[0]


def proved(problem: Problem, proof: Proof, using: Any = checker) -> int | None:
    """Return what the verifier makes of a proof, None if it is refused by a schedule."""
    memory, triples = problem
    requests = [using.Request(*triple) for triple in triples]
    try:
        value: int = using._proved(memory, requests, proof)
    except using.Invalid:
        return None
    return value


# Proofs at random.


def proof_of(stages: Sequence[Stage], target: int | None = None, searched: bool = False) -> Proof:
    return {
        "kind": "configurations",
        "target": target,
        "searched": searched,
        "stages": list(stages),
    }


def drawn_problem(source: random.Random, most: int = 4, most_memory: int = 7) -> Problem:
    """Return a problem of few shapes; half of them have arrivals, some far after the prices."""
    memory = source.randint(2, most_memory)
    pool = [
        (source.randint(0, memory - o), o)
        for o in source.choices(range(1, min(4, memory) + 1), k=source.choice((2, 5)))
    ]
    late = source.choice((0, 0, 4, 9))
    count = source.randint(1, most)
    return memory, tuple((source.randint(0, late), *source.choice(pool)) for _ in range(count))


def drawn_times(source: random.Random, last: int) -> list[int]:
    """Return ascending times up to the last, dense or sparse."""
    some = [t for t in range(1, last) if source.random() < source.choice((0.2, 0.6, 1))]
    return [*some, last]


def drawn_stage(source: random.Random, problem: Problem, last: int) -> Stage:
    """Return prices of some of the states and of some that no request reaches."""
    memory, requests = problem
    known = sorted({s + o for _, s, o in requests} | {source.randint(1, memory)})
    peaks = [
        [peak, source.randint(0, 1) + source.randint(1, 4)]
        for peak in source.sample(known, len(known))
        if source.random() < 0.9
    ]
    scale = source.choice((1, 2, 3, 10))
    level = source.choice((scale // 2, scale, 3 * scale)) + 1
    times = drawn_times(source, last)
    count = sum(rounds for _, rounds in peaks)
    numerators = [
        [source.choice((0, source.randint(0, level))) for _ in range(count)] for _ in times
    ]
    return {"denominator": scale, "peaks": peaks, "times": times, "numerators": numerators}


def good_stage(source: random.Random, problem: Problem) -> Stage:
    """Return about the best prices there are, at all times or only some."""
    memory, requests = problem
    prices = best_prices(memory, requests)
    peaks = sorted(
        {(s + o, max(x for _, z, x in requests if z + x == s + o)) for _, s, o in requests}
    )
    times = drawn_times(source, max(prices))
    rows = [
        [
            int(720 * prices[time].get((peak - r, r), Fraction(0)))
            for peak, n in peaks
            for r in range(n)
        ]
        for time in times
    ]
    return {
        "denominator": 720,
        "peaks": [list(pair) for pair in peaks],
        "times": times,
        "numerators": rows,
    }


def drawn_proofs(seed: int, count: int) -> Iterator[tuple[Problem, Proof]]:
    """Yield proofs of all forms; half of them begin with good prices."""
    source = random.Random(seed)
    for number in range(count):
        problem = drawn_problem(source, most=3 if number % 2 else 4)
        first = good_stage(source, problem) if number % 2 else None
        last = first["times"][-1] if first else source.randint(1, 9)
        stages = [first] if first else []
        stages += [drawn_stage(source, problem, last) for _ in range(source.randint(0, 2))]
        if first:
            stages.append(first)
        stages = stages or [drawn_stage(source, problem, last)]
        if number % 5 == 0:
            yield problem, proof_of(stages[:1])
            continue
        target = best(problem) + source.choice((-5, -1, 0, 0, 1, 1, 2, 9))
        yield problem, proof_of(stages, target, source.random() < 0.3)


@cache
def examples() -> list[tuple[Problem, Proof, int | None]]:
    """Return proofs at random and what they give."""
    return [(*pair, replay(*pair)) for pair in drawn_proofs(5, 500)]


class TestValues:
    """The verifier computes what the definition says, and that is never too much."""

    def test_it_is_the_definition_and_never_above_the_optimum(self) -> None:
        tight = refused = 0
        for problem, proof, value in examples():
            assert proved(problem, proof) == value, (problem, proof)
            refused += value is None
            tight += value == best(problem)
            assert value is None or value <= best(problem)
        assert refused > 20
        assert tight > 60

    @pytest.mark.parametrize("seed", range(4))
    def test_one_stage_at_some_times(self, seed: int) -> None:
        source = random.Random(seed)
        for _ in range(60):
            problem = drawn_problem(source)
            proof = proof_of([drawn_stage(source, problem, source.randint(1, 12))])
            assert proved(problem, proof) == replay(problem, proof), (problem, proof)

    def test_what_is_ruled_out_helps_later_stages(self) -> None:
        gained = 0
        for problem, proof, value in examples():
            if len(proof["stages"]) > 1 and not proof["searched"]:
                alone = proved(problem, proof_of(proof["stages"][-1:], proof["target"]))
                assert value is not None
                assert alone is not None
                gained += value > alone
        assert gained > 4


class TestSearch:
    """A search accepts the optimum as a target and nothing above it."""

    @pytest.mark.parametrize("seed", range(6))
    def test_targets_around_the_optimum(self, seed: int) -> None:
        source = random.Random(seed)
        for number in range(40):
            problem = drawn_problem(source, most=7 if number % 4 else 3, most_memory=10)
            last = source.randint(1, 14)
            stage = (
                drawn_stage(source, problem, last) if number % 4 else good_stage(source, problem)
            )
            for more in (0, 1, 2):
                found = proved(problem, proof_of([stage], best(problem) + more, True))
                assert found == (None if more else best(problem)), (problem, stage)

    def test_little_is_looked_at(self) -> None:
        # Twelve equal requests one after another: 12 rounds of 3, and few ways to be late.
        problem, optimum = (6, ((0, 3, 3),) * 12), sum(range(3, 37, 3))
        stage = {"denominator": 1, "peaks": [], "times": [1], "numerators": [[]]}
        text = words(problem, proof_of([stage], optimum, True), optimum)
        form = r"at 1 time and a search of (\d+) partial schedules, none below 234, gives 234\n"
        (count,) = re.findall(form, text)
        assert int(count) < 200
        with pytest.raises(Invalid, match="a schedule has a total latency of 234"):
            checker._judged(
                *plainly(problem), checker._Work(), proof_of([stage], optimum + 1, True)
            )


def plainly(problem: Problem) -> tuple[int, list[checker.Request]]:
    memory, triples = problem
    return memory, [checker.Request(*triple) for triple in triples]


def content_of(problem: Problem, proof: Proof, value: int) -> dict[str, Any]:
    """Return a certificate of nothing but a proof."""
    instance = instance_of(*problem)
    return {
        "schema": "kvopt.certificate/1",
        "instance": instance_to_json(instance),
        "hash": instance.hash,
        "upper": None,
        "lower": {"value": value, "proof": proof},
    }


def words(problem: Problem, proof: Proof, value: int) -> str:
    """Return the report on a valid certificate."""
    text = json.dumps(content_of(problem, proof, value))
    lines = checker._report(json.loads(text))
    assert lines[-1] == "VALID"
    return "\n".join(lines)


# Mistakes that a checker might make.


MISTAKES = {
    "the rounded bound removes": (
        "* stage.scale - stage.total\n",
        "* stage.scale - value * stage.scale\n",
    ),
    "the target itself is out of sight": ("budget = (target - 1)", "budget = (target - 2)"),
    "what is just within the budget is removed": ("if excess <= budget", "if excess < budget"),
    "the start at the last time is left out": (
        "[*range(request.arrival, last), max(request.arrival, last)]",
        "[*range(request.arrival, last)] or [request.arrival]",
    ),
    "copies before a time are forgotten": (
        "max(ends[a + 1 + r : b + r])",
        "max(ends[b - 1 + r : b + r])",
    ),
    "copies after a time are forgotten": ("max(ends[a + 1 + r : b + r])", "ends[a + 1 + r]"),
    "a member is not counted": ("memory - h - (c + 1) * r + 1", "memory - h - c * r + 1"),
    "a member is counted twice": ("memory - h - (c + 1) * r + 1", "memory - h - (c + 2) * r + 1"),
    "one copy of each state": ("[*reversed(counts)] * copies", "[*reversed(counts)]"),
    "as many copies as fit": ("if copies < memory // (h + r)", "if copies < 1"),
    "states by r upwards": ("states.sort(reverse=True)", "states.sort()"),
    "prices are rounded up": ("line += [point // gap", "line += [-(-point // gap)"),
    "late starts do not cost more": ("own[late] + d * stage.scale for", "own[late] for"),
    "late starts end at once": ("stands for all that are later, too", "\n                continue"),
    "what is active does not grow": ("range(s + 1, s + o + 1)", "range(s + 1, s + 2)"),
    "the last time is free": ("if time <= self.stage.last:", "if time < self.stage.last:"),
    "more latency dominates": ("partial: partial[3:]", "partial: (-partial[3], partial[4])"),
    "shorter is less": ("len(r[4]) <= len(held) and ", ""),
    "memory does not matter": ("all(map(le, r[4], held))", "True"),
    "later arrivals go first": ("i: self.requests[i].arrival)", "i: -self.requests[i].arrival)"),
}


def mistaken(name: str) -> types.ModuleType:
    """Return the verifier with a mistake."""
    right, wrong = MISTAKES[name]
    text = Path(checker.__file__).read_text(encoding="utf-8")
    assert text.count(right) == 1, name
    module = types.ModuleType("mistaken")
    sys.modules["mistaken"] = module
    exec(compile(text.replace(right, wrong), "mistaken", "exec"), module.__dict__)
    return module


@cache
def searches() -> list[tuple[Problem, Proof, int | None]]:
    """Return proofs with a search and what they give."""
    source = random.Random(77)
    found = []
    for number in range(500):
        problem = drawn_problem(source, most=6, most_memory=9)
        stage = drawn_stage(source, problem, source.randint(1, 8))
        proof = proof_of([stage], best(problem) + (number % 5 > 0), True)
        found.append((problem, proof, replay(problem, proof)))
    return found


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_would_be_seen(name: str) -> None:
    using = mistaken(name)
    for problem, proof, value in [*examples(), *searches()]:
        try:
            if proved(problem, proof, using) != value:
                return
        except (IndexError, ValueError, using.Unreadable):
            return
    pytest.fail("no example shows it")


# Files that lie.


SMALL: Problem = (7, ((0, 1, 1), (0, 1, 2), (0, 1, 3), (1, 1, 4)))
STAGE: Stage = {
    "denominator": 4,
    "peaks": [[2, 1], [4, 3], [5, 2]],
    "times": [1, 4, 6],
    "numerators": [[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [0, 0, 1, 1, 0, 0]],
}


def changed(place: tuple[str | int, ...], value: object, target: int | None = 13) -> dict[str, Any]:
    """Return a certificate with two stages in which a part of the proof is another."""
    content = content_of(SMALL, proof_of([copy.deepcopy(STAGE) for _ in range(2)], target), 0)
    inner = content["lower"]["proof"]
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return content


FORGED: list[tuple[tuple[str | int, ...], Any]] = [
    (("target",), None),
    (("stages",), []),
    (("stages", 0, "denominator"), 0),
    (("stages", 1, "denominator"), -4),
    (("stages", 0, "times"), []),
    (("stages", 0, "times"), [0, 4, 6]),
    (("stages", 0, "times"), [1, 6]),
    (("stages", 0, "times"), [1, 6, 6]),
    (("stages", 0, "times"), [4, 1, 6]),
    (("stages", 1, "times"), [1, 4, 7]),
    (("stages", 0, "peaks"), []),
    (("stages", 0, "peaks"), [[2, 1], [4, 6]]),
    (("stages", 0, "peaks"), [[2, 1], [4, 3], [4, 2]]),
    (("stages", 0, "peaks"), [[2, 1], [4, 3], [5, 2, 0]]),
    (("stages", 0, "peaks"), [[2, 1], [4, 3], [5]]),
    (("stages", 0, "peaks"), [[2, 7], [4, -3], [5, 2]]),
    (("stages", 0, "peaks", 0), [2, 10**299]),
    (("stages", 0, "numerators"), []),
    (("stages", 0, "numerators", 1), [1, 2, 3]),
    (("stages", 1, "numerators", 1, 2), -1),
]
MISSHAPEN: list[tuple[tuple[str | int, ...], Any]] = [
    (("target",), True),
    (("target",), 1.0),
    (("target",), "12"),
    (("searched",), 1),
    (("searched",), None),
    (("stages",), {}),
    (("stages", 0), []),
    (("stages", 0, "denominator"), 1.0),
    (("stages", 0, "denominator"), True),
    (("stages", 0, "peaks"), [1, 2]),
    (("stages", 0, "peaks", 0), [True, 1]),
    (("stages", 0, "times", 0), None),
    (("stages", 0, "times"), 3),
    (("stages", 0, "numerators", 0), 1),
    (("stages", 0, "numerators", 0, 0), "1"),
    (("stages", 0, "windows"), []),
    (("starts",), []),
]


class TestHostile:
    """What is not so is invalid, what has not the shape or is too much is unreadable."""

    def test_the_example_is_valid(self, tmp_path: Path) -> None:
        for target in (9, 13):
            assert judged(tmp_path / "c", changed(("target",), target)).valid

    @pytest.mark.parametrize(("place", "value"), FORGED)
    def test_parts_that_do_not_fit(
        self, tmp_path: Path, place: tuple[str | int, ...], value: object
    ) -> None:
        # The target is proved by the first stage, so that the second need not be looked at.
        for target in (-99, 13):
            verdict = judged(tmp_path / "c", changed(place, value, target))
            assert verdict.exit_status == 1, verdict.lines
            assert verdict.lines[0].startswith("INVALID: lower: ")

    @pytest.mark.parametrize(("place", "value"), MISSHAPEN)
    def test_parts_of_another_shape(
        self, tmp_path: Path, place: tuple[str | int, ...], value: object
    ) -> None:
        verdict = judged(tmp_path / "c", changed(place, value))
        assert verdict.exit_status == 2, verdict.lines
        assert len(verdict.lines) == 1

    @pytest.mark.parametrize("field", ["target", "searched", "stages"])
    def test_missing_fields(self, tmp_path: Path, field: str) -> None:
        content = changed(("target",), 13)
        del content["lower"]["proof"][field]
        assert judged(tmp_path / "c", content).exit_status == 2

    def test_a_search_needs_a_target(self, tmp_path: Path) -> None:
        for searched in (False, True):
            proof = proof_of([STAGE], None, searched)
            content = content_of(SMALL, proof, 0)
            assert judged(tmp_path / "c", content).exit_status == int(searched)

    def test_a_claim_of_one_more(self, tmp_path: Path) -> None:
        for problem, proof, value in examples()[:150]:
            for more in (0, 1):
                claim = content_of(problem, proof, (value or 0) + more)
                verdict = judged(tmp_path / "c", claim)
                assert verdict.valid == (value is not None and not more), verdict.lines
                if value is None:
                    assert "INVALID: lower: a schedule has a total latency" in verdict.lines[0]

    @pytest.mark.parametrize("last", [10**6, 10**15, 10**299])
    def test_late_times_are_refused_at_once(self, tmp_path: Path, last: int) -> None:
        stage = {**STAGE, "times": [1, 4, last]}
        verdict = judged(tmp_path / "c", content_of(SMALL, proof_of([stage]), 0))
        assert "UNREADABLE: lower: has too many requests and rounds" in verdict.lines[0]

    def test_many_requests(self, tmp_path: Path) -> None:
        stage = {**STAGE, "times": [1, 4, 1000]}
        content = content_of((7, ((0, 1, 2),) * 3000), proof_of([stage]), 0)
        assert "too many requests and rounds" in judged(tmp_path / "c", content).lines[0]

    def test_a_table_that_would_be_too_large(self, tmp_path: Path) -> None:
        memory = 10**9
        stage = {**STAGE, "peaks": [[memory, 6]]}
        content = content_of((memory, ((0, memory - 3, 3),)), proof_of([stage]), 0)
        assert "memory is too large" in judged(tmp_path / "c", content).lines[0]

    def test_states_that_nobody_reaches_need_no_table(self) -> None:
        problem = 2**53 - 1, ((0, 1, 1), (2**53 - 9, 1, 2**53 - 3))
        assert proved(problem, proof_of([{**STAGE, "peaks": [[2**52, 6]]}])) == 2**53 - 2

    @pytest.mark.parametrize("problem", [SMALL, (7, ((0, 1, 3),) * 9), (9, ())])
    def test_targets_far_above(self, problem: Problem) -> None:
        proof = proof_of([STAGE], 10**15, True)
        with pytest.raises((Unreadable, Invalid), match=r"too many rounds|a total latency of 0"):
            checker._judged(*plainly(problem), checker._Work(), proof)

    def test_far_arrivals(self) -> None:
        problem = 7, ((0, 1, 3), (10**12, 1, 3))
        assert proved(problem, proof_of([STAGE])) is not None
        with pytest.raises(Unreadable, match="too many rounds"):
            checker._judged(*plainly(problem), checker._Work(), proof_of([STAGE], 6, True))

    def test_long_outputs_cannot_be_searched(self) -> None:
        problem = 10**15, ((0, 1, 10**14),)
        with pytest.raises(Unreadable, match="too many rounds"):
            checker._judged(*plainly(problem), checker._Work(), proof_of([STAGE], 10**14 + 3, True))

    def test_partial_schedules_at_one_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        problem = 30, tuple((0, s, o) for s in (1, 2, 3) for o in (2, 3, 4))
        proof = proof_of([{**STAGE, "peaks": [], "numerators": [[]] * 3}], 10**3, True)
        monkeypatch.setattr(checker, "BYTES", 3 * 10**6)
        with pytest.raises(Unreadable, match="too many partial schedules"):
            checker._judged(*plainly(problem), checker._Work(), proof)

    def test_all_work_is_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        problem = 30, tuple((0, s, o) for s in (1, 2, 3) for o in (2, 3, 4))
        free = {**STAGE, "peaks": [], "numerators": [[]] * 3}
        for proof, least in (
            (proof_of([STAGE]), 500),
            (proof_of([free] * 1000, 10**3), 100_000),
            (proof_of([free], 40, True), 100_000),
        ):
            monkeypatch.setattr(checker, "STEPS", least)
            with pytest.raises(Unreadable, match="budget of"):
                checker._judged(*plainly(problem), checker._Work(), proof)

    def test_no_requests(self) -> None:
        empty: Problem = (7, ())
        assert proved(empty, proof_of([STAGE])) == 0
        assert proved(empty, proof_of([STAGE], 0, True)) == 0
        assert proved(empty, proof_of([STAGE], 1, True)) is None


class TestReport:
    """The report says what was looked at."""

    def test_stages(self) -> None:
        proof = proof_of([STAGE, STAGE], 13)
        value = proved(SMALL, proof)
        assert value is not None
        assert f"by prices of configurations at 6 times in 2 stages gives {value}" in words(
            SMALL, proof, value
        )

    def test_stages_after_the_target_is_proved_are_not_counted(self) -> None:
        assert "at 3 times gives 0\n" in words(SMALL, proof_of([STAGE, STAGE], 0), 0)

    def test_what_the_package_writes(self) -> None:
        rows = tuple(map(tuple, STAGE["numerators"]))
        peaks = tuple((peak, rounds) for peak, rounds in STAGE["peaks"])
        stage = StatePrices(STAGE["denominator"], peaks, tuple(STAGE["times"]), rows)
        proof = proof_to_json(ConfigurationProof((stage, stage), best(SMALL), True))
        assert "and a search of" in words(SMALL, json.loads(json.dumps(proof)), best(SMALL))
