"""Every combination of axes through every door: no bound passes the optimum, no schedule beats it.

Brute force knows the optimum, and how many requests can attain a service level; every certificate
is verified.  See `combinations` for the axes and the doors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from combinations import SETS, Answer, case, doors_of, wrong
from commands import Run
from effort import many

from kvopt import verify, write_instance
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import write_batch_time

pytestmark = pytest.mark.usefixtures("processor_clock")
PARTS = 13
"""Tests over which the combinations are spread."""
NOT_IN_PROGRAMS = {"seconds", "blocks", "pauses"}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_door_answers_every_combination(part: int) -> None:
    faults, optima, open_ones, asked = [], 0, 0, 0
    for axes in SETS[part::PARTS]:
        for seed in range(many(2)):
            drawn = case(axes, seed)
            for door, ask in doors_of(drawn.problem):
                answer = ask(drawn.problem)
                optima += door == "solve" and answer.upper == drawn.least
                if door == "solvers" and NOT_IN_PROGRAMS.isdisjoint(axes):
                    open_ones += not answer.lower == answer.upper == drawn.least
                faults += [(axes, seed, door, fault) for fault in wrong(drawn, door, answer)]
            asked += 1
    assert not faults
    assert open_ones <= 1, "programs know these axes"
    assert optima > 0.6 * asked, "schedules are seldom optimal"


@pytest.mark.slow
@pytest.mark.parametrize("axes", [axes for axes in SETS if len(axes) < 2], ids="+".join)
def test_commands_answer_as_python_does(run: Run, tmp_path: Path, axes: tuple[str, ...]) -> None:
    drawn, file = case(axes, 5), tmp_path / "i.json"
    problem, unit = drawn.problem, ""
    options: list[object] = ["--scope", problem.scope, "-t", "1"]
    write_instance(problem.instance, file)
    if isinstance(problem.clock, Seconds):
        write_batch_time(problem.clock.batch_time, tmp_path / "m.json")
        options += ["--seconds", "--batch-time", tmp_path / "m.json"]
        unit = "_ns"
    due = [] if problem.slo is None else ["--slo", problem.slo]

    def said(command: str, *more: object) -> Any:
        return run.json(command, file, *options, *more)

    solved = said("solve", *due)
    made = said("certify", "-P", "svf", "-o", tmp_path / "c.json", *due)
    assert verify(tmp_path / "c.json").valid
    answers = [
        Answer(solved[f"lower_bound{unit}"], solved[f"objective{unit}"]),
        Answer(made[f"lower{unit}"], made[f"upper{unit}"]),
    ]
    if not unit:
        answers.append(Answer(said("bound")["value"], answers[0].upper))
    assert not [fault for each in answers for fault in wrong(drawn, "solve", each)]
    assert answers[0].upper == drawn.least
