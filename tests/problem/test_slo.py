"""Deadlines: what they are written as, and how long requests may take then."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvopt import Instance, InvalidInput, Request, read_instance, write_instance
from kvopt.problem.slo import Aim, Slo, attained

PAIR = Instance(9, [Request(0, 1, 2, slo=4), Request(1, 1, 2, slo=7)], round_ms=30)


@pytest.mark.parametrize(
    ("given", "rounds", "seconds"),
    [
        ("5", [5, 5], [150_000_000] * 2),
        (5, [5, 5], [150_000_000] * 2),
        ("0.1s", [3, 3], [100_000_000] * 2),
        ("own", [4, 7], [120_000_000, 210_000_000]),
        ("first-token:0.01s", [0, 0], [10_000_000] * 2),
    ],
)
def test_lengths_on_both_clocks(given: object, rounds: list[int], seconds: list[int]) -> None:
    deadline = Slo.parse(given)
    assert deadline.allowed(PAIR, rounds=True) == rounds
    assert deadline.allowed(PAIR, rounds=False) == seconds
    assert str(deadline) == str(given)
    assert Slo.parse(deadline) is deadline
    assert (deadline.aim is Aim.FIRST_TOKEN) == str(given).startswith("first")


@pytest.mark.parametrize("given", ["", "0", "0s", "-3", "1.5", "5 s", "soon", True, 2.0, "9" * 17])
def test_what_is_no_deadline(given: object) -> None:
    with pytest.raises(InvalidInput, match=r"^deadline: "):
        Slo.parse(given)


def test_what_is_missing_is_named() -> None:
    plain = Instance(9, [Request(0, 1, 2, slo=3), Request(0, 1, 2)])
    with pytest.raises(InvalidInput, match="request 'r1': deadline: is missing"):
        Slo.parse("own").allowed(plain, rounds=True)
    for given, rounds in (("3", False), ("3s", True)):
        with pytest.raises(InvalidInput, match="round_ms"):
            Slo.parse(given).allowed(plain, rounds=rounds)


def test_what_never_came_does_not_attain() -> None:
    assert attained([3, None, 9], [0, 0, 4], [3, 5, 4]) == 1


@pytest.mark.parametrize("name", ["i.json", "i.csv"])
def test_files_keep_deadlines(name: str, tmp_path: Path) -> None:
    some = Instance(9, [Request(0, 1, 2, slo=4), Request(1, 1, 2)])
    write_instance(some, tmp_path / name)
    assert read_instance(tmp_path / name, 9) == some
    assert read_instance(tmp_path / name, 9).hash == some.hash
    assert some.schema == "kvopt.instance/2"
    assert some.hash != Instance(9, [Request(0, 1, 2), Request(1, 1, 2)]).hash


@pytest.mark.parametrize("cell", ["0", "x", "1.5"])
def test_a_wrong_cell_is_named(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "i.csv"
    path.write_text(f"arrival,prompt,output,deadline\n0,1,2,{cell}\n")
    with pytest.raises(InvalidInput, match=r"request 'r0' \(line 2\)|r0 \(line 2\): deadline"):
        read_instance(path, 9)
