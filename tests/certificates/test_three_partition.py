"""3-Partition by scheduling, beside two other ways to decide it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement
from pathlib import Path

import networkx as nx
import pytest
from brute_force import optimum
from commands import Run
from strategies import plain

from kvopt import InvalidInput, read_instance
from kvopt.certificates.deciding_three_partition import MOST_VALUES, cover, decide, search_triples
from kvopt.errors import Stopped
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.problem.three_partition import ThreePartition

pytestmark = pytest.mark.usefixtures("processor_clock")

SMALL_NO = (20, (6, 6, 6, 6, 9, 7))
SMALL_YES = (40, (11, 11, 12, 11, 17, 18))


def problems(target: int, triples: int) -> Iterator[ThreePartition]:
    """Yield every problem of a size, one order of each multiset."""
    values = range(target // 4 + 1, (target + 1) // 2)
    for numbers in combinations_with_replacement(values, 3 * triples):
        if sum(numbers) == triples * target:
            yield ThreePartition(target, numbers)


def clique(problem: ThreePartition) -> bool:
    """Decide by the largest set of triples that share no number, without kvopt."""
    graph = nx.Graph()
    graph.add_nodes_from(
        triple
        for triple in combinations(range(len(problem.numbers)), 3)
        if sum(problem.numbers[i] for i in triple) == problem.target
    )
    graph.add_edges_from(
        (one, other) for one, other in combinations(graph, 2) if not {*one} & {*other}
    )
    return bool(nx.max_weight_clique(graph, weight=None)[1] == problem.triples)


def answer_of(problem: ThreePartition) -> bool:
    return is_cover(problem, cover(problem, Search(problem.instance()), 30))


def is_cover(problem: ThreePartition, triples: list[tuple[int, int, int]] | None) -> bool:
    if triples is None:
        return False
    assert sorted(x for triple in triples for x in triple) == sorted(problem.numbers)
    assert all(sum(triple) == problem.target for triple in triples)
    return True


@pytest.mark.slow
def test_every_small_problem_is_decided_alike_in_three_ways() -> None:
    answers = []
    for target in range(3, 27):
        for triples in (1, 2):
            for problem in problems(target, triples):
                least = optimum(*plain(problem.instance()))
                answer = answer_of(problem)
                assert answer == clique(problem) == (least == problem.threshold)
                assert least >= problem.threshold
                answers.append(answer)
    assert answers.count(True) > 50
    assert answers.count(False) > 20


def test_the_printed_reduction_never_says_yes() -> None:
    answers = set()
    for target in range(3, 23):
        for triples in (1, 2):
            for problem in problems(target, triples):
                least = optimum(*plain(problem.printed_instance()))
                assert least > problem.threshold
                answers.add(answer_of(problem))
    assert answers == {True, False}, "it says no to both kinds"


@pytest.mark.parametrize("target", [19, 20, 23, 24, 28])
def test_nine_numbers_are_decided_alike_in_two_ways(target: int) -> None:
    for number, problem in enumerate(problems(target, 3)):
        if number % 5 == 0:
            assert answer_of(problem) == clique(problem)


@pytest.mark.parametrize("target", [20, 23, 24])
def test_the_optimum_decides_and_gives_a_partition(target: int) -> None:
    for number, problem in enumerate(problems(target, 3)):
        if number % 9 == 0:
            found = decide(problem, time_limit=30, threads=1)
            assert found.answer == ("yes" if clique(problem) else "no")
            assert is_cover(problem, found.partition) == (found.answer == "yes")
            assert str(found.result.bound_source) == "checked"


def test_the_search_alone_is_no_checked_proof() -> None:
    problem = ThreePartition(*SMALL_NO)
    search = Search(problem.instance())
    search_triples(problem, search)
    found = search.result("triples")
    assert (found.lower_bound, str(found.bound_source)) == (10, "solver")
    assert found.bounded_by == "CP-SAT on triples"


def test_without_time_the_question_stays_open(run: Run) -> None:
    code, out, _ = run(
        "reduce", "three-partition", "--target", 20, *SMALL_NO[1], "--json", "--time-limit", 0
    )
    found = json.loads(out)
    assert (code, found["answer"], found["partition"]) == (3, "open", None)
    assert found["lower_bound"] == found["threshold"] == 9


def planted(target: int, count: int) -> ThreePartition:
    """Return numbers of which a partition is known to exist."""
    rng, numbers = random.Random(3), list[int]()
    while len(numbers) < count:
        first, second = (rng.randint(target // 4 + 1, target // 2 - 1) for _ in range(2))
        if target < 4 * (target - first - second) < 2 * target:
            numbers += [first, second, target - first - second]
    return ThreePartition(target, tuple(numbers))


@pytest.mark.parametrize(("target", "count"), [(40, 900), (10**6, 450)])
def test_a_cover_of_many_numbers_is_found(target: int, count: int) -> None:
    """They have nine values, or are all different."""
    problem = planted(target, count)
    search = Search(problem.instance(), Limits(time_limit=60))
    search_triples(problem, search)
    found = search.result("triples")
    assert (found.objective, found.found_by) == (problem.threshold, "CP-SAT on triples")


def test_a_model_that_would_be_too_large_is_not_built() -> None:
    numbers = tuple(range(25_001, 26_804))
    assert len(numbers) > MOST_VALUES
    problem = ThreePartition(77_706, numbers)
    with pytest.raises(Stopped):
        cover(problem, Search(problem.instance()), 1)


@pytest.mark.parametrize(
    ("target", "numbers", "said"),
    [
        (20, (6, 7), "numbers: must be 3m of them, got 2"),
        (20, (6, 7, 8), "numbers: must sum to mB = 20, got 21"),
        (20, (5, 7, 8), "X1: must lie between B/4 = 5 and B/2 = 10, got 5"),
        (20, (6, 4, 10), "X2: must lie"),
        (20, (6, 7, 10), "X3: must lie between B/4 = 5 and B/2 = 10, got 10"),
        (0, (), "target: must be at least 1, got 0"),
        (20, (6, 7, True), "X3: must be an integer, got True"),
    ],
)
def test_what_is_no_such_problem_is_refused(
    target: int, numbers: tuple[int, ...], said: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        ThreePartition(target, numbers)
    assert str(refused.value).startswith(said)


def test_the_command_says_yes(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "yes.json"
    found = run.json("reduce", "three-partition", "--target", 40, *SMALL_YES[1], "-o", file)
    assert found["partition"] == [[11, 11, 18], [11, 12, 17]]
    assert (found["objective"], found["threshold"], found["lower_bound"]) == (9, 9, 9)
    assert (found["answer"], found["status"]) == ("yes", "optimal")
    assert read_instance(file) == ThreePartition(*SMALL_YES).instance()


def test_the_command_says_no_with_a_proof(run: Run, tmp_path: Path) -> None:
    proof = tmp_path / "no.json"
    arguments = ("reduce", "three-partition", "--target", 20, *SMALL_NO[1])
    found = run.json(*arguments, "--certificate", proof)
    assert (found["partition"], found["objective"], found["lower_bound"]) == (None, 10, 10)
    assert (found["answer"], found["threshold"]) == ("no", 9)
    assert found["bound_source"] == "checked"
    assert run("verify", proof)[0] == 0
