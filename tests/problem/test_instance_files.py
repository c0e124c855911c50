"""Instance files, JSON and CSV: what is refused and how, round trips, what CSV cannot hold."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from commands import written
from hypothesis import given
from refusals import MISSING, Place, edited, refusal
from strategies import instance_of, instances, labelled_instances

from kvopt import bound, certify, generate, run, solve
from kvopt.errors import InvalidInput, shown
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import read_instance, write_instance
from kvopt.problem.requests import Prediction, Request

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
        says = refusal(read_instance, tmp_path / "a.json", edited(place, value, DOCUMENT))
        assert says.startswith(named(place) + "must be "), shown(value)


# What is done to the document, and how the message begins.
REFUSED: list[tuple[Place, object, str]] = [
    (("budget",), 1, "budget: is not a known field"),
    (("a\nb",), 1, "a\\nb: is not a known field"),
    ((*LATE, "budget"), 1, "request 'late': budget: is not a known field"),
    ((*LATE, "predicted", "mid"), 1, "request 'late': predicted.mid: is not a known field"),
    (("requests", 0, "budget"), 1, "request 'r0': budget: is not a known field"),
    ((*LATE, "after"), 1, "request 'late': after: is not a known field; an order of requests left"),
    (("schema",), MISSING, "schema: must be 'kvopt.instance/1', got None"),
    (("schema",), "kvopt.instance/3", "schema: must be 'kvopt.instance/1', got 'kvopt.instance/3'"),
    (("memory",), MISSING, "memory: is missing"),
    (("requests",), MISSING, "requests: is missing"),
    (("requests",), None, "requests: must be a list"),
    (("requests", 0), [0, 3, 1], "request 'r0': request: must be an object"),
    (("requests", 0, "prompt"), 2.5, "request 'r0': prompt: must be an integer"),
    ((*LATE, "arrival"), MISSING, "request 'late': arrival: is missing"),
    ((*LATE, "predicted", "lower"), MISSING, "request 'late': predicted.lower: is missing"),
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
    ((*LATE, "id"), None, "request 'r1': id: must not be null"),
    (("name",), 3, "name: "),
    (("notes",), [1], "notes: "),
    (("notes",), None, "notes: must not be null"),
    (("round_ms",), 0, "round_ms: "),
    (("round_ms",), math.inf, "round_ms: "),
]


ONE = '{"schema": "kvopt.instance/1", "memory": 9, "requests": [%s]}'
TEXTS: dict[str, tuple[str | bytes, str]] = {
    **{says: (edited(place, value, DOCUMENT), says) for place, value, says in REFUSED},
    "a field under another name": (
        '{"schema": "kvopt.instance/1", "M": 5, "requests": []}',
        "M: is not a known field; did",
    ),
    "no memory": ('{"schema": "kvopt.instance/1", "requests": []}', "memory: is missing"),
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
        ONE % ('{"arrival": -' + "1" * 5000 + ', "prompt": 1, "output": 1}'),
        "request 'r0': arrival: must be an integer, got -inf",
    ),
    "memory twice": (ONE[:-1] % "" + ', "memory": 9}', "memory: is given twice"),
    "output twice": (
        ONE % '{"id": "x", "arrival": 0, "prompt": 1, "output": 1, "output": 2}',
        "request 'x': output: is given twice",
    ),
    "lower twice": (
        ONE % '{"arrival": 0, "prompt": 1, "output": 1, "predicted": {"lower": 1, "lower": 1}}',
        "request 'r0': predicted.lower: is given twice",
    ),
}


NESTED_IN = {
    "requests": ONE.replace("[%s]", "%s"),
    "request": ONE,
    "arrival": ONE % '{"arrival": %s, "prompt": 1, "output": 1}',
    "id": ONE % '{"id": %s, "arrival": 0, "prompt": 1, "output": 1}',
    "memory": ONE.replace("9", "%s").replace("[%s]", "[]"),
    "name": ONE[:-1] % "" + ', "name": %s}',
    "notes": ONE[:-1] % "" + ', "notes": %s}',
    "round": ONE[:-1] % "" + ', "round_ms": %s}',
}


@pytest.mark.slow
@pytest.mark.parametrize("around", ["[%s]", '{"a": %s}', '[{"a": %s}]'])
@pytest.mark.parametrize("content", NESTED_IN.values(), ids=NESTED_IN)
def test_no_nesting_is_too_deep_for_a_line(content: str, around: str, tmp_path: Path) -> None:
    # Where the parser gives up depends on how deep the program stands: try what is near.
    before, after = around.split("%s")
    limit = sys.getrecursionlimit() // sum(map(before.count, "[{"))
    for depth in range(limit - 80, limit + 1):
        nested = content.replace("%s", before * depth + "1" + after * depth)
        assert refusal(read_instance, tmp_path / "a.json", nested)


@pytest.mark.parametrize(("content", "says"), TEXTS.values(), ids=TEXTS)
def test_bad_files_are_refused(content: str | bytes, says: str, tmp_path: Path) -> None:
    assert refusal(read_instance, tmp_path / "a.json", content).startswith(says)


def test_another_memory_counts_and_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.json"
    write_instance(instance_of(6, [(0, 1, 4)]), path)
    with caplog.at_level("INFO", logger="kvopt"):
        assert read_instance(path, 6) == read_instance(path)
        assert caplog.messages == []
        assert read_instance(path, 7) == instance_of(7, [(0, 1, 4)])
        assert caplog.messages == [f"{path}: memory 7 instead of the file's 6"]
    with pytest.raises(InvalidInput, match=r"request 'r0': output: needs 5 tokens .* memory is 4"):
        read_instance(path, 4)


def test_what_does_not_fit_the_memory_of_its_file_may_fit_another(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", edited(("memory",), 1, DOCUMENT))
    with pytest.raises(InvalidInput, match="memory is 1"):
        read_instance(path)
    assert read_instance(path, 100).memory == 100


@pytest.mark.parametrize("memory", [True, 1.0, "1", 0, -1, 2**53])
def test_a_memory_option_is_an_integer_for_json_too(memory: Any, tmp_path: Path) -> None:
    content = ONE.replace("9", "1") % ""
    says = refusal(partial(read_instance, memory=memory), tmp_path / "a.json", content)
    assert says.startswith("memory: must be ")


@pytest.mark.parametrize("name", ["a\0b.json", "a\0b.csv", "\ud800.json"], ids=ascii)
def test_a_name_that_no_file_can_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: ") as caught:
        read_instance(tmp_path / name, 5)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["missing.json", "missing.csv", ".", "folder.json"])
def test_what_cannot_be_opened_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InvalidInput) as caught:
        read_instance(tmp_path / name, 5)
    assert str(caught.value).startswith(f"{tmp_path / name}: cannot be read: ")


ROWS = [Request(0, 3, 9), Request(1, 2, 7)]
PLAIN = Instance(22, ROWS)
LATER = {
    "block_size": Instance(22, ROWS, block_size=4),
    "workers": Instance(22, ROWS, workers=2),
    "priority": Instance(22, [ROWS[0], Request(1, 2, 7, priority=-7)]),
}
"""Instances with a field that the first schema has not."""


@pytest.mark.parametrize("field", LATER)
def test_what_is_new_has_a_schema_of_its_own(tmp_path: Path, field: str) -> None:
    instance, path = LATER[field], tmp_path / "a.json"
    write_instance(instance, path)
    assert json.loads(path.read_text())["schema"] == "kvopt.instance/2"
    assert read_instance(path) == instance != PLAIN
    assert instance.hash != PLAIN.hash
    path.write_text(path.read_text().replace("instance/2", "instance/1"))
    with pytest.raises(InvalidInput, match=f"{field}.*needs the schema kvopt"):
        read_instance(path)
    with pytest.raises(InvalidInput, match="CSV has no place"):
        write_instance(instance, tmp_path / "a.csv")


def test_options_count_where_a_file_has_no_place(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("arrival,prompt,output\n0,0,3\n")
    assert read_instance(tmp_path / "one.csv", 8, block_size=4).blocks == 2
    assert read_instance(tmp_path / "one.csv", 3, 2).workers == 2
    write_instance(LATER["block_size"], tmp_path / "a.json")
    assert read_instance(tmp_path / "a.json", block_size=1) == PLAIN
    write_instance(LATER["workers"], tmp_path / "a.json")
    assert read_instance(tmp_path / "a.json", workers=1) == PLAIN
    assert read_instance(tmp_path / "a.json", workers=1).hash == PLAIN.hash


@pytest.mark.parametrize("field", ["block_size", "workers"])
@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", 10**19])
def test_counts_are_integers_from_one(field: str, count: Any) -> None:
    with pytest.raises(InvalidInput, match=field):
        Instance(22, ROWS, **{field: count})


def test_document_is_read_in_full(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", "\ufeff" + json.dumps(DOCUMENT))
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


@pytest.mark.slow
@given(labelled_instances())
def test_json_keeps_an_instance(instance: Instance) -> None:
    again = rewritten(instance, "a.json")
    assert again == instance
    assert again.hash == instance.hash


@given(instances())
def test_csv_keeps_an_instance(instance: Instance) -> None:
    again = rewritten(instance, "a.csv", instance.memory)
    assert again == instance
    assert again.hash == instance.hash


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_many_requests_come_back(suffix: str, tmp_path: Path) -> None:
    instance = instance_of(50, [(i // 3, i % 7, 1 + i % 11) for i in range(20_000)])
    path = tmp_path / f"large.{suffix}"
    write_instance(instance, path)
    again = read_instance(path, 50)
    assert again == instance
    assert again.requests[-1] == Request(6_666, 0, 2, id="r19999")


@pytest.mark.parametrize("notes", ['{"x": NaN}', '{"x": 1e999}', '"\\ud800"'])
def test_what_can_be_read_can_be_written(notes: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", ONE[:-1] % "" + f', "notes": {notes}}}')
    try:
        instance = read_instance(path)
    except InvalidInput:
        return
    write_instance(instance, path)
    assert read_instance(path) == instance


# ---- instances as CSV: what is refused and how, and what CSV cannot hold ------------------------


HEADER = "arrival,prompt,output\n"
TOO_LONG = "request r0 (line 2): arrival: must be at most 2^53 - 1"
ODD_CELLS = (
    "1.5", "1.0", "+3", "1_000", "1e3", "٣", "３", "²", "0x1", "1 0", "--1", "true",  # noqa: RUF001
    "NaN", "inf", "null", '"""3"""', "'3'", "1\x00", "9" * 40,
)  # fmt: skip
CSV_REFUSED: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "header: "),
    "no header": ("0,1,1\n", "header: "),
    "column missing": ("arrival,prompt\n0,1\n", "header: "),
    "column unknown": ("arrival,prompt,output,id\n0,1,1,x\n", "header: "),
    "capitals": ("Arrival,Prompt,Output\n0,1,1\n", "header: "),
    "cell missing": (HEADER + "0,1,1\n0,1\n", "request r1 (line 3): output: is missing"),
    "cell missing, other order": (
        "output,arrival,prompt\n1,0,\n2,0\n",
        "request r0 (line 2): prompt: is missing",
    ),
    "row ends early": ("output,arrival,prompt\n2\n", "request r0 (line 2): arrival: is missing"),
    "cell too many": (
        HEADER + "0,1,1,7\n",
        "request r0 (line 2): has 4 cells, the header has 3: '7' has no field",
    ),
    "comma at the end": (HEADER + "0,1,1,\n", "request r0 (line 2): has 4 cells"),
    "semicolons": (HEADER + "0;1;1\n", "request r0 (line 2): prompt: is missing"),
    "empty cell": (HEADER + "0,,1\n", "request r0 (line 2): prompt: is missing"),
    "negative": (HEADER + "-1,1,1\n", "request r0 (line 2): arrival: must be at least 0, got -1"),
    "no output": (HEADER + "0,1,0\n", "request r0 (line 2): output: must be at least 1, got 0"),
    "2^53": (HEADER + f"{2**53},1,1\n", "request r0 (line 2): arrival: must be at most"),
    "30 digits": (HEADER + "9" * 30 + ",1,1\n", TOO_LONG),
    "400 digits": (HEADER + "9" * 400 + ",1,1\n", TOO_LONG + ", got an integer of 1329 bits"),
    "5000 digits": (HEADER + "9" * 5000 + ",1,1\n", TOO_LONG + ", got 5000 digits"),
    "400 digits below 0": (
        HEADER + "-" + "9" * 400 + ",1,1\n",
        "request r0 (line 2): arrival: must be at least 0",
    ),
    "5000 digits below 0": (
        HEADER + "-" + "9" * 5000 + ",1,1\n",
        "request r0 (line 2): arrival: must be at least 0, got 5000 digits",
    ),
    "too large": (HEADER + "0,1,1\n0,9,1\n", "request r1: output: needs 10 tokens"),
    "open quote": (HEADER + '0,"1,1\n', "is not CSV"),
    "text after a quote": (HEADER + '0,"1"2,1\n', "is not CSV"),
    "endless cell": (HEADER + "0," + "1" * 200_000 + ",1\n", "is not CSV"),
    "Latin-1": (HEADER.encode() + b"\xe9,1,1\n", "is not UTF-8 text"),
    **{
        cell: (f"{HEADER}0,{cell},1\n", "request r0 (line 2): prompt: must be ")
        for cell in ODD_CELLS
    },
}


def csv_refusal(path: Path, content: str | bytes) -> str:
    """Return the refusal of a CSV file; whether a row's label is quoted does not matter."""
    return re.sub(r"'(r\d)'", r"\1", refusal(partial(read_instance, memory=9), path, content))


