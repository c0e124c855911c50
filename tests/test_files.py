"""Files: what is refused and how, round trips, and writing that is all or nothing."""

from __future__ import annotations

import copy
import json
import math
import os
import random
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from strategies import instance_of, instances, labelled_instances, random_instances, random_starts

from kvopt.errors import FalseClaim, InvalidInput, shown
from kvopt.files import (
    read_instance,
    read_schedule,
    write_atomically,
    write_instance,
    write_schedule,
)
from kvopt.files.atomic import atomic_path
from kvopt.instance import Instance, Prediction, Request
from kvopt.schedule import Schedule

DOCUMENT = {
    "schema": "kvopt.instance/1",
    "name": "example",
    "notes": {"source": "by hand"},
    "memory": 9,
    "round_ms": 20.5,
    "requests": [
        {"arrival": 0, "prompt": 3, "output": 1},
        {
            "id": "late",
            "arrival": 4,
            "prompt": 2,
            "output": 5,
            "predicted": {"lower": 1, "upper": 6},
            "arrival_seconds": 0.25,
        },
    ],
}
MISSING = object()
"""Stands for a field that is taken out."""

Place = tuple[str | int, ...]


def edited(place: Place, value: object, original: dict[str, Any] = DOCUMENT) -> str:
    """Return the JSON text of a document with one field set or taken out."""
    document = copy.deepcopy(original)
    inner: Any = document
    for step in place[:-1]:
        inner = inner[step]
    if value is MISSING:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return json.dumps(document)


