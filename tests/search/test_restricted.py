"""Weights and a limit of active requests: brute force guards each, and both."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kvopt import (
    Instance,
    InvalidInput,
    Request,
    Schedule,
    bound,
    certify,
    export,
    read_certificate,
    read_instance,
    run,
    solve,
    verify,
    write_certificate,
    write_instance,
)
from kvopt.formulations.arrays import time_indexed_arrays

pytestmark = pytest.mark.usefixtures("processor_clock")

AXES = ("weight", "max_active")


def drawn(seed: int, axes: tuple[str, ...], count: int = 4) -> Instance:
    """Return a small instance with some of the axes."""
    rng = random.Random(seed)
    memory = rng.randint(4, 8)
    requests = []
    for _ in range(rng.randint(2, count)):
        prompt = rng.randint(0, 3)
        request = Request(rng.randint(0, 3), prompt, rng.randint(1, min(3, memory - prompt)))
        if "weight" in axes:
            request = replace(request, weight=rng.randint(1, 4))
        requests.append(request)
    most = rng.randint(1, 2) if "max_active" in axes else None
    return Instance(memory, requests, max_active=most)


def value_of(instance: Instance, starts: tuple[int, ...]) -> int | None:
    """Return the weighted latency of starts, from the definitions alone; None if they break one."""
    requests, total = instance.requests, 0
    ends = [k + r.output for k, r in zip(starts, requests, strict=True)]
    for i, request in enumerate(requests):
        if starts[i] < request.arrival:
            return None
        total += request.weight * (ends[i] - request.arrival)
    for time in range(1, max(ends) + 1):
        active = [i for i, k in enumerate(starts) if k < time <= ends[i]]
        held = sum(requests[i].prompt + time - starts[i] for i in active)
        if held > instance.memory or len(active) > (instance.max_active or len(active)):
            return None
    return total


def optimum(instance: Instance) -> int:
    """Return the least weighted latency over all starts."""
    last = instance.last_arrival + instance.total_output
    ranges = [range(r.arrival, last - r.output + 1) for r in instance]
    found = (value_of(instance, starts) for starts in product(*ranges))
    return min(value for value in found if value is not None)


COMBINATIONS = [
    tuple(axis for axis, is_in in zip(AXES, chosen, strict=True) if is_in)
    for chosen in product((False, True), repeat=len(AXES))
    if any(chosen)
]


@pytest.mark.slow
@pytest.mark.parametrize("axes", COMBINATIONS, ids="+".join)
def test_both_sides_hold_the_optimum_of_brute_force(axes: tuple[str, ...]) -> None:
    for seed in range(6):
        instance = drawn(seed, axes)
        best = optimum(instance)
        found = solve(instance, time_limit=30, threads=2)
        assert (found.objective, found.lower_bound) == (best, best), (axes, seed)
        assert not found.faults
        proved = bound(instance, time_limit=2).value
        assert proved is not None
        assert proved <= best
        for name in ("fcfs", "mc-sf", "svf", "patient"):
            made = run(instance, name)
            assert made.is_complete
            assert made.objective >= best


@pytest.mark.parametrize("axes", COMBINATIONS, ids="+".join)
def test_the_check_agrees_with_the_definitions(axes: tuple[str, ...]) -> None:
    rng, seen = random.Random(1), set[bool]()
    for seed in range(60):
        instance = drawn(seed, axes, count=3)
        starts = tuple(r.arrival + rng.randint(0, 5) for r in instance)
        check, expected = Schedule(instance, starts).check(), value_of(instance, starts)
        assert check.feasible == (expected is not None), (seed, starts, check.violations)
        if expected is not None:
            assert check.objective == expected
        seen.add(check.feasible)
    assert seen == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["cpsat", "highs", "pyomo"])
def test_solvers_know_weights_and_limits(engine: str) -> None:
    for seed in range(3):
        instance = drawn(seed, ("weight", "max_active"), count=3)
        found = solve(instance, engine, time_limit=60)
        assert found.objective == found.lower_bound == optimum(instance)


def test_pyomo_and_arrays_build_one_program() -> None:
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    from kvopt.formulations.pyomo import time_indexed

    for seed in range(8):
        instance = drawn(seed, ("weight", "max_active"))
        compiler: Any = LinearStandardFormCompiler()
        form = compiler.write(time_indexed(instance), mixed_form=True)
        matrix = time_indexed_arrays(instance).matrix
        assert form.A.shape == matrix.shape
        assert sorted(form.A.tocoo().data) == sorted(matrix.data)
        assert sorted(form.c.tocoo().data) == sorted(time_indexed_arrays(instance).cost)


def test_files_keep_everything(tmp_path: Path) -> None:
    for axes in COMBINATIONS:
        instance = drawn(3, axes)
        write_instance(instance, tmp_path / "i.json")
        again = read_instance(tmp_path / "i.json")
        assert again == instance
        assert again.hash == instance.hash
        assert instance.hash != instance.without_extras().hash or not instance.extras
        frame = instance.to_dataframe()
        back = Instance.from_dataframe(frame, instance.memory)
        assert back.replace(max_active=instance.max_active) == instance
    with pytest.raises(InvalidInput, match="CSV has no place for it"):
        write_instance(drawn(3, ("weight",)), tmp_path / "i.csv")


@pytest.mark.parametrize("axis", AXES)
def test_what_does_not_know_it_says_so(axis: str, tmp_path: Path) -> None:
    instance = next(i for seed in range(99) if axis in (i := drawn(seed, (axis,))).extras)
    refused: list[Callable[[], object]] = [
        lambda: solve(instance, "exact"),
        lambda: solve(instance, scope="pauses"),
        lambda: solve(instance, clock="seconds"),
        lambda: solve(instance, deadline="9"),
        lambda: run(instance, "vllm-fcfs"),
        lambda: export(instance, tmp_path / "m.lp", "pauses"),
    ]
    for work in refused:
        with pytest.raises(InvalidInput, match=f"{axis}: is not known by"):
            work()


@pytest.mark.slow
@pytest.mark.parametrize("axes", COMBINATIONS, ids="+".join)
def test_certificates_are_verified_and_lies_are_not(axes: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    for seed in range(3):
        instance = drawn(seed, axes)
        best = optimum(instance)
        found = certify(instance, ["svf"], time_limit=1, threads=2)
        assert found.objective == best
        assert found.lower_bound is not None
        assert found.lower_bound <= best
        write_certificate(found, path)
        assert verify(path).valid, verify(path).lines
        assert read_certificate(path).instance == instance
        told = json.loads(path.read_text())
        every = [*product(range(6), repeat=len(instance))]
        for starts in random.Random(seed).sample(every, min(80, len(every))):
            value = value_of(instance, starts)
            claimed = sum(
                r.weight * (k + r.output - r.arrival) for k, r in zip(starts, instance, strict=True)
            )
            told["upper"] = {"starts": list(starts), "value": claimed if value is None else value}
            told["lower"] = told["policies"] = None
            path.write_text(json.dumps({k: v for k, v in told.items() if k != "policies"}))
            assert verify(path).valid == (value is not None), (starts, verify(path).lines)


@pytest.mark.slow
def test_a_search_that_begins_late_is_verified(tmp_path: Path) -> None:
    # Labels are counted from the first arrival on: idle rounds before it are not cut off here.
    rows = (
        (15, 5, 22),
        (17, 2, 35),
        (23, 4, 11),
        (27, 5, 42),
        (29, 5, 38),
        (33, 2, 33),
        (44, 5, 29),
    )
    found = certify(Instance(52, [Request(*row) for row in rows], max_active=3), time_limit=60)
    assert found.lower is not None
    assert found.lower.bounded_by == "exact"
    write_certificate(found, tmp_path / "c")
    assert verify(tmp_path / "c").valid
