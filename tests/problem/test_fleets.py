"""Instances of several workers, and their schedules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvopt import Instance, InvalidInput, Request, Schedule, read_schedule, write_schedule

TWO = Instance(3, [Request(0, 0, 3), Request(0, 0, 3), Request(0, 1, 2)], workers=2)


def test_one_worker_is_what_it_always_was() -> None:
    alone = Instance(3, TWO.requests, workers=1)
    assert alone == Instance(3, TWO.requests)
    assert alone.hash == Instance(3, TWO.requests).hash
    assert Schedule(alone, (0, 3, 6)).workers == (0, 0, 0)


def test_every_worker_has_a_cache_of_its_own() -> None:
    check = Schedule(TWO, (0, 0, 3), (0, 1, 0)).check()
    assert (check.feasible, check.objective, check.peak_memory) == (True, 11, 3)
    check = Schedule(TWO, (0, 0, 0), (0, 1, 1)).check()
    assert (
        check.violations
        == (
            "worker 1, time 2: 5 tokens held, memory is 3",
            "worker 1, time 3: 3 tokens held, memory is 3",
        )[:1]
    )
    assert check.peak_memory == 5


@pytest.mark.parametrize(
    ("workers", "says"),
    [
        ((0, 1), "has 2 entries for 3 requests"),
        ((0, 1, 2), "must be in 0 .. 1, got 2"),
        ((0, -1, 0), "must be in 0 .. 1, got -1"),
        ((0, 1.0, 0), "must be an integer"),
        (None, "the instance has 2 workers"),
    ],
)
def test_workers_that_are_not_there_are_refused(workers: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Schedule(TWO, (0, 0, 3), workers)


def test_a_schedule_file_names_the_workers(tmp_path: Path) -> None:
    file, schedule = tmp_path / "s.json", Schedule(TWO, (0, 0, 3), (0, 1, 0))
    write_schedule(schedule, file)
    said = json.loads(file.read_text())
    assert (said["schema"], said["workers"]) == ("kvopt.schedule/2", [0, 1, 0])
    assert read_schedule(file, TWO) == schedule
    said["workers"] = [0, 2, 0]
    file.write_text(json.dumps(said))
    with pytest.raises(InvalidInput, match=r"workers: must be in 0 \.\. 1, got 2"):
        read_schedule(file, TWO)


def test_a_pooled_cache_is_as_large_as_all() -> None:
    assert (TWO.pooled().memory, TWO.pooled().workers) == (6, 1)
    assert TWO.of_one_worker([2, 0]).requests == (TWO.requests[2], TWO.requests[0])


def test_a_table_names_the_workers() -> None:
    pytest.importorskip("pandas")
    assert list(Schedule(TWO, (0, 0, 3), (0, 1, 0)).to_dataframe()["worker"]) == [0, 1, 0]
