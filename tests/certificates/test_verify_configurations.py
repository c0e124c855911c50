"""Proofs by configurations: each step of the verifier against its definition, by enumeration."""

from __future__ import annotations

import importlib
import random
import re
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest
from configuration_proofs import (
    FREE,
    Checker,
    Problem,
    Proof,
    Stage,
    best,
    drawn_cuts,
    drawn_problem,
    drawn_stage,
    examples,
    plainly,
    proof_of,
    proved,
    replay,
    with_cuts,
    words,
)
from effort import many
from known import known

import kvopt
from kvopt.verify.check_proofs import value_of_proof
from kvopt.verify.step_budget import Invalid, Work


class TestValues:
    """The verifier computes what the definition says, and that is never too much."""

    @pytest.mark.slow
    def test_values_are_those_of_the_definition_and_never_above_the_optimum(self) -> None:
        tight = refused = 0
        for problem, proof, value in examples():
            assert proved(problem, proof) == value, (problem, proof)
            refused += value is None
            tight += value == best(problem)
            assert value is None or value <= best(problem)
        assert refused > many(20)
        assert tight > many(60)

    def test_what_is_ruled_out_helps_later_stages(self) -> None:
        gained = 0
        for problem, proof, value in examples():
            if len(proof["stages"]) > 1 and not proof["searched"]:
                alone = proved(problem, proof_of(proof["stages"][-1:], proof["target"]))
                gained += known(value) > known(alone)
        assert gained > many(4)


def test_a_search_looks_at_little() -> None:
    # Twelve equal requests one after another: 12 rounds of 3, and few ways to be late.
    problem, optimum = (6, ((0, 3, 3),) * 12), sum(range(3, 37, 3))
    stage = {"denominator": 1, "peaks": [], "times": [1], "numerators": [[]]}
    text = words(problem, proof_of([stage], optimum, True), optimum)
    form = r"at 1 time and a search of (\d+) partial schedules, none below 234, gives 234\n"
    (count,) = re.findall(form, text)
    assert int(count) < 200
    with pytest.raises(Invalid, match="a schedule has a total latency of 234"):
        value_of_proof(plainly(problem), proof_of([stage], optimum + 1, True), Work())


# Mistakes that a checker might make.


MISTAKES = {
    "the rounded bound removes": (
        "* stage.scale - stage.total\n",
        "* stage.scale + -stage.total // stage.scale * stage.scale\n",
    ),
    "the target itself is out of sight": ("budget = (target - 1)", "budget = (target - 2)"),
    "what is just within the budget is removed": ("if cost <= budget", "if cost < budget"),
    "the start at the last time is left out": (
        "range(request.arrival, max(request.arrival, last) + 1)",
        "range(request.arrival, max(request.arrival + 1, last))",
    ),
    "copies before a time are forgotten": (
        "max(ends[a + 1 + r : b + r])",
        "max(ends[b - 1 + r : b + r])",
    ),
    "copies after a time are forgotten": ("max(ends[a + 1 + r : b + r])", "ends[a + 1 + r]"),
    "a member is not counted": ("memory - h - r + 1, 0, -low - r", "memory - h + 1, 0, -low - r"),
    "a member is counted twice": (
        "memory - h - r + 1, 0, -low - r",
        "memory - h - 2 * r + 1, 0, -low - r",
    ),
    "one copy of each state": ("counts[::-1] * passes if", "counts[::-1] if"),
    "as many copies as fit": (
        "passes = copies if copies < memory // (h + r)",
        "passes = copies if copies < 1",
    ),
    "states by r upwards": ("states.sort(reverse=True)", "states.sort()"),
    "prices are rounded up": ("line += [point // gap", "line += [-(-point // gap)"),
    "late starts cost too much": ("costs[late] + d * stage", "costs[late] + 2 * d * stage"),
    "late starts end at once": ("represents all later ones, too", "\n                continue"),
    "what is active does not grow": ("range(s + o, s, -1)", "repeat(s + 1, o)"),
    "the last time is free": (
        "if time <= self.stage.last else 0",
        "if time < self.stage.last else 0",
    ),
    "more latency dominates": ("in sorted(others):", "in sorted(others)[::-1]:"),
    "memory does not matter": (
        "(guarded - rival) & guards == guards for rival in rivals",
        "1 for rival in rivals",
    ),
    "one start more adds too much": ("max(now + 1, request.arrival)", "now + 3"),
    "later arrivals go first": ("i: stage.requests[i].arrival)", "i: -stage.requests[i].arrival)"),
    "what is dear now is so later": ("cost - later - prices[member]", "cost - prices[member]"),
    "any start is the first": ("starts.sort()", "starts.sort(reverse=True)"),
    "what waits pays twice": (
        "cost = costs_by_start[start] - later",
        "cost = costs_by_start[start]",
    ),
    "what started just now is new": ("[0] < self.start", "[0] < 0"),
    "a start before does not count": ("sum(start < time for", "sum(start < time - 1 for"),
    "one of a peak is missing": ("< self.alike[peak]", "< self.alike[peak] - 1"),
    "what ends has less room": ("cost - room * state.price", "cost - (room - 1) * state.price"),
    "one cut counts for less": ("limit - self.below + 1", "limit - self.below + 2"),
    "sets leave a token free": (
        "(many + 1) * left <= self.memory",
        "(many + 1) * left < self.memory",
    ),
    "what is worth most is left out": ("old if old > new + price else new + price", "old"),
    "one copy of what is worth most": ("rows if copies > 1 else after", "after"),
    "prices end too soon": (
        "min(end, self.stage.last), first, -1",
        "min(end, self.stage.last) - 1, first, -1",
    ),
}


