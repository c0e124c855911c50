"""While loops are compiled a solver works on few requests, and whoever proves first is heard."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from interpreters import python

from kvopt import generate, solve
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.result import BoundSource
from kvopt.kernels import compiler, solver_versions
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.clocks import Seconds
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.search import meanwhile, plan
from kvopt.search.meanwhile import solver_while_compiling

README = """
import sys
import kvopt

instance = kvopt.generate("arrival-1", n=10, seed=1)
found = kvopt.solve(instance, time_limit=60)
print(found.status, found.objective, found.lower_bound, found.bound_source, "numba" in sys.modules)
"""


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have something compiled that takes as long as a test does."""
    monkeypatch.setattr(compiler, "is_running", lambda: True)


def search_of(n: int, *, checkable: bool = False, workers: int = 1) -> Search:
    """Return a search with both sides that come at once."""
    instance = replace(generate("arrival-1", n=n, seed=4), workers=workers)
    search = Search(instance, checkable=checkable)
    plan.run(plan.FIRST, search)
    assert not search.proved
    return search


@pytest.mark.slow
@pytest.mark.usefixtures("compiling")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_a_solver_proves_what_waits_for_the_compiler(
    solver: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meanwhile, "prover", lambda _: solver)
    search = search_of(5, workers=workers)
    with solver_while_compiling(search):
        while not search.budget.over():
            time.sleep(0.01)
    assert search.proved
    assert search.bound_source is BoundSource.SOLVER
    assert search.bounded_by == {"cpsat": "CP-SAT", "highs": "HiGHS"}[solver]


@pytest.mark.usefixtures("compiling")
def test_no_claim_takes_the_place_of_a_proof_that_can_be_checked() -> None:
    search = search_of(5, checkable=True)
    before, optimum = search.lower_bound, solve(search.instance, "cpsat").objective
    with solver_while_compiling(search):
        while search.objective != optimum:
            time.sleep(0.01)
    assert (search.lower_bound, search.proved) == (before, False)


def test_the_solver_of_many_ends_when_the_others_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = threading.Event()
    waits.set()
    monkeypatch.setattr(compiler, "is_running", waits.is_set)

    def works() -> bool:
        return any(thread.name == "kvopt-solver" for thread in threading.enumerate())

    search = search_of(40)
    with solver_while_compiling(search, 0.05):
        while not works():
            time.sleep(0.01)
        waits.clear()
        while works():
            time.sleep(0.01)
    assert not search.budget.over()


FIVE = generate("arrival-1", n=5, seed=4)


@pytest.mark.parametrize(
    ("problem", "compiles"),
    [
        (Problem(FIVE), False),
        (Problem(FIVE, scope=Scope.PAUSES), True),
        (Problem(FIVE, Seconds(BatchTime([Line(1, 1)]))), True),
        (Problem(replace(FIVE, block_size=2)), True),
    ],
)
def test_only_optima_of_starts_are_claimed_and_only_while_something_is_compiled(
    problem: Problem, compiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Search] = []

    def prover(search: Search) -> str:
        begun.append(search)
        return "highs"

    monkeypatch.setattr(compiler, "is_running", lambda: compiles)
    monkeypatch.setattr(meanwhile, "prover", prover)
    with solver_while_compiling(Search(problem)):
        time.sleep(0.1)
    assert not begun


@pytest.mark.usefixtures("compiling")
def test_an_end_of_the_others_ends_the_solver() -> None:
    search = search_of(10)
    with solver_while_compiling(search):
        search.granted.interrupt()
    assert not search.proved


@pytest.mark.usefixtures("compiling")
def test_a_release_that_is_refused_is_missed_and_that_is_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(solver_versions, "installed_version", lambda _: "1.14.0")
    search = search_of(5)
    with solver_while_compiling(search):
        while not search.notes:
            time.sleep(0.01)
    assert "solver: highspy 1.14.0 returns wrong optima" in search.notes[0]
    assert not search.budget.over()


@pytest.mark.thorough
def test_the_first_solve_of_an_installation_is_an_optimum(tmp_path: Path) -> None:
    """Whichever ends first, the process ends in order and says nothing where nobody watches."""
    done = python("-c", README, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}, check=True)
    assert (done.stdout, done.stderr) == ("optimal 360 360 solver True\n", "")
    assert list(tmp_path.rglob("*.nbi")), "what was compiled is kept"