def refusal(read: Callable[[Path], object], path: Path, content: str | bytes) -> str:
    """Return the line with which a file is refused, without the file's name."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidInput) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable(), "a message is one line"
    return message.removeprefix(f"{path}: ")


NOT_INTEGERS: tuple[object, ...] = (
    1.5, 1.0, "3", True, None, math.nan, math.inf, -math.inf, [1], {}, 2**53, 10**400
)  # fmt: skip
LATE: Place = ("requests", 1)
INTEGERS: dict[Place, int] = {
    ("memory",): 1,
    (*LATE, "arrival"): 0,
    (*LATE, "prompt"): 0,
    (*LATE, "output"): 1,
    (*LATE, "predicted", "lower"): 1,
    (*LATE, "predicted", "upper"): 1,
}


def named(place: Place) -> str:
    """Return how a message begins that is about ``place``."""
    request = "request 'late': " if place[:2] == LATE else ""
    inside = "predicted." if "predicted" in place[:-1] else ""
    return f"{request}{inside}{place[-1]}: "


@pytest.mark.parametrize("place", INTEGERS, ids=lambda place: str(place[-1]))
def test_numbers_are_integers(place: Place, tmp_path: Path) -> None:
    too_small = (INTEGERS[place] - 1, -1, -(10**400))
    for value in NOT_INTEGERS + too_small:
        says = refusal(read_instance, tmp_path / "a.json", edited(place, value))
        assert says.startswith(named(place) + "must be "), shown(value)


# What is done to the document, and how the message begins.
REFUSED: list[tuple[Place, object, str]] = [
    (("budget",), 1, "budget: is not a known field"),
    (("a\nb",), 1, "a\\nb: is not a known field"),
    ((*LATE, "budget"), 1, "request 'late': budget: is not a known field"),
    ((*LATE, "predicted", "mid"), 1, "request 'late': mid: is not a known field"),
    (("requests", 0, "budget"), 1, "request 'r0': budget: is not a known field"),
    (("schema",), MISSING, "schema: must be 'kvopt.instance/1', got None"),
    (("schema",), "kvopt.instance/2", "schema: must be 'kvopt.instance/1', got 'kvopt.instance/2'"),
    (("schema",), 1, "schema: "),
    (("memory",), MISSING, "memory: is missing"),
    (("requests",), MISSING, "requests: is missing"),
    (("requests",), None, "requests: must be a list"),
    (("requests",), {}, "requests: must be a list"),
    (("requests", 0), [0, 3, 1], "request 'r0': request: must be an object"),
    (("requests", 0), None, "request 'r0': request: must be an object"),
    (("requests", 0, "prompt"), 2.5, "request 'r0': prompt: must be an integer"),
    ((*LATE, "arrival"), MISSING, "request 'late': arrival: is missing"),
    ((*LATE, "prompt"), MISSING, "request 'late': prompt: is missing"),
    ((*LATE, "output"), MISSING, "request 'late': output: is missing"),
    ((*LATE, "predicted", "lower"), MISSING, "request 'late': lower: is missing"),
    ((*LATE, "predicted", "upper"), MISSING, "request 'late': upper: is missing"),
    ((*LATE, "predicted", "lower"), 7, "request 'late': predicted: lower 7 is above upper 6"),
    ((*LATE, "predicted"), [1, 6], "request 'late': predicted: must be an object"),
    ((*LATE, "predicted"), None, "request 'late': predicted: must not be null"),
    ((*LATE, "arrival_seconds"), -1, "request 'late': arrival_seconds: "),
    ((*LATE, "arrival_seconds"), math.nan, "request 'late': arrival_seconds: "),
    ((*LATE, "arrival_seconds"), "1", "request 'late': arrival_seconds: "),
    ((*LATE, "arrival_seconds"), 10**400, "request 'late': arrival_seconds: "),
    ((*LATE, "arrival_seconds"), None, "request 'late': arrival_seconds: must not be null"),
    (
        (*LATE, "output"),
        8,
        "request 'late': output: needs 10 tokens (prompt + output), memory is 9",
    ),
    ((*LATE, "id"), "r0", "request 'r0': id: is used twice"),
    (("requests", 0, "id"), "late", "request 'late': id: is used twice"),
    ((*LATE, "id"), "", "request 'r1': id: must be a non-empty string"),
    ((*LATE, "id"), 3, "request 'r1': id: must be a non-empty string"),
    ((*LATE, "id"), None, "request 'r1': id: must not be null"),
    (("name",), 3, "name: "),
    (("name",), None, "name: must not be null"),
    (("notes",), [1], "notes: "),
    (("notes",), None, "notes: must not be null"),
    (("round_ms",), 0, "round_ms: "),
    (("round_ms",), math.inf, "round_ms: "),
    (("round_ms",), True, "round_ms: "),
]


@pytest.mark.parametrize(("place", "value", "says"), REFUSED, ids=[row[2][:50] for row in REFUSED])
def test_refused_fields(place: Place, value: object, says: str, tmp_path: Path) -> None:
    assert refusal(read_instance, tmp_path / "a.json", edited(place, value)).startswith(says)


ONE = '{"schema": "kvopt.instance/1", "memory": 9, "requests": [%s]}'
TEXTS: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is not JSON"),
    "half": (ONE[:40], "is not JSON"),
    "two": (ONE % "" + "{}", "is not JSON"),
    "comment": ("// x\n" + ONE % "", "is not JSON"),
    "digits of another script": (ONE % '{"arrival": ٣}', "is not JSON"),
    "UTF-16": ((ONE % "").encode("utf-16"), "is not UTF-8 text"),
    "Latin-1": (b'{"name": "\xe9"}', "is not UTF-8 text"),
    "a list": ("[]", "instance: must be an object"),
    "a number": ("7", "instance: must be an object"),
    "null": ("null", "instance: must be an object"),
    "deep list": ("[" * 100_000, "is nested too deeply"),
    "deep object": ('{"a":' * 100_000, "is nested too deeply"),
    "endless integer": (
        ONE % ('{"arrival": ' + "1" * 5000 + "}"),
        "holds a number that is too long",
    ),
    "memory twice": (ONE[:-1] % "" + ', "memory": 9}', "memory: is given twice"),
    "output twice": (
        ONE % '{"id": "x", "arrival": 0, "prompt": 1, "output": 1, "output": 2}',
        "request 'x': output: is given twice",
    ),
    "lower twice": (
        ONE % '{"arrival": 0, "prompt": 1, "output": 1, "predicted": {"lower": 1, "lower": 1}}',
        "request 'r0': lower: is given twice",
    ),
}


@pytest.mark.parametrize(("content", "says"), TEXTS.values(), ids=TEXTS)
def test_refused_texts(content: str | bytes, says: str, tmp_path: Path) -> None:
    assert refusal(read_instance, tmp_path / "a.json", content).startswith(says)


HEADER = "arrival,prompt,output\n"
CSV_REFUSED: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "header: "),
    "no header": ("0,1,1\n", "header: "),
    "column missing": ("arrival,prompt\n0,1\n", "header: "),
    "column unknown": ("arrival,prompt,output,id\n0,1,1,x\n", "header: "),
    "column twice": ("arrival,prompt,prompt\n0,1,1\n", "header: "),
    "capitals": ("Arrival,Prompt,Output\n0,1,1\n", "header: "),
    "cell missing": (HEADER + "0,1,1\n0,1\n", "request r1 (line 3): has 2 cells"),
    "cell too many": (HEADER + "0,1,1,1\n", "request r0 (line 2): has 4 cells"),
    "semicolons": (HEADER + "0;1;1\n", "request r0 (line 2): has 1 cells"),
    "empty cell": (HEADER + "0,,1\n", "request r0 (line 2): prompt: is missing"),
    "blank cell": (HEADER + "0, ,1\n", "request r0 (line 2): prompt: is missing"),
    "negative": (HEADER + "-1,1,1\n", "request r0 (line 2): arrival: must be at least 0, got -1"),
    "no output": (HEADER + "0,1,0\n", "request r0 (line 2): output: must be at least 1, got 0"),
    "2^53": (HEADER + f"{2**53},1,1\n", "request r0 (line 2): arrival: must be at most"),
    "too large": (HEADER + "0,1,1\n0,9,1\n", "request r1: output: needs 10 tokens"),
    "open quote": (HEADER + '0,"1,1\n', "is not CSV"),
    "text after a quote": (HEADER + '0,"1"2,1\n', "is not CSV"),
    "endless cell": (HEADER + "0," + "1" * 200_000 + ",1\n", "is not CSV"),
    "Latin-1": (HEADER.encode() + b"\xe9,1,1\n", "is not UTF-8 text"),
}
ODD_CELLS = (
    "1.5", "1.0", "+3", "1_000", "1e3", "٣", "３", "²", "0x1", "1 0", "--1", "true",  # noqa: RUF001
    "NaN", "inf", "null", '"""3"""', "'3'", "1\x00", "9" * 40,
)  # fmt: skip


def csv_refusal(path: Path, content: str | bytes) -> str:
    """Return the refusal of a CSV file; whether a row's label is quoted does not matter."""
    return re.sub(r"'(r\d)'", r"\1", refusal(partial(read_instance, memory=9), path, content))