def mistaken(name: str, folder: Path) -> Checker:
    """Return a copy of the verifier with a mistake."""
    right, wrong = MISTAKES[name]
    files = Path(kvopt.__file__).parent.glob("verify/*.py")
    texts = {path.name: path.read_text("utf-8") for path in files}
    assert sum(text.count(right) for text in texts.values()) == 1, name
    package = f"mistaken_{list(MISTAKES).index(name)}"
    (folder / package).mkdir()
    for file, text in texts.items():
        copy = text.replace(right, wrong).replace("kvopt.verify", package)
        (folder / package / file).write_text(copy, "utf-8")
    problem, proofs, work = (
        importlib.import_module(f"{package}.{part}")
        for part in ("certified_problem", "check_proofs", "step_budget")
    )
    return Checker(
        problem.Problem, problem.Request, proofs.value_of_proof, work.Work, work.Invalid,
        work.Unreadable,
    )  # fmt: skip


RARE: list[tuple[Problem, Stage]] = [
    ((4, ((3, 1, 1), (3, 1, 3), (1, 1, 3), (1, 1, 1), (1, 1, 1), (2, 1, 3))), FREE),
    (
        (6, ((2, 1, 2), (7, 0, 1), (0, 1, 2), (0, 1, 2))),
        {
            "denominator": 10,
            "peaks": [[3, 5], [1, 4]],
            "times": [1, 2],
            "numerators": [[0, 0, 0, 3, 4, 5, 3, 0, 5], [3, 0, 4, 0, 1, 0, 0, 0, 0]],
        },
    ),
]
"""Searches that show what few others do."""


@cache
def searches() -> list[tuple[Problem, Proof, int | None]]:
    """Return proofs with a search and what they give."""
    source = random.Random(77)
    found: list[tuple[Problem, Proof, int | None]] = [
        (problem, with_cuts([stage], best(problem) + 1, [10**9] * 9), None)
        for problem, stage in RARE
    ]
    for number in range(1000):
        problem = drawn_problem(source, most=6, most_memory=9)
        stage = drawn_stage(source, problem, source.randint(1, 8))
        target = best(problem) + (number % 5 > 0)
        proof = proof_of([stage], target, True)
        if number % 2:
            proof = with_cuts([stage], target, drawn_cuts(source, stage))
        found.append((problem, proof, replay(problem, proof)))
    return found


@cache
def cases() -> list[tuple[Problem, Proof, int | None]]:
    """Return searches and examples by turns: a mistake that one kind shows is seen soon."""
    both = zip_longest(searches(), examples())
    return [case for pair in both for case in pair if case is not None]


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_would_be_seen(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    using = mistaken(name, tmp_path)
    for problem, proof, value in cases():
        try:
            if proved(problem, proof, using) != value:
                return
        except (IndexError, ValueError, using.unreadable):
            return
    pytest.fail("no example shows it")
