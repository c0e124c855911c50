"""Tokens of cache on a machine: the formula, its presets, what is refused."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from commands import Run
from hypothesis import given
from hypothesis import strategies as st

from kvopt import InvalidInput
from kvopt.problem.hardware.presets import GIGABYTE, GPUS, MODELS, ModelShape, capacity


def test_the_papers_formula_does_not_give_the_papers_number() -> None:
    shape = MODELS["jaillet-2025-v1"]
    assert shape.kv_bytes == 2_621_440  # the paper's own figure
    assert shape.weight_bytes == 140 * GIGABYTE
    assert capacity(shape, 80 * GIGABYTE, 2, Fraction(1)) == 20 * GIGABYTE // 2_621_440 == 7_629


@given(
    parameters=st.integers(1, 10**12),
    layers=st.integers(1, 100),
    heads=st.integers(1, 100),
    gpus=st.integers(1, 8),
    percent=st.integers(1, 100),
)
def test_what_fits_fits_and_one_more_does_not(
    parameters: int, layers: int, heads: int, gpus: int, percent: int
) -> None:
    shape = ModelShape("made", parameters, layers, heads, 64)
    room = Fraction(gpus * 80 * GIGABYTE * percent, 100) - 2 * parameters
    room *= Fraction(min(gpus, heads), gpus)  # more GPUs than heads of keys hold the same ones
    try:
        tokens = capacity(shape, 80 * GIGABYTE, gpus, Fraction(percent, 100))
    except InvalidInput:
        assert room < shape.kv_bytes
    else:
        assert tokens * shape.kv_bytes <= room < (tokens + 1) * shape.kv_bytes


def test_keys_that_several_gpus_hold_count_on_each() -> None:
    """Qwen2.5-7B has 4 heads of keys: of 8 GPUs two hold the same, and memory is half as large."""
    shape, memory = MODELS["qwen2.5-7b"], 80 * GIGABYTE
    four, eight = (capacity(shape, memory, gpus, Fraction(9, 10)) for gpus in (4, 8))
    weights = shape.weight_bytes
    assert four == (4 * 72 * GIGABYTE - weights) // shape.kv_bytes
    assert eight == (8 * 72 * GIGABYTE - weights) // (2 * shape.kv_bytes)


def test_the_command_says_where_the_paper_contradicts_itself(run: Run) -> None:
    code, out, err = run(
        "hardware", "capacity", "--model", "jaillet-2025-v1", "--fraction", "1", "--json"
    )
    found = json.loads(out)
    assert (code, found["memory"], found["kv_bytes"]) == (0, 7_629, 2_621_440)
    assert err == ""
    assert "16,492" in found["note"]
    assert "7,629" in found["note"]
    _, out, err = run("hardware", "capacity")
    assert out.startswith("18,453 tokens of 327,680 bytes\n")
    assert "16,492" in err


def test_options_change_a_preset(run: Run) -> None:
    plain = run.json("hardware", "capacity", "--model", "mistral-7b", "--gpus", 1)
    assert plain["note"] is None
    _, out, _ = run(
        "hardware", "capacity", "--model", "mistral-7b", "--gpus", 1, "--kv-heads", 4,
        "--gpu-memory", "80", "--json",
    )  # fmt: skip
    assert json.loads(out)["memory"] // 2 in (plain["memory"], plain["memory"] - 1)
    assert json.loads(out)["gpu_memory"] == GPUS["a100-80gb"].memory


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("llama-3-8b@h100", ("llama-3-8b", "h100", 1)),
        ("llama-3-70b@4xh100", ("llama-3-70b", "h100", 4)),
        ("Llama-3-70B@h100", ("llama-3-70b", "h100", 4)),  # on two its weights leave little room
    ],
)
def test_a_machine_is_spelled_as_for_batch_times(
    run: Run, name: str, machine: tuple[str, str, int]
) -> None:
    options = zip(("--model", "--gpu", "--gpus"), machine, strict=True)
    expected = run("hardware", "capacity", *(word for pair in options for word in pair), "--json")
    code, out, err = run("hardware", "capacity", name, "--json")
    assert (code, out, err) == (expected[0], expected[1], "")
