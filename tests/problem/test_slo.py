"""Service levels: how they are written, and how long requests may take then."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from kvopt import Instance, InvalidInput, Request, Slo, read_instance, write_instance
from kvopt.problem.slo import Levels, allowed_misses

OWN = [Request(0, 1, 3, ttft=2, e2e=4), Request(1, 1, 2, tpot=7)]
PAIR = Instance(9, OWN, round_ms=30)


@pytest.mark.parametrize(
    ("given", "rounds", "seconds"),
    [
        ("e2e=5", ([inf] * 2, [inf] * 2, [5] * 2), ([inf] * 2, [inf] * 2, [150_000_000] * 2)),
        ("ttft=100ms", ([3] * 2, [inf] * 2, [inf] * 2), ([10**8] * 2, [inf] * 2, [inf] * 2)),
        (
            "ttft=10ms,tpot=50ms",
            ([0] * 2, [3, 1], [inf] * 2),
            ([10**7] * 2, [10**8, 5 * 10**7], [inf] * 2),
        ),
        ("own", ([2, inf], [inf, 7], [4, inf]),
         ([6 * 10**7, inf], [inf, 21 * 10**7], [12 * 10**7, inf])),
    ],
)  # fmt: skip
def test_limits_count_on_both_clocks(given: str, rounds: object, seconds: object) -> None:
    slo = Slo.parse(given)
    assert slo.levels(PAIR, rounds=True) == rounds
    assert slo.levels(PAIR, rounds=False) == seconds
    assert str(slo) == given
    assert Slo.parse(slo) is slo


def test_lengths_have_one_spelling() -> None:
    assert Slo(ttft="0.05s", e2e="1500ms") == Slo(ttft="50ms", e2e="1.5s")
    assert str(Slo(ttft="0.0000015s", tpot="3", e2e=9)) == "ttft=1500ns,tpot=3,e2e=9"


@pytest.mark.parametrize(
    "given",
    ["", "5", "30s", "e2e", "e2e=0", "e2e=0s", "ttft=-3", "tpot=1.5", "e2e=5 s", "e2e=soon", 5,
     "e2e=5,e2e=6", "first-token:2s", True, "deadline=4", "e2e=" + "9" * 17, None],
)  # fmt: skip
def test_what_is_no_service_level_is_refused(given: object) -> None:
    with pytest.raises(InvalidInput, match=r"^(slo|ttft|tpot|e2e): "):
        Slo.parse(given)


def test_what_is_missing_is_named() -> None:
    plain = Instance(9, [Request(0, 1, 2, e2e=3), Request(0, 1, 2)])
    with pytest.raises(InvalidInput, match="request 'r1': e2e: is missing"):
        Slo(e2e="own").levels(plain, rounds=True)
    for given, rounds in (("e2e=3", False), ("e2e=3s", True)):
        with pytest.raises(InvalidInput, match="round_ms"):
            Slo.parse(given).levels(plain, rounds=rounds)


def test_each_limit_counts_and_what_never_came_does_not_attain() -> None:
    levels = Levels([2] * 6, [3] * 6, [4] * 6)
    firsts = (2, 3, 1, 2, None, 2)
    ends = (4, 4, 5, 5, None, None)
    assert [levels._replace(total=[9] * 6).attained([0] * 6, firsts, ends)] == [2]
    assert levels.attained([0] * 6, firsts, ends) == 1


@pytest.mark.parametrize("attain", ["101%", "-1", "few", "11", 1.5, ""])
def test_shares_that_are_none_are_refused(attain: object) -> None:
    with pytest.raises(InvalidInput, match="--attain: must be a share such as 99%"):
        allowed_misses(attain, 10)


@pytest.mark.parametrize("name", ["i.json", "i.csv"])
def test_files_keep_limits(name: str, tmp_path: Path) -> None:
    some = Instance(9, [Request(0, 1, 2, e2e=4, ttft=2), Request(1, 1, 2)])
    write_instance(some, tmp_path / name)
    assert read_instance(tmp_path / name, 9) == some
    assert read_instance(tmp_path / name, 9).hash == some.hash
    assert some.schema == "kvopt.instance/2"
    assert some.hash != Instance(9, [Request(0, 1, 2), Request(1, 1, 2)]).hash


def test_a_file_of_before_is_read_with_its_hash(tmp_path: Path) -> None:
    rows = '{"arrival": 0, "prompt": 1, "output": 2, "%s": 4}'
    text = '{"schema": "kvopt.instance/2", "memory": 9, "requests": [' + rows + "]}"
    for name in ("e2e", "deadline"):
        (tmp_path / f"{name}.json").write_text(text % name)
    old, new = (read_instance(tmp_path / f"{name}.json") for name in ("deadline", "e2e"))
    assert old == new
    assert old.hash == "sha256:578d1eecfb65607d5268873ee816f9786020af7332a936268a4010d861d8b159"
    (tmp_path / "both.json").write_text(text.replace('"%s": 4', '"deadline": 4, "e2e": 4'))
    with pytest.raises(InvalidInput, match="deadline: is the old name of e2e"):
        read_instance(tmp_path / "both.json")


@pytest.mark.parametrize("cell", ["0", "x", "1.5"])
def test_a_wrong_cell_is_named(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "i.csv"
    path.write_text(f"arrival,prompt,output,tpot\n0,1,2,{cell}\n")
    with pytest.raises(InvalidInput, match=r"request 'r0' \(line 2\)|r0 \(line 2\): tpot"):
        read_instance(path, 9)
