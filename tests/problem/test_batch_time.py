"""Batch-time models: fitted to tables, in files, and on the command line."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from commands import Run, written
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from profiles import rows_of_profile

from kvopt import BatchTime, InvalidInput, Line, generate, write_instance
from kvopt.problem.hardware.batch_time_files import PRESETS, batch_time, write_batch_time
from kvopt.problem.hardware.fitting import Measured, fit_linear, fit_roof, judged


def measured(model: BatchTime, tokens: int, prompts: int = 0, held: int = 0) -> Measured:
    time = model.round_ns(tokens - prompts, prompts, held)
    return Measured(tokens, time / 1_000_000, prompts, held)


@pytest.mark.slow
@examples(25)
@given(
    fixed=st.integers(10**6, 10**8),
    slope=st.integers(1, 10**5),
    steeper=st.integers(50_000, 10**6),
    bend=st.integers(40, 400),
)
def test_a_roof_is_found_again(fixed: int, slope: int, steeper: int, bend: int) -> None:
    """Two lines that cross at the bend give a table; the fit is as good as they are."""
    second = max(fixed - steeper * bend, 0)
    model = BatchTime([Line(fixed, slope), Line(second, slope + steeper)])
    rows = [measured(model, tokens) for tokens in range(1, 1025, 8)]
    fit = fit_roof(rows)
    assert fit.largest_error < 1e-3
    assert fit.rows == len(rows)


def test_one_line_is_what_linear_regression_finds() -> None:
    model = BatchTime([Line(34_000_000, 300_000)])
    rows = [measured(model, tokens) for tokens in (1, 8, 64, 512, 4096)]
    fit = fit_roof(rows, lines=1)
    assert len(fit.batch_time.lines) == 1
    assert fit.batch_time.lines[0].round_ns == pytest.approx(34_000_000, rel=1e-6)
    assert fit.batch_time.lines[0].token_ns == pytest.approx(300_000, rel=1e-6)


def test_costs_of_prompts_and_of_held_tokens_are_found() -> None:
    model = BatchTime([Line(20_000_000, 100_000)], kv_ns=80, prompt_ns=2_000)
    rows = [
        measured(model, active + prompts, prompts, held)
        for active in (1, 40, 160)
        for prompts in (0, 100, 900)
        for held in (1_000, 16_000)
    ]
    found = fit_linear(rows).batch_time
    assert found.kv_ns == pytest.approx(80, abs=1)
    assert found.prompt_ns == pytest.approx(2_000, rel=0.01)
    assert found.lines[0].round_ns == pytest.approx(20_000_000, rel=0.01)


def test_fitted_rounds_take_as_long_in_all_as_the_measured_ones() -> None:
    """A tenth of the rounds take ten times as long, as on a server that does other work too."""
    model, random = BatchTime([Line(5_000_000, 20_000)], kv_ns=40), Random(1)
    batches = [
        measured(model, random.randint(1, 200), held=random.randint(1, 50_000)) for _ in range(500)
    ]
    rows = [
        replace(row, milliseconds=row.milliseconds * random.choice([1] * 9 + [10]))
        for row in batches
    ]
    bare = [replace(row, held=0) for row in rows]
    for fit in (fit_linear(rows), fit_roof(bare, 1), fit_roof(bare)):
        of_model = sum(
            fit.batch_time.round_ns(row.tokens, 0, row.held if fit.batch_time.kv_ns else 0)
            for row in rows
        )
        assert of_model / 1e6 == pytest.approx(sum(row.milliseconds for row in rows), rel=0.01)


def test_a_model_that_is_off_in_all_is_warned_of(run: Run, tmp_path: Path) -> None:
    table = written(
        tmp_path / "own.csv", "tokens,milliseconds\n1,30\n2,30\n3,10\n4,10\n5,10\n1000,11\n"
    )
    err = run.done("hardware", "fit", table, "--lines", 1)[1]
    assert "these rounds took 0.101 s, by the model 0.1" in err
    assert "warning" not in err
    table.write_text("tokens,milliseconds\n100,1\n200,1\n300,200\n400,300\n")
    out, err = run.done("hardware", "fit", table, "--lines", 1, "--json")
    found = json.loads(out)
    assert found["seconds"] == pytest.approx(0.502)
    assert found["model_seconds"] == pytest.approx(0.6, abs=0.05)
    assert "kvopt: warning: the model's rounds take +" in err
    assert f"warning: a round of the model is typically off by {found['typical_error']:.0%}" in err


def test_nothing_is_below_zero() -> None:
    falling = [Measured(tokens, 100 / tokens) for tokens in (1, 2, 4, 8)]
    for fit in (fit_roof(falling), fit_roof(falling, 1), fit_linear(falling)):
        assert all(line.round_ns >= 0 and line.token_ns >= 0 for line in fit.batch_time.lines)


@pytest.mark.parametrize("rows", [[], [Measured(1, 1.0), Measured(2, 1.0), Measured(1, 2.0)]])
def test_too_small_a_table_is_refused(rows: list[Measured]) -> None:
    with pytest.raises(InvalidInput, match="at least 3 different"):
        fit_roof(rows)


# ---- files -------------------------------------------------------------------------


def test_models_survive_a_file(tmp_path: Path) -> None:
    for model in [*PRESETS.values(), BatchTime([Line(5, 0)], prompt_ns=3)]:
        write_batch_time(model, tmp_path / "model.json")
        assert batch_time(tmp_path / "model.json") == model


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "batch time: must be an object"),
        ('{"schema": "kvopt.batch-time/2"}', "schema: must be"),
        ('{"schema": "kvopt.batch-time/1", "lines": [], "kv_ns": 0}', "prompt_ns: is missing"),
        ('{"schema": "kvopt.batch-time/1", "lines": 3, "kv_ns": 0, "prompt_ns": 0}', "lines"),
        (
            '{"schema": "kvopt.batch-time/1", "lines": [], "kv_ns": 0, "prompt_ns": 0}',
            "lines: must hold at least one line",
        ),
        (
            '{"schema": "kvopt.batch-time/1", "lines": [{"round_ns": 1.5, "token_ns": 1}],'
            ' "kv_ns": 0, "prompt_ns": 0}',
            "round_ns: must be an integer",
        ),
    ],
)
def test_files_that_say_something_else_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path / "model.json", text)
    with pytest.raises(InvalidInput, match=r"model\.json") as caught:
        batch_time(path)
    assert said in str(caught.value)


# ---- the command line --------------------------------------------------------------


def test_a_table_of_ones_own_is_fitted(run: Run, tmp_path: Path) -> None:
    table, out = tmp_path / "own.csv", tmp_path / "model.json"
    table.write_text("tokens,milliseconds,held\n1,10.1,100\n8,10.8,400\n64,16.5,1000\n9,11,9000\n")
    said, err = run.done("hardware", "fit", table, "-o", out)
    assert "wrote" in err
    assert batch_time(out).kv_ns > 0
    assert "a token held" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "header"),
        ("tokens,time\n1,2\n", "header: must be tokens,milliseconds"),
        ("tokens,milliseconds\n1,0\n", "line 2: milliseconds: must be a positive number"),
        ("tokens,milliseconds\n1,nan\n", "line 2: milliseconds"),
        ("tokens,milliseconds\n1.5,3\n", "line 2: tokens: must be an integer"),
        ("tokens,milliseconds\n1\n", "line 2: milliseconds"),
        ("tokens,milliseconds,prompts\n1,3,2\n", "line 2: prompts: is above tokens"),
        ("tokens,milliseconds\n1,2\n2,3\n", "at least 3 different"),
        ("tokens,milliseconds\n1,024,5.3\n", "line 2: has more fields than the header"),
    ],
)
def test_bad_tables_are_refused_and_write_nothing(
    run: Run, tmp_path: Path, text: str, said: str
) -> None:
    table, out = tmp_path / "own.csv", tmp_path / "model.json"
    table.write_text(text)
    assert said in run.refused("hardware", "fit", table, "-o", out)
    assert not out.exists()


def test_run_in_seconds_prints_what_users_wait(run: Run, tmp_path: Path) -> None:
    path, model = tmp_path / "chat.json", tmp_path / "model.json"
    write_instance(generate("conversation", n=30, memory=2_000, seed=1), path)
    write_batch_time(BatchTime([Line(10**9, 0)]), model)
    arguments = ("run", path, "--seconds", "--batch-time", model, "-P", "svf", "-P", "fcfs")
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["batch_time"]["lines"] == [{"round_ns": 10**9, "token_ns": 0}]
    code, rounds, _ = run("run", path, "-P", "svf", "-P", "fcfs", "--json")
    for seconds, plain in zip(found["policies"], json.loads(rounds)["policies"], strict=True):
        assert seconds["objective_seconds"] == plain["objective"]
        assert seconds["starts_seconds"] == plain["starts"]
        assert seconds["makespan_seconds"] == plain["makespan"]
        assert seconds["latency"]["mean"] == pytest.approx(plain["objective"] / 30)
    assert "1.0000" in run.done(*arguments, "--timeline", tmp_path / "memory.csv")[0]
    with (tmp_path / "memory.csv").open(newline="") as file:
        points = list(csv.DictReader(file))
    peaks = {
        policy: max(int(point["tokens"]) for point in points if point["policy"] == policy)
        for policy in ("svf", "fcfs")
    }
    assert peaks == {entry["policy"]: entry["peak_memory"] for entry in found["policies"]}


def test_presets_keep_their_values() -> None:
    roof, linear = PRESETS["llama-2-70b-2xa100"], PRESETS["llama-2-70b-2xa100-linear"]
    assert roof.lines == (Line(42_323_667, 198_967), Line(24_702_020, 309_256))
    assert linear.lines == (Line(34_107_640, 298_778),)
    assert (roof.kv_ns, linear.kv_ns) == (80, 80)
    lines = batch_time("llama-3-70b@4xh100").lines
    assert lines == (Line(20_166_984, 14_564), Line(7_200_000, 73_127))


@pytest.mark.parametrize(
    ("name", "typical", "largest"),
    [("llama-2-70b-2xa100", 0.044, 0.150), ("llama-2-70b-2xa100-linear", 0.060, 0.236)],
)
def test_presets_are_as_near_to_the_profile_as_the_manual_says(
    public_data: Path, name: str, typical: float, largest: float
) -> None:
    found = judged(replace(PRESETS[name], kv_ns=0), rows_of_profile(public_data, 80, 2))
    assert found.rows == 261
    assert (found.typical_error, found.largest_error) == pytest.approx((typical, largest), abs=5e-4)
