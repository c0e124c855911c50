"""Instances are checked once, are frozen, and their hash is the problem and nothing else."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from brute_force import load
from hypothesis import given
from strategies import instances, labelled_instances, plain

from kvopt.errors import InvalidInput, KvoptError, one_line, shown
from kvopt.problem.instance import Instance
from kvopt.problem.requests import LARGEST_INTEGER, Prediction, Request
from kvopt.timetable.schedule import Schedule

NOT_INTEGERS = (
    1.5, 1.0, np.float64(1), "3", True, np.bool_(True), None, math.nan, math.inf, [1],
    LARGEST_INTEGER + 1, 10**400,
)  # fmt: skip
INTEGER_FIELDS: dict[str, tuple[int, Callable[[Any], object]]] = {
    "memory": (1, lambda value: Instance(value, [])),
    "arrival": (0, lambda value: Request(value, 1, 1)),
    "prompt": (0, lambda value: Request(0, value, 1)),
    "output": (1, lambda value: Request(0, 1, value)),
    "predicted.lower": (1, lambda value: Prediction(value, LARGEST_INTEGER)),
    "predicted.upper": (1, lambda value: Prediction(1, value)),
}


def refusal(build: Callable[[], object]) -> str:
    """Return the one line with which building something is refused."""
    with pytest.raises(InvalidInput) as caught:
        build()
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 200
    return message


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=shown)
@pytest.mark.parametrize("field", INTEGER_FIELDS)
def test_fields_hold_integers_only(field: str, value: object) -> None:
    build = INTEGER_FIELDS[field][1]
    assert refusal(partial(build, value)).startswith(f"{field}: must be ")


@pytest.mark.parametrize("field", INTEGER_FIELDS)
def test_fields_have_a_least_and_a_largest_value(field: str) -> None:
    least, build = INTEGER_FIELDS[field]
    build(least)
    if field in ("memory", "arrival", "prompt", "output"):
        build(LARGEST_INTEGER)
    for value in (least - 1, -(10**400)):
        assert refusal(partial(build, value)).startswith(f"{field}: must be at least ")


def nested(levels: int) -> object:
    return {"a": nested(levels - 1)} if levels else 1


REFUSED: list[tuple[str, Callable[[], object], str]] = [
    ("empty id", lambda: Request(0, 1, 1, id=""), "id: "),
    ("id is a number", lambda: Request(0, 1, 1, id=7), "id: "),  # type: ignore[arg-type]
    ("tuple", lambda: Request(0, 1, 1, predicted=(1, 2)), "predicted: "),  # type: ignore[arg-type]
    ("interval upside down", lambda: Prediction(4, 3), "predicted: lower 4 is above upper 3"),
    ("round of no length", lambda: Instance(1, [], round_ms=0), "round_ms: "),
    ("notes too deep", lambda: Instance(1, [], notes=nested(101)), "notes: has more than 100"),
    ("number inside", lambda: Request(0, [10**5000], 1), "prompt: must be "),  # type: ignore[arg-type]
    ("not a request", lambda: Instance(1, [(0, 1, 1)]), "position 0: requests"),  # type: ignore[list-item]
    (
        "arguments swapped",
        lambda: Instance([Request(0, 1, 1)], 5),  # type: ignore[arg-type]
        "requests: must be a list of requests, got 5; memory comes first: Instance(",
    ),
    ("no requests", lambda: Instance(5, 5), "requests: must be a list of requests, got 5"),  # type: ignore[arg-type]
    (
        "a block as large as the largest memory",
        lambda: Instance(LARGEST_INTEGER, [], block_size=LARGEST_INTEGER),
        f"together with memory, got {LARGEST_INTEGER} and {LARGEST_INTEGER}",
    ),
    (
        "id that is a default",
        lambda: Instance(5, [Request(0, 1, 1, id="r1"), Request(0, 1, 1)]),
        "request 'r1': id: is used twice",
    ),
]


@pytest.mark.parametrize(
    ("build", "says"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_is_no_instance_is_refused(build: Callable[[], object], says: str) -> None:
    assert says in refusal(build)


def test_errors_are_value_errors_of_one_line_that_take_a_place() -> None:
    error = InvalidInput("bad\nvalue", field="output")
    assert isinstance(error, ValueError)
    assert isinstance(error, KvoptError)
    located = error.located(request="'a'", file="x.json")
    assert str(located) == "x.json: request 'a': output: bad\\nvalue"
    assert str(located.located(request="'b'", file="y.json")) == str(located)
    assert one_line("tab\t, line\u2028") == "tab\\t, line\\u2028"


def test_extremes_are_allowed() -> None:
    assert Instance(1, [], notes=nested(100)).notes == nested(100)
    instance = Instance(5, [Request(0, 1, 1), Request(0, 1, 4, id="x"), Request(0, 1, 1)])
    assert [request.id for request in instance] == ["r0", "x", "r2"]
    assert instance.requests[1].peak == 5
    empty = Instance(1, [])
    assert (len(empty), empty.total_output, empty.last_arrival) == (0, 0, 0)


@pytest.mark.slow
@given(instances())
def test_numbers_agree_with_the_definition(instance: Instance) -> None:
    for request in instance:
        triple = [(request.arrival, request.prompt, request.output)]
        held = [load(triple, [0], time) for time in range(request.output + 3)]
        assert (request.peak, request.volume) == (max(held), sum(held))
        assert request.shape == triple[0][1:]
    assert instance.total_output == sum(output for _, _, output in plain(instance)[1])
    assert all(request.arrival <= instance.last_arrival for request in instance)


@pytest.mark.slow
@given(labelled_instances())
def test_shifting_moves_arrivals_and_nothing_else(instance: Instance) -> None:
    moved = instance.shifted(3)
    assert [r.arrival for r in moved] == [r.arrival + 3 for r in instance]
    assert (moved.hash == instance.hash) == (len(instance) == 0)
    assert moved.shifted(-3) == instance


@pytest.mark.parametrize(
    ("thing", "field"),
    [
        (Instance(5, [Request(0, 1, 1)]), "memory"),
        (Instance(5, []), "requests"),
        (Request(0, 1, 1), "output"),
        (Prediction(1, 2), "upper"),
    ],
)
def test_nothing_can_be_set(thing: object, field: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(thing, field, 1)


def test_requests_are_copied_from_the_list_given() -> None:
    given_list = [Request(0, 1, 1)]
    instance = Instance(5, given_list)
    given_list.clear()
    assert len(instance) == 1
    assert isinstance(instance.requests, tuple)


def full(**changes: Any) -> Instance:
    """Return an instance that uses every field, with some of them changed."""
    values: dict[str, Any] = {
        "arrival": 2, "prompt": 3, "output": 4, "lower": 1, "upper": 5, "arrival_seconds": 0.5,
        "memory": 12, "round_ms": 30.0, "id": "a", "name": "n", "notes": "m",
    }  # fmt: skip
    assert changes.keys() <= values.keys()
    values |= changes
    prediction = Prediction(values.pop("lower"), values.pop("upper"))
    top = {field: values.pop(field) for field in ("memory", "round_ms", "name", "notes")}
    return Instance(requests=[Request(predicted=prediction, **values), Request(0, 1, 2)], **top)


@pytest.mark.parametrize(
    "change", [{"id": "b"}, {"id": None}, {"name": None}, {"notes": None}, {"notes": {"x": 1}}]
)
def test_hash_ignores_labels(change: dict[str, Any]) -> None:
    assert full(**change).hash == full().hash


NUMBERS = ("arrival", "prompt", "output", "lower", "upper", "arrival_seconds", "memory", "round_ms")
OTHER = {"lower": 2, "memory": 11}


def test_hash_reacts_to_each_number() -> None:
    hashes = {full(**{field: OTHER.get(field, 6)}).hash for field in NUMBERS}
    assert len(hashes | {full().hash}) == len(NUMBERS) + 1


def test_hash_reacts_to_fields_left_out_and_to_the_order() -> None:
    first, second = Request(0, 1, 2), Request(1, 1, 2)
    variants = [
        Instance(9, [first, second]),
        Instance(9, [second, first]),
        Instance(9, [first, second], round_ms=1.0),
        Instance(9, [first]),
        Instance(9, [first, Request(1, 1, 2, predicted=Prediction(2, 2))]),
        Instance(9, [first, Request(1, 1, 2, arrival_seconds=2.0)]),
    ]
    assert len({variant.hash for variant in variants}) == len(variants)


@pytest.mark.parametrize("field", ["arrival_seconds", "round_ms"])
def test_numbers_that_are_equal_have_one_hash(field: str) -> None:
    whole, real = full(**{field: 3}), full(**{field: 3.0})
    assert whole == real
    assert (whole.hash, hash(whole)) == (real.hash, hash(real))
    zero = Request(0, 1, 1, arrival_seconds=0), Request(0, 1, 1, arrival_seconds=-0.0)
    assert len({Instance(5, [request]).hash for request in zero}) == 1


@pytest.mark.slow
@given(labelled_instances())
def test_instances_can_be_members_of_a_set(instance: Instance) -> None:
    request = [replace(r) for r in instance]
    again = Instance(instance.memory, request, instance.name, instance.notes, instance.round_ms)
    assert {instance, again} == {instance}


def test_instances_and_schedules_have_a_hash_with_notes_that_are_an_object() -> None:
    assert len({full(notes={"x": 1}), full(notes={"x": 1}), full(notes="m"), full(memory=11)}) == 3
    assert len({Schedule(full(notes={"x": 1}), (2, 0)) for _ in range(2)}) == 1


def test_hash_is_the_same_in_every_run() -> None:
    digest = "f66de2ad9f4584531ca9fdc69a82860a81d22c360ce014e22cb8e12f03cd71f0"
    instance = Instance(7, [Request(0, 1, output) for output in (1, 2, 3, 4)])
    assert instance.hash == "sha256:" + digest, "schedules written earlier would be refused"
    digest = "fd326e382457fc8d17ba010e66d3df2c845c0dc9aa12a20b1668d9d990f39198"
    assert full().hash == "sha256:" + digest
