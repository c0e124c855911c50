"""Solutions of the exported model, as HiGHS, SCIP and Gurobi write them.

The files in ``solutions/`` are of ``models/example-ec.1.json``, exported as LP and solved by
HiGHS 1.13.1, SCIP 10 (PySCIPOpt 6.3.0) and Gurobi 13.0.3; ``infeasible`` with a memory of 4.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import Run, written
from refusals import refusal
from strategies import drawn_fleet, instance_of, optimum_of, random_instances

from kvopt.errors import FalseClaim
from kvopt.formulations.export import export
from kvopt.kernels.solver_versions import load_highspy
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.schedule_files import read_schedule, request_labels

FOLDER = Path(__file__).parent / "solutions"
EC_1 = instance_of(7, [(0, 1, output) for output in (1, 2, 3, 4)])
GUROBI = (FOLDER / "gurobi.sol").read_text()
HIGHS = (FOLDER / "highs.sol").read_text()
SCIP = (FOLDER / "scip.sol").read_text()


def read_ec_1(path: Path) -> Schedule:
    return read_schedule(path, EC_1)


@pytest.mark.parametrize("name", ["highs", "highs-sparse", "scip", "gurobi"])
def test_what_a_solver_wrote_is_the_schedule_that_it_found(name: str) -> None:
    assert read_ec_1(FOLDER / f"{name}.sol") == Schedule(EC_1, (0, 0, 0, 2))


@pytest.mark.parametrize("status", ["optimal solution found", "time limit reached"])
def test_the_shell_of_scip_says_a_status_first(status: str, tmp_path: Path) -> None:
    path = written(tmp_path / "s.sol", f"solution status: {status}\n{SCIP}")
    assert read_ec_1(path).starts == (0, 0, 0, 2)


def test_values_near_integers_are_rounded(tmp_path: Path) -> None:
    path = tmp_path / "s.sol"
    near = GUROBI.replace("x_r3_2 1\n", "x_r3_2 0.99999\n").replace("x_r3_3 0\n", "x_r3_3 1e-05\n")
    path.write_text(near.replace("x_r1_1 0\n", "x_r1_1 -1e-9\n"))
    assert read_ec_1(path).starts == (0, 0, 0, 2)


REFUSED = {
    "two starts": (
        GUROBI.replace("x_r1_4 0", "x_r1_4 1"),
        "request 'r1': starts twice: x_r1_0 and x_r1_4 are 1",
    ),
    "no start": (
        SCIP.replace("x_r2_0 ", "# x_r2_0 "),
        "request 'r2': has no start: no column of it is 1",
    ),
    "another instance": (
        SCIP.replace("x_r3_2 ", "x_r9_2 "),
        "line 5: 'x_r9_2' is no column of this instance, as kvopt export names them",
    ),
    "another model": (
        GUROBI.replace("x_r3_2 ", "y_r3_2 "),
        "line 32: 'y_r3_2' is no column of this instance",
    ),
    "no number": (GUROBI.replace("x_r3_2 1", "x_r3_2 one"), "line 32: x_r3_2 is 'one', neither"),
    "not a number": (GUROBI.replace("x_r3_2 1", "x_r3_2 nan"), "line 32: x_r3_2 is 'nan', neither"),
    "no value": (GUROBI.replace("x_r3_2 1", "x_r3_2"), "line 32: must be a column and its value"),
    "half": (
        GUROBI.replace("x_r3_2 1", "x_r3_2 0.5"),
        "line 32: x_r3_2 is '0.5', neither 0 nor 1: a relaxed model gives no schedule",
    ),
    "cut off": (HIGHS.partition("x_r2_5")[0], "breaks off before its last column"),
    "no columns": (HIGHS.partition("# Columns")[0], "breaks off before its last column"),
    "status alone": ("Model status\n", "holds no schedule: HiGHS says 'nothing', solution None"),
    "a model": ("minimize\n obj: x\n", "is neither JSON nor a solution of HiGHS (in its raw style"),
    **{
        name: ((FOLDER / f"{name}.sol").read_text(), says)
        for name, says in (
            ("highs-infeasible", "holds no schedule: HiGHS says 'Infeasible', solution None"),
            ("scip-infeasible", "holds no schedule: the solver found none"),
            ("highs-relaxed", "line 27: x_r2_0 is '0.3333333333333', neither 0 nor 1: a relaxed"),
            ("highs-pretty", "is neither JSON nor a solution of HiGHS (in its raw style)"),
        )
    },
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_schedule_is_refused(kind: str, tmp_path: Path) -> None:
    content, says = REFUSED[kind]
    assert refusal(read_ec_1, tmp_path / "s.sol", content).startswith(says)


@pytest.mark.parametrize("text", [GUROBI, SCIP, HIGHS], ids=["gurobi", "scip", "highs"])
def test_another_objective_is_a_false_claim(text: str, tmp_path: Path) -> None:
    path = written(tmp_path / "s.sol", text)
    later = Instance(9, [*EC_1.requests[:3], Request(2, 1, 4)])
    with pytest.raises(FalseClaim) as caught:
        read_schedule(path, later)
    line = "objective: says '12', the starts give 10 in this instance"
    assert str(caught.value) == f"{path}: {line}"


def test_ids_that_no_file_can_carry_go_by_position(tmp_path: Path) -> None:
    instance = Instance(7, [Request(0, 1, 1, id="a b"), Request(0, 1, 2, id="x_1")])
    assert request_labels(instance) == ["r0", "r1"]
    path = written(tmp_path / "s.sol", "x_r0_3 1\nx_r1_0 1\n")
    assert read_schedule(path, instance).starts == (3, 0)


def test_labels_may_end_like_columns(tmp_path: Path) -> None:
    instance = Instance(7, [Request(0, 1, 1, id="a_1"), Request(0, 1, 2, id="a_1_2")])
    path = written(tmp_path / "s.sol", "x_a_1_2 1\nx_a_1_2_3 1\n")
    assert read_schedule(path, instance).starts == (2, 3)


def solved(model: Path, target: Path) -> Any:
    """Solve a model file with HiGHS and write its solution."""
    highs = load_highspy().Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(model))
    highs.run()
    highs.writeSolution(str(target), 0)
    return highs.getInfo()


@pytest.mark.parametrize("kind", ["lp", "mps"])
def test_every_exported_model_makes_a_round_trip(kind: str, tmp_path: Path) -> None:
    for instance in (*random_instances(10, seed=8, least_requests=1), drawn_fleet(11)):
        export(instance, tmp_path / f"m.{kind}")
        info = solved(tmp_path / f"m.{kind}", tmp_path / "m.sol")
        check = read_schedule(tmp_path / "m.sol", instance).check()
        assert check.feasible
        assert check.objective == round(info.objective_function_value) == optimum_of(instance)


def test_solve_begins_from_a_solution_and_the_others_read_it_too(
    run: Run, ec1: Path, tmp_path: Path
) -> None:
    solution = FOLDER / "scip.sol"
    status, out, err = run("solve", ec1, "--start", solution, "--time-limit", "0")
    assert (status, "12" in out) == (0, True), err
    status, out, _ = run("check", ec1, solution)
    assert (status, out.startswith("feasible: total latency 12")) == (0, True)
    target = tmp_path / "c.json"
    assert run("certify", ec1, "--schedule", solution, "--time-limit", "0", "-o", target)[0] == 0
    assert run("verify", target)[0] == 0
    bad = written(tmp_path / "bad.sol", SCIP.replace("x_r3_2 ", "x_r3_0 ").replace(" 12", " 10"))
    assert run("check", ec1, bad)[0] == 1
    err = run.refused("solve", ec1, "--start", bad)
    assert err.count("\n") == 1
