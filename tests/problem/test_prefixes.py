"""Shared prefixes: fields, files, the forest, and the check of schedules against brute force."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import networkx
import pytest
from brute_force import load, optimum
from strategies import drawn_with_prefixes, rows_of

from kvopt import (
    BatchTime,
    Instance,
    InvalidInput,
    Line,
    Request,
    Schedule,
    Scope,
    read_instance,
    solve,
    write_instance,
)
from kvopt.problem.clocks import Seconds
from kvopt.problem.problem import Problem, as_problem
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.work import Lost

SHARED = Instance(6, [Request(0, 4, 1, prefix=["system"])] * 2, block_tokens=4)
"""The case of the page: both fit only as they share."""


def test_sharing_lets_two_run_at_once() -> None:
    together = Schedule(SHARED, (0, 0))
    assert together.check().feasible
    assert (together.objective, together.peak_memory, together.scope) == (2, 6, Scope.SHARING)
    assert not Schedule(SHARED.without_prefixes(), (0, 0)).check().feasible
    assert optimum(6, rows_of(SHARED), unit=4) == 2
    assert solve(SHARED, scope="runs").objective == 3


def test_files_keep_prefixes(tmp_path: Path) -> None:
    mixed = Instance(
        40,
        [Request(0, 9, 2, prefix=["a", 1]), Request(1, 4, 3), Request(2, 8, 1, prefix=("a",))],
        block_tokens=4,
    )
    write_instance(mixed, tmp_path / "a.json")
    again = read_instance(tmp_path / "a.json")
    assert (again, again.hash, again.schema) == (mixed, mixed.hash, "kvopt.instance/2")
    assert [r.prefix for r in again] == [("a", 1), (), ("a",)]
    assert Instance.from_dataframe(mixed.to_dataframe(), 40, block_tokens=4) == mixed


def test_without_prefixes_files_and_hashes_are_as_before(tmp_path: Path) -> None:
    plain = Instance(6, [Request(0, 4, 1)] * 2)
    unused = Instance(6, [Request(0, 4, 1, prefix=())] * 2, block_tokens=4)
    assert (unused, unused.block_tokens, unused.hash) == (plain, None, plain.hash)
    assert plain.hash == "sha256:cb38c399d80281f5b479b19d0fea19c4f507495aac7d3f660373fe2bab9aa4f8"
    for name, instance in (("a.json", plain), ("b.json", SHARED.without_prefixes())):
        write_instance(instance, tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert json.loads((tmp_path / "a.json").read_text())["schema"] == "kvopt.instance/1"


def test_ids_of_blocks_are_labels() -> None:
    """The hash depends on who shares what, and on nothing else of the ids."""

    def of(*paths: list[int | str]) -> str:
        requests = [Request(0, 8, 1, prefix=path) for path in paths]
        return Instance(40, requests, block_tokens=4).hash

    assert of([1, 2], [1, 3]) == of(["x", "y"], ["x", 7]) == of([2, 1], [2, "1"])
    different = [of([1, 2], [1, 3]), of([1, 2], [1, 2]), of([1], [1, 3]), of([1, 2], [4, 3])]
    assert len(set(different)) == 4
    with_other_size = Instance(40, [Request(0, 8, 1, prefix=[1, 2])], block_tokens=3)
    assert with_other_size.hash != replace(with_other_size, block_tokens=4).hash


@pytest.mark.parametrize(
    ("rows", "block", "message"),
    [
        ([([1, 2], 8), ([3, 2], 8)], 4,
         "request 'r1': prefix: block 2 follows 3, of request 'r0' it follows 1"),
        ([([1, 2], 8), ([2], 8)], 4,
         "request 'r1': prefix: block 2 is the first one, of request 'r0' it follows 1"),
        ([([1, 1], 8)], 4, "request 'r0': prefix: block 1 follows 1, of request 'r0' it is the"),
        ([([1, 2], 7)], 4, "request 'r0': prefix: has 2 blocks of 4 tokens, its prompt 7 tokens"),
        ([([1], 8)], None, "block_tokens: is missing: a request has a prefix"),
        ([([1], 8)], 0, "block_tokens: must be at least 1, got 0"),
        ([([1], 8)], True, "block_tokens: must be an integer, got True"),
        ([("ab", 8)], 4, "prefix: must be a list of block ids, got"),
        ([([1.0], 8)], 4, "prefix: must hold integers or strings, got 1.0"),
        ([([True], 8)], 4, "prefix: must hold integers or strings, got True"),
    ],
)  # fmt: skip
def test_what_is_refused_names_file_request_and_field(
    tmp_path: Path, rows: list[tuple[object, int]], block: object, message: str
) -> None:
    requests = [{"arrival": 0, "prompt": n, "output": 1, "prefix": path} for path, n in rows]
    top = {"schema": "kvopt.instance/2", "memory": 20, "block_tokens": block, "requests": requests}
    if block is None:
        del top["block_tokens"]
    file = tmp_path / "a.json"
    file.write_text(json.dumps(top), encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        read_instance(file)
    assert "a.json" in str(refused.value)
    assert message in str(refused.value)


def test_older_files_have_no_prefixes(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_instance(SHARED, file)
    file.write_text(file.read_text().replace("instance/2", "instance/1"))
    with pytest.raises(InvalidInput, match="block_tokens"):
        read_instance(file)
    with pytest.raises(InvalidInput, match=r"prefix: CSV has no place for it"):
        write_instance(SHARED, tmp_path / "a.csv")


def test_blocks_of_memory_divide_blocks_of_prefixes() -> None:
    with pytest.raises(InvalidInput, match=r"block_tokens: is 4, no multiple of block_size, 3"):
        replace(SHARED, block_size=3)
    assert replace(SHARED, block_size=2).block_tokens == 4


@pytest.mark.parametrize("seed", range(60))
def test_forest_keeps_what_any_set_holds(seed: int) -> None:
    """Merged nodes and private parts weigh for each set of requests what its blocks weigh."""
    instance = drawn_with_prefixes(seed)
    forest, rows, size = instance.forest, rows_of(instance), instance.block_tokens or 1
    for chosen in product([False, True], repeat=len(rows)):
        active = [i for i, is_in in enumerate(chosen) if is_in]
        blocks = {block for i in active for block in rows[i][3]}
        own = sum(rows[i][1] - size * len(rows[i][3]) for i in active)
        assert forest.tokens(active) + sum(forest.private[i] for i in active) == (
            own + size * len(blocks)
        )
    for node, users in enumerate(forest.users):
        assert users == tuple(i for i, path in enumerate(forest.paths) if node in path)
        assert len(users) > 1


@pytest.mark.parametrize("seed", range(60))
def test_the_graph_of_prefixes_has_what_paths_of_blocks_share(seed: int) -> None:
    """Its nodes hold every set of requests as blocks do; a child has fewer users."""
    instance = drawn_with_prefixes(seed)
    graph, rows, size = instance.prefix_forest(), rows_of(instance), instance.block_tokens or 1
    users, tokens = graph.nodes(data="users"), dict(graph.nodes(data="tokens"))
    for parent, child in graph.edges:
        assert {*users[parent]} > {*users[child]}
    assert not graph or networkx.is_branching(graph)  # at most one parent each, no cycle
    for i, j in combinations(range(len(rows)), 2):
        both = {node for node, those in users if {i, j} <= {*those}}
        assert sum(map(tokens.__getitem__, both)) == size * len({*rows[i][3]} & {*rows[j][3]})
        assert all(both.issuperset(networkx.ancestors(graph, node)) for node in both)
        assert not both or networkx.is_arborescence(graph.subgraph(both))  # one path from a root


def test_without_shared_blocks_the_graph_is_empty() -> None:
    lone = [Request(0, 8, 1, prefix=["a", "b"]), Request(0, 4, 1, prefix=["c"]), Request(0, 1, 1)]
    assert not Instance(20, lone, block_tokens=4).prefix_forest()
    assert not Instance(20, [Request(0, 1, 1)]).prefix_forest()


def test_lost_work_holds_its_prefix_too() -> None:
    """Evicted after two rounds: at time 2 it holds 4 + 2, beside 1 of its own of the other."""
    instance = Instance(
        7, [Request(0, 4, 3, prefix=[1]), Request(1, 4, 1, prefix=[1])], block_tokens=4
    )
    made = PolicyRun(instance, (2, 1), policy="x", lost=[Lost(0, 0, 2)])
    assert [held for _, held in made.loads([1, 2, 3, 4, 5])] == [5, 7, 5, 6, 7]
    assert made.check().feasible


@pytest.mark.parametrize("seed", range(60))
def test_common_prefix_is_reduced_exactly(seed: int) -> None:
    instance = drawn_with_prefixes(seed, 4, is_common=True)
    reduced = instance.without_common_prefix()
    size = instance.block_tokens or 1
    assert reduced.memory < instance.memory
    assert optimum(instance.memory, rows_of(instance), unit=size) == optimum(
        reduced.memory, rows_of(reduced), unit=size
    )
    if "prefix" not in reduced.extras:
        assert solve(reduced).objective == optimum(instance.memory, rows_of(instance), unit=size)
    else:
        assert not set.intersection(*(set(r.prefix) for r in reduced))


def test_scope_is_sharing_where_prefixes_are_known(caplog: pytest.LogCaptureFixture) -> None:
    assert Problem(SHARED).scope is Scope.SHARING
    assert as_problem(SHARED).instance is SHARED
    without = as_problem(SHARED, scope="runs")
    assert (without.scope, without.instance) == (Scope.RUNS, SHARED.without_prefixes())
    assert Problem(without.instance, scope=Scope.SHARING).scope is Scope.RUNS
    assert Problem(SHARED.without_prefixes(), scope=Scope.SHARING_AND_PAUSES).scope is Scope.PAUSES
    assert not caplog.records
    clock = Seconds(BatchTime([Line(10, 1)]))
    in_seconds = Instance(6, [replace(r, arrival_seconds=0) for r in SHARED], block_tokens=4)
    assert as_problem(in_seconds, clock=clock).scope is Scope.SHARING
    assert not caplog.records
    assert as_problem(in_seconds, slo="e2e=3").scope is Scope.SHARING
    assert not caplog.records


@pytest.mark.parametrize("seed", range(30))
def test_pictures_show_what_is_held(seed: int) -> None:
    """The curve of a picture goes through what brute force counts at every time."""
    instance = drawn_with_prefixes(seed)
    rows, size = rows_of(instance), instance.block_tokens or 1
    schedule = Schedule(instance, [row[0] + i % 3 for i, row in enumerate(rows)])
    times, heights = schedule.timeline().held()
    prompts = schedule.timeline().held_prompts()[1]
    for time in range(1, schedule.makespan + 1):
        # Tokens of a round are drawn from its begin on.
        before = [height for at, height in zip(times, heights, strict=True) if at < time]
        held = load(rows, schedule.starts, time, unit=size)
        active = [
            time - k for k, row in zip(schedule.starts, rows, strict=True) if k < time <= k + row[2]
        ]
        assert (before or [0])[-1] == held
        assert not active or held - sum(active) in prompts