@pytest.mark.parametrize(("content", "says"), CSV_REFUSED.values(), ids=CSV_REFUSED)
def test_refused_csv(content: str | bytes, says: str, tmp_path: Path) -> None:
    assert csv_refusal(tmp_path / "a.csv", content).startswith(says)


@pytest.mark.parametrize("cell", ODD_CELLS, ids=ascii)
def test_csv_cells_are_plain_integers(cell: str, tmp_path: Path) -> None:
    says = csv_refusal(tmp_path / "a.csv", f"{HEADER}0,{cell},1\n")
    assert says.startswith("request r0 (line 2): prompt: must be ")


@pytest.mark.parametrize(
    "text",
    [
        HEADER + "3,2,1\n0,1,4\n",
        HEADER + "3,2,1\n0,1,4",
        "\ufeff" + HEADER + "3,2,1\n0,1,4\n",
        HEADER + "\n\n3,2,1\n\n0,1,4\n\n",
        (HEADER + "3,2,1\n0,1,4\n").replace("\n", "\r\n"),
        " arrival, prompt, output\n 3, 2, 1\n 0 ,1 , 4\n",
        "output,arrival,prompt\n1,3,2\n4,0,1\n",
        HEADER + '"3",2,1\n0,"1",4\n',
    ],
    ids=["plain", "no end", "byte order mark", "blank lines", "CRLF", "spaces", "order", "quotes"],
)
def test_csv_that_is_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.CSV"
    path.write_bytes(text.encode())
    assert read_instance(path, 6) == instance_of(6, [(3, 2, 1), (0, 1, 4)])


def test_csv_needs_a_memory(tmp_path: Path) -> None:
    assert refusal(read_instance, tmp_path / "a.csv", HEADER).startswith("memory: ")
    odd_memories: tuple[Any, ...] = (0, -1, True, 5.0, "5")
    for memory in odd_memories:
        says = refusal(partial(read_instance, memory=memory), tmp_path / "a.csv", HEADER)
        assert says.startswith("memory: must be ")


