"""Exported files, and the scripts and files of ``models/``."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import contents, read, solve_exactly
from strategies import instance_of, random_instances

from kvopt.errors import InvalidInput
from kvopt.formulations.arrays import time_indexed_arrays, to_highs
from kvopt.formulations.export import FORMATS, FORMULATIONS, export
from kvopt.formulations.paused import paused_arrays
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import write_instance
from kvopt.problem.requests import Request
from kvopt.timetable.schedule_files import schedule_of_solution

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "models"

EXAMPLE_EC_1 = instance_of(7, [(0, 1, o) for o in (1, 2, 3, 4)])


# ---- files ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_an_exported_file_says_the_same(formulation: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    pauses = formulation == "pauses"
    build = paused_arrays if pauses else time_indexed_arrays
    for instance in random_instances(4 if pauses else 20, seed=18, least_requests=1):
        export(instance, path, formulation, kind)
        again = read_as(path, kind)
        relax = formulation == "relaxed"
        ours = to_highs(build(instance), relax=relax, names=True)
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


@pytest.mark.parametrize(
    "options", [{"formulation": "configuration"}, {"format": "nl"}, {"format": "LP"}]
)
def test_an_unknown_option_is_refused_and_the_old_file_stays(
    options: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "old.lp"
    path.write_text("old")
    with pytest.raises(InvalidInput, match="must be one of"):
        export(EXAMPLE_EC_1, path, **options)
    assert path.read_text() == "old"


# ---- models/ ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("time_indexed", 45, 45),
        ("relaxed", 44, 45),
        ("running_status", 45, 45),
        ("pauses", 12, 12),
    ],
)
def test_the_lp_files_are_in_step(name: str, least: float, most: float, tmp_path: Path) -> None:
    runpy.run_path(str(MODELS / "write_lp.py"))["write_all"](tmp_path)
    kept, fresh = read(MODELS / f"{name}.lp"), read(tmp_path / f"{name}.lp")
    assert contents(kept) == contents(fresh)
    solve_exactly(kept)
    value = kept.getInfo().objective_function_value
    assert least - 1e-6 <= value <= most + 1e-6


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "options", "objective"),
    [
        ("time_indexed.py", [], "12"),
        ("time_indexed.py", ["--solver", "appsi_highs", "--time-limit", "60"], "12"),
        ("relaxed.py", [], "11.33333333"),
        ("running_status.py", [], "12"),
        ("running_status.py", ["--as-printed"], "10"),
    ],
)
def test_the_scripts_run(script: str, options: list[str], objective: str) -> None:
    done = run(sys.executable, MODELS / script, MODELS / "example-ec.1.json", *options)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["status optimal", f"objective {objective}"]
    assert len(lines) == 2 + 4


@pytest.mark.slow
def test_the_script_with_pauses_prints_stretches() -> None:
    done = run(sys.executable, MODELS / "pauses.py", MODELS / "example-pause.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "status optimal\nobjective 12\ntimes r0 1-6 8-11\ntimes r1 7-7\n"


def test_a_solution_with_pauses_is_refused_with_that_reason() -> None:
    with pytest.raises(InvalidInput, match="of the program with pauses"):
        schedule_of_solution("# Objective value = 12\ny_r0_1_1 1", EXAMPLE_EC_1)


@pytest.mark.slow
def test_a_script_takes_csv_and_refuses_nonsense_in_one_line(tmp_path: Path) -> None:
    table = tmp_path / "i.csv"
    table.write_text("arrival,prompt,output\n")
    empty = run(sys.executable, MODELS / "relaxed.py", table, "--memory", "3")
    assert (empty.returncode, empty.stdout) == (0, "status optimal\nobjective 0\n")
    refused = run(sys.executable, MODELS / "relaxed.py", table)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["time_indexed", "relaxed", "running_status"])
def test_pyomo_convert_writes_the_models(name: str, tmp_path: Path) -> None:
    pyomo = Path(sys.executable).with_name("pyomo")
    output = tmp_path / "out.lp"
    data = MODELS / "example-ec.1.json"
    done = run(pyomo, "convert", "--format=lp", f"--output={output}", MODELS / f"{name}.py", data)
    assert done.returncode == 0, done.stdout + done.stderr
    highs = read(output)
    solve_exactly(highs)
    value = highs.getInfo().objective_function_value
    assert value == pytest.approx(34 / 3 if name == "relaxed" else 12)


@pytest.mark.slow
def test_pyomo_convert_takes_the_memory_of_csv_from_its_configuration(tmp_path: Path) -> None:
    write_instance(EXAMPLE_EC_1, tmp_path / "i.csv")
    model = {
        "filename": str(MODELS / "time_indexed.py"),
        "options": {"memory": 7},
        "save file": str(tmp_path / "out.lp"),
    }
    config = tmp_path / "convert.json"
    config.write_text(json.dumps({"model": model, "data": {"files": [str(tmp_path / "i.csv")]}}))
    done = run(Path(sys.executable).with_name("pyomo"), "convert", config, at=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    highs = read(tmp_path / "out.lp")
    solve_exactly(highs)
    assert round(highs.getInfo().objective_function_value) == 12
