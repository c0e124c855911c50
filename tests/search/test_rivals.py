"""Other solvers: their models against brute force, and that what they say is judged."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from brute_force import optimum
from effort import many
from strategies import random_instances

from kvopt import Instance, Request, Schedule, generate, run
from kvopt.bounds.start_windows import start_windows

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import rivals
from rival_models import Problem

LITTLE = Instance(7, [Request(0, 1, o) for o in (1, 2, 3, 4)])


class Heard:
    """Remembers what a rival offers."""

    def __init__(self) -> None:
        self.schedules: list[Sequence[int]] = []
        self.bounds: list[float] = []

    def starts(self, starts: Sequence[int]) -> None:
        self.schedules.append(list(starts))

    def bound(self, value: float) -> None:
        self.bounds.append(value)


def problem_of(instance: Instance) -> Problem:
    known = rivals.best_of_policies(instance)
    return Problem(instance, known, start_windows(instance, known.objective), 200, 1, 200)


@pytest.mark.slow
@pytest.mark.parametrize("name", rivals.RIVALS)
def test_a_rival_proves_the_optimum_of_brute_force(name: str) -> None:
    file, function, module = rivals.RIVALS[name]
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    work = getattr(import_module(f"rival_models.{file}"), function)
    for instance in random_instances(many(12), 21, least_requests=1, most_output=4):
        problem, heard = problem_of(instance), Heard()
        work(problem, heard)
        heard.starts(problem.known.starts)
        best = optimum(
            instance.memory, [(r.arrival, r.prompt, r.output) for r in instance.requests]
        )
        checks = [Schedule(instance, starts).check() for starts in heard.schedules]
        assert all(check.feasible for check in checks)
        assert min(check.objective for check in checks) == best
        assert max(heard.bounds) == pytest.approx(best, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("ram", [6.0, 0.01])
def test_a_rival_ends_with_a_proof_or_a_fault(ram: float) -> None:
    pytest.importorskip("ortools")
    options = Namespace(limit=20.0, threads=1, ram=ram)
    said = rivals.answers("cpsat", "arrival-1:5:1", options)
    found = rivals.judged("cpsat", generate("arrival-1", 5, seed=1), said)
    assert found.proved == (ram > 1)
    assert ("ended with status" in found.fault) == (ram < 1)


def lines(*facts: dict[str, object]) -> list[str]:
    return [json.dumps({**fact, "wall": 2.0, "cpu": 1.0}) for fact in facts]


def test_both_sides_are_the_best_of_all_answers() -> None:
    said = lines({"starts": [0, 1, 3, 6]}, {"bound": 10.2}, {"starts": [0, 0, 0, 2]}, {"bound": 9})
    found = rivals.judged("a rival", LITTLE, said)
    assert (found.value, found.bound, found.processor) == (12, 11, 1.0)
    assert not found.proved
    assert found.cell() == "11-12"


def test_a_bound_a_hair_above_an_integer_is_that_integer() -> None:
    found = rivals.judged("a rival", LITTLE, lines({"starts": [0, 0, 0, 2]}, {"bound": 12.0000001}))
    assert found.proved
    assert found.cell() == "**1.0 s**"


def test_a_schedule_that_does_not_fit_is_an_error_of_the_model() -> None:
    found = rivals.judged("a rival", LITTLE, lines({"starts": [0, 0, 0, 0]}))
    assert found.value is None
    assert "error of the model" in found.fault


def test_a_bound_above_the_schedule_of_another_is_an_error_of_the_model() -> None:
    wrong = rivals.judged("wrong", LITTLE, lines({"starts": [0, 1, 3, 6]}, {"bound": 13}))
    right = rivals.judged("right", LITTLE, lines({"starts": [0, 0, 0, 2]}, {"bound": 12}))
    assert not wrong.fault
    assert rivals.against_each_other([wrong, right]) == 12
    assert "bound 13 above a schedule of 12" in wrong.fault
    assert not right.fault


def test_all_begin_with_the_best_policy() -> None:
    instance = generate("arrival-1", 8, seed=1)
    values = [run(instance, policy).objective for policy in rivals.POLICIES]
    assert rivals.best_of_policies(instance).check().objective == min(filter(None, values))