def test_memory_option_may_only_repeat_what_json_says(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_instance(instance_of(6, []), path)
    assert read_instance(path, 6) == read_instance(path)
    with pytest.raises(InvalidInput, match="memory: the file says 6, the option says 7"):
        read_instance(path, 7)


@pytest.mark.parametrize("name", ["missing.json", "missing.csv", ".", "folder.json"])
def test_what_cannot_be_opened(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InvalidInput) as caught:
        read_instance(tmp_path / name, 5)
    assert str(caught.value).startswith(f"{tmp_path / name}: cannot be read: ")


def test_document_is_read_in_full(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("\ufeff" + json.dumps(DOCUMENT), encoding="utf-8")
    instance = read_instance(path)
    assert (instance.memory, instance.name, instance.round_ms) == (9, "example", 20.5)
    assert instance.notes == {"source": "by hand"}
    first, late = instance
    assert first == Request(0, 3, 1, id="r0")
    assert (late.id, late.arrival, late.shape, late.arrival_seconds) == ("late", 4, (2, 5), 0.25)
    assert late.predicted is not None
    assert (late.predicted.lower, late.predicted.upper) == (1, 6)


def rewritten(instance: Instance, name: str, memory: int | None = None) -> Instance:
    """Write an instance, read it again, and write that: the bytes must not change."""
    with tempfile.TemporaryDirectory() as folder:
        path, second = Path(folder) / name, Path(folder) / f"second-{name}"
        write_instance(instance, path)
        again = read_instance(path, memory)
        write_instance(again, second)
        assert path.read_bytes() == second.read_bytes()
        assert sorted(os.listdir(folder)) == sorted([name, f"second-{name}"])
    return again


@given(labelled_instances())
def test_json_round_trip(instance: Instance) -> None:
    again = rewritten(instance, "a.json")
    assert again == instance
    assert again.hash == instance.hash


@given(instances())
def test_csv_round_trip(instance: Instance) -> None:
    again = rewritten(instance, "a.csv", instance.memory)
    assert again == instance
    assert again.hash == instance.hash


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_a_hundred_thousand_requests(suffix: str, tmp_path: Path) -> None:
    instance = instance_of(50, [(i // 3, i % 7, 1 + i % 11) for i in range(100_000)])
    path = tmp_path / f"large.{suffix}"
    write_instance(instance, path)
    again = read_instance(path, 50)
    assert again == instance
    assert again.requests[-1] == Request(33_333, 4, 10, id="r99999")


LOST_IN_CSV = {
    "id": Instance(5, [Request(0, 1, 1, id="x")]),
    "seconds": Instance(5, [Request(0, 1, 1, arrival_seconds=1.0)]),
    "prediction": Instance(5, [Request(0, 1, 1, predicted=Prediction(1, 2))]),
}


@pytest.mark.parametrize("instance", LOST_IN_CSV.values(), ids=LOST_IN_CSV)
def test_csv_refuses_to_lose_what_it_cannot_hold(instance: Instance, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="CSV has no place"):
        write_instance(instance, tmp_path / "a.csv")
    assert os.listdir(tmp_path) == []


def test_csv_refuses_to_lose_the_length_of_a_round(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="CSV has no place"):
        write_instance(Instance(5, [], round_ms=20.0), tmp_path / "a.csv")


@pytest.mark.parametrize("notes", ['{"x": NaN}', '{"x": 1e999}', '"\\ud800"'])
def test_what_can_be_read_can_be_written(notes: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(ONE[:-1] % "" + f', "notes": {notes}}}', encoding="utf-8")
    try:
        instance = read_instance(path)
    except InvalidInput:
        return
    write_instance(instance, path)
    assert read_instance(path) == instance


def test_field_given_twice_names_the_request(tmp_path: Path) -> None:
    content = ONE % '{"arrival": 0, "prompt": 1, "output": 1, "output": 2}'
    says = refusal(read_instance, tmp_path / "a.json", content)
    assert says.startswith("request 'r0': output: is given twice")


class WriterError(Exception):
    """Stands for whatever may go wrong while a file is written."""


def write_half(target: Path, failure: type[BaseException]) -> None:
    with atomic_path(target) as temporary:
        temporary.write_text("half", encoding="utf-8")
        assert temporary.suffix == target.suffix
        assert target.read_text(encoding="utf-8") == "old"
        raise failure


@pytest.mark.parametrize("failure", [WriterError, KeyboardInterrupt])
def test_a_failure_keeps_the_old_file_and_leaves_nothing(
    failure: type[BaseException], tmp_path: Path
) -> None:
    target = tmp_path / "a.json"
    write_atomically(target, "old")
    with pytest.raises(failure):
        write_half(target, failure)
    assert os.listdir(tmp_path) == ["a.json"]
    assert target.read_text(encoding="utf-8") == "old"


def test_a_full_disk_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    target = tmp_path / "a.json"
    write_atomically(target, "old")
    for owner, name in ((Path, "write_text"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, refuse)
            with pytest.raises(InvalidInput, match=r"a\.json: cannot be written: No space left"):
                write_instance(instance_of(5, []), target)
        assert os.listdir(tmp_path) == ["a.json"]
        assert target.read_text(encoding="utf-8") == "old"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "none" / "a.json", tmp_path / "folder"):
        with pytest.raises(InvalidInput, match="cannot be written: "):
            write_atomically(target, "text")
    assert os.listdir(tmp_path) == ["folder"]


def test_written_files_are_as_readable_as_others(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_atomically(tmp_path / "a.json", "é\n")
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert (tmp_path / "a.json").read_bytes() == b"\xc3\xa9\n"


EC_1 = instance_of(7, [(0, 1, output) for output in (1, 2, 3, 4)])
SCHEDULE = {
    "schema": "kvopt.schedule/1",
    "instance": EC_1.hash,
    "starts": [0, 0, 0, 2],
    "objective": 12,
}


def read_ec_1(path: Path) -> Schedule:
    return read_schedule(path, EC_1)


def test_schedule_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write_schedule(Schedule(EC_1, (0, 0, 0, 2)), path)
    assert json.loads(path.read_text(encoding="utf-8")) == SCHEDULE
    assert read_ec_1(path) == Schedule(EC_1, (0, 0, 0, 2))


def test_any_schedule_survives_a_round_trip(tmp_path: Path) -> None:
    for instance in random_instances(100, seed=31):
        schedule = Schedule(instance, random_starts(instance, random.Random(31), early=1))
        write_schedule(schedule, tmp_path / "s.json")
        assert read_schedule(tmp_path / "s.json", instance) == schedule


@pytest.mark.parametrize("field", ["instance", "objective"])
def test_schedule_claims_are_optional(field: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(edited((field,), MISSING, SCHEDULE), encoding="utf-8")
    assert read_ec_1(path).objective == 12


SCHEDULES_REFUSED: list[tuple[Place, object, str]] = [
    (("instance",), "sha256:0", "instance: is 'sha256:0', this instance is sha256:"),
    (("instance",), None, "instance: "),
    (("starts",), [0, 0, 0], "starts: has 3 entries for 4 requests"),
    (("starts",), [0, 0, 0, 2, 2], "starts: has 5 entries for 4 requests"),
    (("starts",), "0002", "starts: must be a list"),
    (("starts",), MISSING, "starts: is missing"),
    (("starts", 0), False, "request 'r0': starts: must be an integer, got False"),
    (("starts", 3), True, "request 'r3': starts: must be an integer, got True"),
    (("starts", 3), 2.0, "request 'r3': starts: must be an integer, got 2.0"),
    (("starts", 3), "2", "request 'r3': starts: must be an integer, got '2'"),
    (("starts", 3), None, "request 'r3': starts: must be an integer, got None"),
    (("schema",), "kvopt.instance/1", "schema: must be 'kvopt.schedule/1'"),
    (("schema",), MISSING, "schema: must be 'kvopt.schedule/1'"),
    (("bound",), 12, "bound: is not a known field"),
]


@pytest.mark.parametrize(
    ("place", "value", "says"), SCHEDULES_REFUSED, ids=[row[2][:50] for row in SCHEDULES_REFUSED]
)
def test_refused_schedules(place: Place, value: object, says: str, tmp_path: Path) -> None:
    content = edited(place, value, SCHEDULE)
    assert refusal(read_ec_1, tmp_path / "s.json", content).startswith(says)


@pytest.mark.parametrize("claim", [11, 13, 12.0, "12", None, True, -12])
def test_a_false_objective_is_a_false_claim(claim: object, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(edited(("objective",), claim, SCHEDULE), encoding="utf-8")
    with pytest.raises(FalseClaim) as caught:
        read_ec_1(path)
    assert str(caught.value) == f"{path}: objective: says {claim!r}, the starts give 12"


def test_a_false_hash_is_not_a_false_claim(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(edited(("instance",), "sha256:0", SCHEDULE), encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_ec_1(path)
    assert type(caught.value) is InvalidInput


def test_an_infeasible_schedule_can_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write_schedule(Schedule(EC_1, (0, 0, 0, 0)), path)
    assert not read_ec_1(path).check().feasible
