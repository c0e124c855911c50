"""Schedule files: round trips, what is refused, and claims that are false."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import written
from refusals import MISSING, Place, edited, refusal
from strategies import instance_of, random_instances, random_starts

from kvopt.errors import FalseClaim, InvalidInput
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.schedule_files import read_schedule, write_schedule

EC_1 = instance_of(7, [(0, 1, output) for output in (1, 2, 3, 4)])
SCHEDULE = {
    "schema": "kvopt.schedule/1",
    "instance": EC_1.hash,
    "starts": [0, 0, 0, 2],
    "objective": 12,
}


INSTANCE = instance_of(10, [(0, 0, 10), (6, 5, 1)])
PAUSED = {
    "schema": "kvopt.schedule/2",
    "instance": INSTANCE.hash,
    "objective": 12,
    "segments": [[[1, 6], [8, 11]], [[7, 7]]],
}


def read_ec_1(path: Path) -> Schedule:
    return read_schedule(path, EC_1)


def read(path: Path) -> Schedule:
    return read_schedule(path, INSTANCE)


@pytest.mark.parametrize(
    ("schedule", "content"),
    [
        (Schedule(EC_1, (0, 0, 0, 2)), SCHEDULE),
        (Schedule(INSTANCE, segments=[[(1, 6), (8, 11)], [(7, 7)]]), PAUSED),
    ],
)
def test_a_file_keeps_a_schedule(schedule: Schedule, content: object, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write_schedule(schedule, path)
    assert json.loads(path.read_text(encoding="utf-8")) == content
    assert read_schedule(path, schedule.instance) == schedule


def test_any_schedule_survives_a_round_trip(tmp_path: Path) -> None:
    for instance in random_instances(100, seed=31):
        schedule = Schedule(instance, random_starts(instance, random.Random(31), early=1))
        write_schedule(schedule, tmp_path / "s.json")
        assert read_schedule(tmp_path / "s.json", instance) == schedule


@pytest.mark.parametrize("field", ["instance", "objective"])
def test_schedule_claims_are_optional(field: str, tmp_path: Path) -> None:
    path = written(tmp_path / "s.json", edited((field,), MISSING, SCHEDULE))
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


PAUSED_REFUSED: list[tuple[Place, object, str]] = [
    (("instance",), "sha256:0", "instance: is 'sha256:0', this instance is sha256:"),
    (("segments",), MISSING, "segments: is missing"),
    (("segments",), {}, "segments: must be a list"),
    (("segments",), [[[1, 10]]], "segments: has 1 entries for 2 requests"),
    (("segments", 0), "abc", "request 'r0': segments: must be a list of pairs, got 'abc'"),
    (("segments", 0, 1), [6, 9], "request 'r0': segments: must ascend, got [6, 9] after time 6"),
    (("segments", 1), [[7, None]], "request 'r1': segments: must hold integers, got None"),
    (("starts",), [0, 7], "starts: says [0, 7], the segments give [0, 6]"),
    (("bound",), 12, "bound: is not a known field"),
    (("schema",), "kvopt.schedule/3", "schema: must be 'kvopt.schedule/2'"),
]
REFUSED = [
    *(
        (read_ec_1, edited(place, value, SCHEDULE), says)
        for place, value, says in SCHEDULES_REFUSED
    ),
    *((read, edited(place, value, PAUSED), says) for place, value, says in PAUSED_REFUSED),
]


@pytest.mark.parametrize("claim", [11, 13, 12.0, "12", None, True, -12])
def test_a_false_objective_is_a_false_claim(claim: object, tmp_path: Path) -> None:
    path = written(tmp_path / "s.json", edited(("objective",), claim, SCHEDULE))
    with pytest.raises(FalseClaim) as caught:
        read_ec_1(path)
    assert str(caught.value) == f"{path}: objective: says {claim!r}, the starts give 12"


def test_a_false_hash_is_not_a_false_claim(tmp_path: Path) -> None:
    path = written(tmp_path / "s.json", edited(("instance",), "sha256:0", SCHEDULE))
    with pytest.raises(InvalidInput) as caught:
        read_ec_1(path)
    assert type(caught.value) is InvalidInput


def test_an_infeasible_schedule_can_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write_schedule(Schedule(EC_1, (0, 0, 0, 0)), path)
    assert not read_ec_1(path).check().feasible


# ---- files of schedules with pauses


def test_true_starts_may_stand_beside_segments(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(edited(("starts",), [0, 6], PAUSED))
    assert read(tmp_path / "s.json").begins == (0, 6)


def test_without_pauses_it_is_the_file_of_before(tmp_path: Path) -> None:
    for instance in random_instances(20, seed=8):
        schedule = Schedule(instance, random_starts(instance, random.Random(8)))
        write_schedule(schedule, tmp_path / "old.json")
        write_schedule(Schedule(instance, segments=schedule.spans), tmp_path / "new.json")
        assert (tmp_path / "new.json").read_bytes() == (tmp_path / "old.json").read_bytes()
        assert read_schedule(tmp_path / "old.json", instance) == schedule
        assert read_schedule(tmp_path / "new.json", instance) == schedule


@pytest.mark.parametrize(("read", "content", "says"), REFUSED, ids=[row[2] for row in REFUSED])
def test_bad_files_are_refused(
    read: Callable[[Path], Schedule], content: str, says: str, tmp_path: Path
) -> None:
    assert refusal(read, tmp_path / "s.json", content).startswith(says)


def test_a_false_objective_with_pauses_is_a_false_claim(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(edited(("objective",), 11, PAUSED))
    with pytest.raises(FalseClaim, match="says 11, the segments give 12"):
        read(tmp_path / "s.json")