@pytest.mark.parametrize(("content", "says"), CSV_REFUSED.values(), ids=map(ascii, CSV_REFUSED))
def test_bad_csv_is_refused(content: str | bytes, says: str, tmp_path: Path) -> None:
    assert csv_refusal(tmp_path / "a.csv", content).startswith(says)


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
def test_csv_of_other_programs_is_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.CSV"
    path.write_bytes(text.encode())
    assert read_instance(path, 6) == instance_of(6, [(3, 2, 1), (0, 1, 4)])


def test_csv_needs_a_memory(tmp_path: Path) -> None:
    assert refusal(read_instance, tmp_path / "a.csv", HEADER).startswith("memory: ")
    odd_memories: tuple[Any, ...] = (0, -1, True, 5.0, "5")
    for memory in odd_memories:
        says = refusal(partial(read_instance, memory=memory), tmp_path / "a.csv", HEADER)
        assert says.startswith("memory: must be ")


LOST_IN_CSV = {
    "id": Instance(5, [Request(0, 1, 1, id="x")]),
    "seconds": Instance(5, [Request(0, 1, 1, arrival_seconds=1.0)]),
    "prediction": Instance(5, [Request(0, 1, 1, predicted=Prediction(1, 2))]),
    "length of a round": Instance(5, [], round_ms=1.0),
}


@pytest.mark.parametrize("instance", LOST_IN_CSV.values(), ids=LOST_IN_CSV)
def test_csv_refuses_to_lose_what_it_cannot_hold(instance: Instance, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="CSV has no place"):
        write_instance(instance, tmp_path / "a.csv")
    assert os.listdir(tmp_path) == []


# ---- what takes an instance takes the name of its file as well ----------------------------------


FOUR = generate("arrival-1", n=4, seed=1)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_is_as_good_as_what_is_in_it(tmp_path: Path, kind: type) -> None:
    path = tmp_path / "i.json"
    write_instance(FOUR, path)
    assert solve(kind(path)).objective == solve(FOUR).objective
    assert bound(kind(path), "volume").value == bound(FOUR, "volume").value
    assert run(kind(path), "svf").starts == run(FOUR, "svf").starts
    assert certify(kind(path), ["svf"]).objective == certify(FOUR, ["svf"]).objective


def test_what_is_neither_is_refused_and_a_missing_file_is_named(tmp_path: Path) -> None:
    for wrong in (None, 3, {"memory": 7}):
        with pytest.raises(InvalidInput, match=r"instance: must be an Instance or the name of a"):
            solve(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"none\.json"):
        run(tmp_path / "none.json", "svf")
