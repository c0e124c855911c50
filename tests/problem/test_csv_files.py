"""Instances as CSV: what is refused and how, and what CSV cannot hold."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from refusals import refusal
from strategies import instance_of

from kvopt.errors import InvalidInput
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import read_instance, write_instance
from kvopt.problem.requests import Prediction, Request

HEADER = "arrival,prompt,output\n"
TOO_LONG = "request r0 (line 2): arrival: must be at most 2^53 - 1"
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
