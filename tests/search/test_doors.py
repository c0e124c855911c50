"""The same question has the same answer through every door, in rounds.

`solve`, `bound`, `certify`, `fleet` and `run`, from Python and from the command line, on instances
so tiny that brute force knows the optimum.  A bound that one door has checked no other one is
below, all schedules are as good as each other and as the best scheduler that was named.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from brute_force import Triple, most_in_time, optimum
from commands import Run
from effort import many
from known import known

from kvopt import Instance, InvalidInput, Request, bound, certify, solve, write_instance
from kvopt import run as run_policy
from kvopt.fleets import fleet_sizes
from kvopt.problem.scopes import Scope
from kvopt.search.bounding import bounds_by_workers

pytestmark = pytest.mark.usefixtures("processor_clock")

POLICIES = ("svf", "mc-sf", "fcfs")
SERVER = "vllm-fcfs:max_seqs=8,budget=64,block="
"""A scheduler that pauses, but for the tokens of its blocks."""
FAR = "mean=1000"
"""A target that everything reaches."""


@dataclass
class Answers:
    """What the doors say of one question."""

    checked: dict[str, int] = field(default_factory=dict)
    lower: dict[str, int] = field(default_factory=dict)
    upper: dict[str, int] = field(default_factory=dict)
    policies: dict[str, int] = field(default_factory=dict)

    def add(self, door: str, checked: int | None, upper: int | None = None) -> None:
        assert checked is not None, door
        self.checked[door] = self.lower[door] = checked
        if upper is not None:
            self.upper[door] = upper

    def agree(self) -> None:
        """Fail where doors differ, or a scheduler is better than what they found."""
        best = max(self.checked.values())
        assert not {door: value for door, value in self.checked.items() if value < best}, self
        assert min(self.lower.values()) >= best, self
        assert len({*self.upper.values()}) == 1, self
        assert min(self.policies.values(), default=self.least) >= self.least, self

    @property
    def least(self) -> int:
        return min(self.upper.values())


def drawn(source: random.Random, block: int, most: int) -> tuple[int, list[Triple]]:
    """Return memory and up to five requests, some of them after an idle gap."""
    memory, requests = block * source.randint(1, 3) + source.randint(4, 11), list[Triple]()
    memory = memory // block * block
    count = source.randint(2, most)
    while len(requests) < count:
        arrival = source.randint(0, 3) + source.choice((0, 0, 0, 7))
        prompt, output = source.randint(0, 4), source.randint(1, 6)
        if -(-(prompt + output) // block) * block <= memory:
            requests.append((arrival, prompt, output))
    return memory, requests


def python(instance: Instance, scope: Scope) -> Answers:
    """Ask every door from Python; what none has is left out."""
    found, pauses = Answers(), scope.covers(Scope.PAUSES)
    if not (pauses and instance.workers > 1):
        for checkable in (False, True):
            solved = solve(instance, scope=scope, checkable=checkable)
            found.upper[f"solve {checkable}"] = known(solved.objective)
            found.lower[f"solve {checkable}"] = known(solved.lower_bound)
            found.checked["solve"] = known(solved.checked).value  # the last one
    found.add("bound", bound(instance, scope=scope).value)
    named: tuple[str, ...] = POLICIES
    if pauses and instance.workers == 1:
        named = (*named, f"{SERVER}{instance.block_size}")
    for names in (), named:
        made = certify(instance, names, scope=scope)
        found.add(f"certify {names}", made.lower_bound, made.objective)
    for each in made.runs:
        if scope.covers(each.scope):
            assert each.objective == run_policy(instance, each.policy).objective
            found.policies[each.policy] = known(each.objective)
    if instance.block_size == 1:
        fleets = bounds_by_workers(instance, [instance.workers], scope=scope)
        found.add("bounds by workers", fleets[instance.workers].value)
    if instance.block_size == 1 and not pauses:
        (band,) = fleet_sizes(instance, FAR, counts=[instance.workers], time_limit=None).bands
        found.add("fleet", band.lower, band.upper)
    return found


def command_line(run: Run, path: Path, question: Question) -> Answers:
    """Ask the same from the command line."""
    scope = question.scope

    def asked(*arguments: object) -> dict[str, Any]:
        code, out, _ = run(*arguments)
        assert code == 0, arguments
        said = json.loads(out)
        assert isinstance(said, dict)
        return said

    found, options = Answers(), ("--scope", scope, "--json")
    solved = asked("solve", path, *options)
    found.upper["solve"], found.lower["solve"] = solved["objective"], solved["lower_bound"]
    found.add("bound", asked("bound", path, *options)["value"])
    given = [part for name in POLICIES for part in ("--policy", name)]
    made = asked("certify", path, *given, *options, "-o", path.with_name("c.json"), "-t", "20")
    found.add("certify", made["lower"], made["upper"])
    ran = asked("run", path, *given, "--json")["policies"]
    found.policies |= {row["policy"]: row["objective"] for row in ran}
    assert [row["value"] for row in made["policies"]] == [*found.policies.values()]
    if scope is Scope.RUNS:
        counts = "--counts", question.workers
        (band,) = asked("fleet", path, "--target", FAR, *counts, "--json")["fleets"]
        found.add("fleet", band["lower"], band["upper"])
    return found


@dataclass(frozen=True)
class Question:
    """What is asked of how many instances, with up to so many requests."""

    name: str
    scope: Scope
    workers: int = 1
    block: int = 1
    draws: int = 24
    most: int = 5
    is_closed: bool = True
    """Whether the doors find the optimum."""

    def instances(self) -> Iterator[tuple[Instance, int]]:
        """Yield instances, each with its optimum by brute force."""
        source = random.Random(self.name)
        for _ in range(many(self.draws)):
            memory, rows = drawn(source, self.block, self.most)
            requests = [Request(*row) for row in rows]
            instance = Instance(memory, requests, workers=self.workers, block_size=self.block)
            counted = optimum(
                memory, rows, workers=self.workers, block=self.block, scope=self.scope
            )
            yield instance, counted


QUESTIONS = [
    Question("runs", Scope.RUNS),
    Question("restarts", Scope.RESTARTS, draws=8),
    Question("pauses", Scope.PAUSES, draws=10, most=3),
    Question("fleet", Scope.RUNS, workers=2, draws=16),
    Question("fleet pauses", Scope.PAUSES, workers=2, draws=12, is_closed=False),
    Question("blocks", Scope.RUNS, block=2, draws=6, is_closed=False),
    Question("blocks pauses", Scope.PAUSES, block=2, draws=4, most=4),
]


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_all_doors_of_python_agree(question: Question) -> None:
    for instance, least in question.instances():
        found = python(instance, question.scope)
        found.agree()
        assert found.least >= least >= max(found.lower.values()), instance.requests
        assert found.least == least or not question.is_closed


CLOSED = [
    Question("runs on the command line", Scope.RUNS, draws=3),
    Question("pauses on the command line", Scope.PAUSES, draws=2, most=3),
    Question("a fleet on the command line", Scope.RUNS, workers=2, draws=3),
]
"""What bounds close, so that no door goes on to its limit."""


@pytest.mark.slow
@pytest.mark.parametrize("question", CLOSED, ids=lambda question: question.name)
def test_the_command_line_says_what_python_says(
    run: Run, question: Question, tmp_path: Path
) -> None:
    for place, (instance, least) in enumerate(question.instances()):
        path = tmp_path / f"{place}.json"
        write_instance(instance, path)
        asked, told = python(instance, question.scope), command_line(run, path, question)
        told.agree()
        assert (told.least, told.checked["bound"]) == (least, asked.checked["bound"])
        assert told.checked["certify"] == asked.checked["certify ()"]


def test_pauses_of_a_fleet_are_refused_by_name_or_bounded() -> None:
    fleet = Instance(9, [Request(0, 1, 3)] * 3, workers=2)
    with pytest.raises(InvalidInput, match="workers"):
        solve(fleet, scope="pauses")
    assert certify(fleet, scope="pauses").lower_bound == 9


@pytest.mark.slow
@pytest.mark.parametrize("aim", ["", "first-token:"])
def test_all_doors_agree_on_what_attains_a_deadline(run: Run, tmp_path: Path, aim: str) -> None:
    source = random.Random(f"deadlines {aim}")
    for place in range(many(12)):
        memory, rows = drawn(source, 1, 4)
        instance, rounds = Instance(memory, [Request(*row) for row in rows]), source.randint(2, 9)
        deadline = f"{aim}{rounds}"
        most = most_in_time(memory, rows, [rounds] * len(rows), first=bool(aim))
        ceilings, counts = set[int](), set[int | None]()
        for only in False, True:
            made = certify(instance, POLICIES, deadline=deadline, only_deadline=only).in_time
            assert made is not None
            ceilings.add(made.ceiling)
            counts.add(made.best_attained)
        solved = solve(instance, deadline=deadline).in_time
        assert solved is not None
        ceilings.add(solved.ceiling)
        counts.add(solved.best_attained)
        (band,) = fleet_sizes(
            instance, "misses=100%", deadline=deadline, counts=[1], time_limit=None
        ).bands
        ceilings.add(len(rows) - (band.lower or 0))
        counts.add(band.upper if band.upper is None else len(rows) - band.upper)
        if place < 2:
            path = tmp_path / f"{place}.json"
            write_instance(instance, path)
            for command in ("solve", path), ("certify", path, "-o", tmp_path / "c"):
                said = json.loads(run(*command, "--deadline", deadline, "--json")[1])
                ceilings.add(said["ceiling"])
                counts.add(said["best_attained"])
        assert counts == {most}, (instance.requests, deadline)
        assert len(ceilings) == 1
        assert min(ceilings) >= most


def test_the_best_run_of_a_deadline_may_hold_a_request_back() -> None:
    """One starts, two follow a round later: together at once only two are in time."""
    found = certify(Instance(4, [Request(0, 0, 2)] * 4), deadline=3).in_time
    assert found is not None
    assert (found.best_attained, found.ceiling) == (3, 3)
