"""Exported files, and the scripts and files of ``models/``."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import brute_force
import pyomo.environ as pyo
import pytest
from ortools.sat.python import cp_model
from programs import contents, read, solve_exactly
from strategies import instance_of, plain, random_instances

from kvopt import solve as package_solve
from kvopt.errors import InvalidInput
from kvopt.formulations.export import FORMATS, FORMULATIONS, export
from kvopt.formulations.pyomo import relaxed, solve
from kvopt.formulations.time_indexed import time_indexed_arrays, to_highs
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import write_instance
from kvopt.problem.requests import Request

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "models"

EXAMPLE_EC_1 = instance_of(7, [(0, 1, o) for o in (1, 2, 3, 4)])


# ---- files ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_an_exported_file_is_the_same_model(formulation: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    for instance in random_instances(8, seed=18, least_requests=1):
        export(instance, path, formulation, kind)
        again = read_as(path, kind)
        relax = formulation == "relaxed"
        ours = to_highs(time_indexed_arrays(instance), relax=relax, names=True)
        assert contents(again) == contents(ours)
        solve_exactly(again)
        solve_exactly(ours)
        values = [h.getInfo().objective_function_value for h in (again, ours)]
        assert values[0] == pytest.approx(values[1])
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def read_as(path: Path, kind: str) -> Any:
    # HiGHS chooses its reader by the suffix.
    renamed = path.rename(path.with_name(f"again.{kind}"))
    highs = read(renamed)
    renamed.rename(path)
    return highs


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_no_requests_are_an_empty_model(formulation: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"m.{kind}"
    export(Instance(5, []), path, formulation, kind)
    again = read(path)
    assert (again.getNumCol(), again.getNumRow()) == (0, 0)
    solve_exactly(again)
    assert again.getInfo().objective_function_value == 0


def test_twelve_digits_survive_a_file(tmp_path: Path) -> None:
    instance = instance_of(999_999_999_999, [(123_456_789_012, 987_654_321_098, 2)])
    ours = to_highs(time_indexed_arrays(instance), names=True)
    for kind in FORMATS:
        export(instance, tmp_path / f"m.{kind}", format=kind)
        assert contents(read(tmp_path / f"m.{kind}")) == contents(ours)


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        (("a", "b", "c", "d"), {"x_a_0", "start_d", "memory_1", "order_a_b", "order_c_d"}),
        (("a b", "+3", "ü", "x:y"), {"x_r0_0", "start_r3", "order_r0_r1", "order_r2_r3"}),
        (("r1", "r0", "e5", "-1"), {"x_r0_0", "x_r1_0", "start_r2", "order_r0_r1"}),
        (("a", "b_c", "a_b", "c"), {"x_b_c_0", "start_a_b", "order_0_1", "order_2_3"}),
        (("st", "end", "free", "inf"), {"x_st_0", "start_end", "order_st_end"}),
    ],
)
def test_names_are_readable_safe_and_unique(
    ids: tuple[str, ...], wanted: set[str], tmp_path: Path
) -> None:
    prompts = (0, 0, 1, 1)
    rows = [Request(0, s, 2, id=label) for s, label in zip(prompts, ids, strict=True)]
    instance = Instance(10, rows)
    ours = time_indexed_arrays(instance)
    for kind in FORMATS:
        export(instance, tmp_path / f"m.{kind}", format=kind)
        _, row_bounds, columns, _ = contents(read(tmp_path / f"m.{kind}"))
        assert wanted <= row_bounds.keys() | columns.keys()
        assert (len(columns), len(row_bounds)) == (ours.num_columns, ours.num_rows)


@pytest.mark.parametrize("options", [{"formulation": "pauses"}, {"format": "nl"}, {"format": "LP"}])
def test_an_unknown_option_is_refused_and_the_old_file_stays(
    options: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "old.lp"
    path.write_text("old")
    with pytest.raises(InvalidInput, match="must be one of"):
        export(EXAMPLE_EC_1, path, **options)
    assert path.read_text() == "old"


# ---- models/ ----------------------------------------------------------------------------


def model(name: str) -> Any:
    """Return the function of a script that builds its model."""
    return runpy.run_path(str(MODELS / f"{name}.py"))["build"]


def value_of(built: Any) -> int:
    assert solve(built) == "optimal"
    value: float = pyo.value(built.total_latency)
    return round(value)


def value_of_cp_sat(memory: int, rows: Sequence[brute_force.Triple]) -> int:
    built, _ = model("cp_sat")(memory, rows)
    solver = cp_model.CpSolver()
    assert solver.status_name(solver.solve(built)) == "OPTIMAL"
    return round(solver.objective_value)


@pytest.mark.slow
def test_models_have_the_optimum_of_the_package() -> None:
    for instance in random_instances(12, seed=13, least_requests=1, most_requests=4):
        memory, rows = plain(instance)
        best = package_solve(instance).objective
        assert best == brute_force.optimum(memory, rows)
        assert value_of(model("time_indexed")(memory, rows)) == best
        assert value_of(model("running_status")(memory, rows)) == best
        assert value_of_cp_sat(memory, rows) == best


@pytest.mark.slow
def test_the_relaxed_model_has_the_value_of_the_package() -> None:
    for instance in random_instances(20, seed=14, least_requests=2, last_arrival=3):
        end = instance.last_arrival + instance.total_output
        windows = tuple(range(r.arrival, end - r.output + 1) for r in instance)
        ours, built = (
            relaxed(instance, windows),
            model("time_indexed")(*plain(instance), relax=True),
        )
        assert solve(ours) == solve(built) == "optimal"
        assert pyo.value(built.total_latency) == pytest.approx(pyo.value(ours.total_latency))


def test_running_variables_are_1_while_a_request_runs() -> None:
    memory, rows = plain(EXAMPLE_EC_1)
    built = model("running_status")(memory, rows)
    assert value_of(built) == 12
    starts = {i: k for (i, k), x in built.x.items() if round(x.value) == 1}
    for (i, t), running in built.y.items():
        assert round(running.value) == (starts[i] + 1 <= t <= starts[i] + rows[i][2])
    assert all("y[" in str(row.body) for row in built.memory.values()), "they hold the memory"


def test_as_printed_is_the_program_for_prompts_one_token_shorter() -> None:
    assert value_of(model("running_status")(*plain(EXAMPLE_EC_1), as_printed=True)) == 10
    for instance in random_instances(20, seed=17, least_requests=1, most_requests=4):
        memory, rows = plain(instance)
        if any(s == 0 for _, s, _ in rows):
            continue
        shorter = tuple((a, s - 1, o) for a, s, o in rows)
        built = model("running_status")(memory, rows, as_printed=True)
        assert value_of(built) == brute_force.optimum(memory, shorter)


def run(*command: str | Path, at: Path = ROOT) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [str(part) for part in command],
        cwd=at,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


STARTS = "".join(f"start {i} {k}\n" for i, k in enumerate((0, 0, 0, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["time_indexed", "running_status", "cp_sat"])
def test_the_scripts_print_the_optimum(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, str(MODELS / "example-ec.1.json")])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    runpy.run_path(str(MODELS / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr() == (f"objective 12\n{STARTS}", "")


@pytest.mark.parametrize("name", sorted(path.stem for path in MODELS.glob("*.py")))
def test_the_scripts_refuse_what_they_do_not_know(name: str, tmp_path: Path) -> None:
    path, read_file = tmp_path / "i.json", runpy.run_path(str(MODELS / f"{name}.py"))["read"]
    write_instance(Instance(5, [Request(0, 1, 2, weight=3)], workers=2), path)
    with pytest.raises(SystemExit, match=f"^{path}: this model does not know weight, workers$"):
        read_file(path)
    write_instance(Instance(5, []), path)
    with pytest.raises(SystemExit, match=f"^{path}: holds no requests$"):
        read_file(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["time_indexed", "running_status"])
def test_pyomo_convert_writes_the_models(name: str, tmp_path: Path) -> None:
    pyomo = Path(sys.executable).with_name("pyomo")
    output = tmp_path / "out.lp"
    data = MODELS / "example-ec.1.json"
    done = run(pyomo, "convert", "--format=lp", f"--output={output}", MODELS / f"{name}.py", data)
    assert done.returncode == 0, done.stdout + done.stderr
    highs = read(output)
    solve_exactly(highs)
    assert round(highs.getInfo().objective_function_value) == 12


@pytest.mark.slow
@pytest.mark.parametrize("name", ["time_indexed", "cp_sat"])
def test_a_reader_that_leaves_ends_a_model_without_an_error(name: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)  # as ``| head`` does, at the latest after its line
    command = [sys.executable, str(MODELS / f"{name}.py"), str(MODELS / "example-ec.1.json")]
    with os.fdopen(writer, "w") as pipe:
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")
