"""Files of schedules with pauses: round trips, and what is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from refusals import MISSING, Place, edited, refusal
from strategies import instance_of, random_instances, random_starts

from kvopt.errors import FalseClaim
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.schedule_files import read_schedule, write_schedule

INSTANCE = instance_of(10, [(0, 0, 10), (6, 5, 1)])
SCHEDULE = {
    "schema": "kvopt.schedule/2",
    "instance": INSTANCE.hash,
    "objective": 12,
    "segments": [[[1, 6], [8, 11]], [[7, 7]]],
}


def read(path: Path) -> Schedule:
    return read_schedule(path, INSTANCE)


def test_round_trip(tmp_path: Path) -> None:
    schedule = Schedule(INSTANCE, segments=[[(1, 6), (8, 11)], [(7, 7)]])
    write_schedule(schedule, tmp_path / "s.json")
    assert json.loads((tmp_path / "s.json").read_text()) == SCHEDULE
    assert read(tmp_path / "s.json") == schedule


def test_true_starts_may_stand_beside_segments(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(edited(("starts",), [0, 6], SCHEDULE))
    assert read(tmp_path / "s.json").begins == (0, 6)


def test_without_pauses_it_is_the_file_of_before(tmp_path: Path) -> None:
    for instance in random_instances(20, seed=8):
        schedule = Schedule(instance, random_starts(instance, random.Random(8)))
        write_schedule(schedule, tmp_path / "old.json")
        write_schedule(Schedule(instance, segments=schedule.spans), tmp_path / "new.json")
        assert (tmp_path / "new.json").read_bytes() == (tmp_path / "old.json").read_bytes()
        assert read_schedule(tmp_path / "old.json", instance) == schedule
        assert read_schedule(tmp_path / "new.json", instance) == schedule


REFUSED: list[tuple[Place, object, str]] = [
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


@pytest.mark.parametrize(("place", "value", "says"), REFUSED, ids=[row[2][:50] for row in REFUSED])
def test_refused(place: Place, value: object, says: str, tmp_path: Path) -> None:
    assert refusal(read, tmp_path / "s.json", edited(place, value, SCHEDULE)).startswith(says)


def test_a_false_objective_is_a_false_claim(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(edited(("objective",), 11, SCHEDULE))
    with pytest.raises(FalseClaim, match="says 11, the segments give 12"):
        read(tmp_path / "s.json")
