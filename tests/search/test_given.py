"""What Python callers give: whatever is clear is taken, else one line names the field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known import known

import kvopt
from kvopt import BatchTime, Instance, InvalidInput, Line, Request, Schedule
from kvopt.problem.clocks import Seconds

EC1 = Instance(7, [Request(0, 1, o) for o in (1, 2, 3, 4)])
PAIR = Instance(10, [Request(0, 0, 10), Request(6, 5, 1)])
FLEET = Instance(9, [Request(0, 1, 3)] * 5, workers=2)
CLOCK = Seconds(BatchTime([Line(40_000_000, 0)]))

FORMS: dict[str, Callable[[Path], Any]] = {
    "schedule": lambda _: Schedule(EC1, (0, 0, 0, 3)),
    "paused schedule": lambda _: Schedule(EC1, segments=[[(1, 1)], [(1, 2)], [(1, 3)], [(4, 7)]]),
    "starts": lambda _: [0, 0, 0, 3],
    "numpy": lambda _: np.array([0, 0, 0, 3]),
    "name": lambda _: "mc-sf",
    "name with keys": lambda _: "mc-sf:alpha=0.1",
    "policy": lambda _: kvopt.policy("svf"),
    "run": lambda _: kvopt.run(EC1, "fcfs"),
    "server": lambda _: kvopt.run(EC1, "vllm-fcfs:block=1"),
    "result": lambda _: kvopt.solve(EC1),
    "paused result": lambda _: kvopt.solve(EC1, scope="pauses"),
    "certificate": lambda _: kvopt.certify(EC1, ["svf"]),
    "file": lambda folder: _written(folder / "schedule.json"),
}


def _written(path: Path) -> Path:
    kvopt.write_schedule(Schedule(EC1, (0, 0, 0, 3)), path)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_whatever_holds_a_schedule_is_a_start(form: str, tmp_path: Path) -> None:
    start = FORMS[form](tmp_path)
    made = kvopt.solve(EC1, start=start, quick_start=False, time_limit=0)
    assert made.found_by == "given schedule"
    assert known(made.objective) == kvopt.certify(EC1, schedule=start).runs[0].objective


def test_a_run_on_a_fleet_is_a_start() -> None:
    start = kvopt.run(FLEET, "svf", router="round-robin")
    for given in (start, "svf"):
        made = kvopt.solve(FLEET, start=given, quick_start=False, time_limit=0)
        assert made.found_by == "given schedule"


def test_a_schedule_with_pauses_is_a_start_where_they_are_allowed() -> None:
    paused = kvopt.solve(PAIR, scope="pauses")
    again = kvopt.solve(PAIR, scope="pauses", start=paused, quick_start=False, time_limit=0)
    assert again.objective == 12
    with pytest.raises(InvalidInput, match=r"^start: has pauses, which the scope runs leaves out$"):
        kvopt.solve(PAIR, start=paused)


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (3, "start: must hold a schedule in rounds, be one, starts or a policy, got 3"),
        ([0, 0], "starts: has 2 entries for 4 requests"),
        ([0, 0, 0, 0.5], "request 'r3': starts: must be an integer, got 0.5"),
        ([0, 0, 0, 0], "start: time 1: 8 tokens held, memory is 7"),
        ("nothing", "policy: must be one of fcfs, "),
        (kvopt.run(EC1, "svf", clock=CLOCK), "start: must hold a schedule in rounds, be one"),
        (kvopt.run(PAIR, "svf"), "start: is for another instance"),
        (kvopt.run(Instance(4, [Request(0, 3, 1)]), "alpha-protect:alpha=0.5"), "start: must hold"),
        (lambda: kvopt.solve(EC1, clock=CLOCK, time_limit=0.1), "start: must hold a schedule in"),
        (kvopt.compare(EC1, ["svf"]), "starts: has 1 entries for 4 requests"),
    ],
)
def test_what_is_no_start_is_one_line(start: Any, said: str) -> None:
    start = start() if callable(start) else start
    for call in (kvopt.solve, kvopt.certify):
        field = "start" if call is kvopt.solve else "schedule"
        with pytest.raises(InvalidInput) as raised:
            call(EC1, **{field: start})
        text = said.replace("start:", f"{field}:")
        assert str(raised.value).startswith(text)
        assert "\n" not in str(raised.value)


def test_a_run_on_another_instance_is_no_start_in_seconds() -> None:
    other = kvopt.run(EC1, "svf", clock=CLOCK)
    with pytest.raises(InvalidInput, match=r"^start: is for another instance$"):
        kvopt.solve(EC1.replace(memory=EC1.memory + 1), clock=CLOCK, start=other)


DOORS: dict[str, Callable[..., Any]] = {
    "solve": kvopt.solve,
    "solve with pauses": lambda *a, **k: kvopt.solve(*a, scope="pauses", **k),
    "bound": kvopt.bound,
    "certify": kvopt.certify,
    "solve in seconds": lambda instance, **k: kvopt.solve(instance, clock=CLOCK, **k),
}
REFUSED: list[tuple[str, object, str]] = [
    ("time_limit", "10", "time limit: must be a number of seconds, not negative, got '10'"),
    ("time_limit", -1, "time limit: must be a number of seconds, not negative, got -1"),
    ("time_limit", float("nan"), "time limit: must be a number of seconds, not negative, got nan"),
    ("threads", "2", "threads: must be an integer, got '2'"),
    ("threads", 0, "threads: must be at least 1, got 0"),
    ("seed", 1.5, "seed: must be an integer, got 1.5"),
    ("observer", 3, "observer: must be a function of a Progress, got 3"),
    ("ram", "much", "ram: must be a size such as 4G or 512M, got 'much'"),
    ("ram", -4, "ram: must be a size such as 4G or 512M, got -4"),
    ("params", {"exact": {"wdth": 3}}, "exact.wdth: "),
    ("params", {"exact": {"width": 3}}, "exact.width: is a constant now"),
    ("params", "fast", "must be a table, got 'fast'"),
    ("stop", 0.1, "stop: must be a function of a Progress, got 0.1; for a gap write gap=0.05"),
    ("gap", "5%", "gap: must be a number, got '5%'"),
    ("gap", -0.1, "gap: must be finite and not negative, got -0.1"),
    ("clock", "hours", "clock: must be kvopt.Seconds(model), got"),
]
LACKS = {
    "bound": ("stop", "gap", "clock"),
    "certify": ("stop", "gap"),
    "solve in seconds": ("clock",),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("field", "value", "said"), REFUSED)
def test_arguments_that_cannot_be_meant_are_one_line(
    door: str, field: str, value: object, said: str
) -> None:
    if field in LACKS.get(door, ()):
        return
    with pytest.raises(InvalidInput) as raised:
        DOORS[door](EC1, **{field: value})
    assert str(raised.value).startswith(said)


def test_clocks_that_are_none_are_one_line() -> None:
    with pytest.raises(InvalidInput, match=r"^clock: must be kvopt.Seconds\(model\), got 3"):
        kvopt.run(EC1, "svf", clock=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"^clock: must be kvopt.Seconds\(model\), got 3"):
        kvopt.compare(EC1, ["svf"], clock=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"^clock: must be kvopt.Seconds\(model\), got 3"):
        kvopt.solve(EC1, clock=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r'^batch_time: goes with clock="seconds"'):
        kvopt.solve(EC1, batch_time="llama-2-70b-2xa100")


def test_tables_and_sizes_are_taken() -> None:
    for door in ("solve", "bound", "certify"):
        DOORS[door](EC1, params={"exact": {"searchable": 50}}, ram="4G", time_limit=np.float64(5))


@pytest.mark.parametrize("door", ["solve", "solve with pauses", "solve in seconds"])
def test_a_gap_that_is_enough_ends_a_search(door: str) -> None:
    instance = kvopt.generate("arrival-1", n=20, seed=1)
    found = DOORS[door](instance, gap=0.9)
    assert str(found.stop_reason) in ("gap", "proved")
    assert known(found.gap) <= 0.9


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n": -3}, "n: must be at least 0, got -3"),
        ({"n": "3"}, "n: must be an integer, got '3'"),
        ({"memory": 0}, "memory: must be at least 1, got 0"),
        ({"seed": None}, "seed: must be an integer, got None"),
        ({"parameters": {"nothing": 1}}, "nothing: is not a key of arrival-1"),
    ],
)
def test_a_wrong_draw_is_named_without_options_of_the_command_line(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        kvopt.generate("arrival-1", **given)
    assert str(raised.value).startswith(said)
