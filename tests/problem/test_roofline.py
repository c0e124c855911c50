"""Rooflines: counted from the shapes of models and data sheets, marked as what they are."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import Run
from profiles import rows_of_profile

from kvopt import InvalidInput
from kvopt.problem.hardware.batch_time_files import PRESETS, batch_time
from kvopt.problem.hardware.presets import GPUS, MODELS, SHARE, capacity
from kvopt.problem.hardware.roofline import (
    EXTREMES,
    LEAST_CACHE,
    SHAPES,
    is_checked,
    pairs,
    parts,
    roofline,
)


class Config(NamedTuple):
    """What the ``config.json`` of a model says of its matrices."""

    hidden: int
    inner: int
    heads: int
    vocabulary: int
    experts: int = 1
    passed: int = 1
    biases: bool = False
    head_norms: bool = False


CONFIGS = {
    "llama-2-7b": Config(4096, 11008, 32, 32000),
    "llama-2-13b": Config(5120, 13824, 40, 32000),
    "llama-2-70b": Config(8192, 28672, 64, 32000),
    "llama-3-8b": Config(4096, 14336, 32, 128256),
    "llama-3-70b": Config(8192, 28672, 64, 128256),
    "mistral-7b": Config(4096, 14336, 32, 32000),
    "mixtral-8x7b": Config(4096, 14336, 32, 32000, experts=8, passed=2),
    "qwen2.5-7b": Config(3584, 18944, 28, 152064, biases=True),
    "qwen2.5-32b": Config(5120, 27648, 40, 152064, biases=True),
    "qwen2.5-72b": Config(8192, 29568, 64, 152064, biases=True),
    "qwen3-30b-a3b": Config(2048, 768, 32, 151936, experts=128, passed=8, head_norms=True),
}


def parameters(name: str, experts: int) -> int:
    """Count the parameters that pass so many experts, matrix by matrix."""
    config, shape = CONFIGS[name], MODELS[name]
    queries, keys = (heads * shape.head_size for heads in (config.heads, shape.kv_heads))
    layer = 2 * config.hidden * queries + 2 * config.hidden * keys + 2 * config.hidden
    layer += experts * 3 * config.hidden * config.inner
    layer += config.hidden * config.experts if config.experts > 1 else 0  # which chooses them
    layer += (queries + 2 * keys) * config.biases + 2 * shape.head_size * config.head_norms
    return shape.layers * layer + 2 * config.vocabulary * config.hidden + config.hidden


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_are_those_of_the_matrices(name: str) -> None:
    config, shape = CONFIGS[name], SHAPES[name]
    assert shape.parameters == parameters(name, config.experts)
    assert (shape.active or shape.parameters) == parameters(name, config.passed)
    assert shape.is_mixture == (config.experts > 1)
    assert (shape.hidden, shape.table) == (config.hidden, config.vocabulary * config.hidden)


def test_deepseek_v3_is_counted_matrix_by_matrix() -> None:
    """By its ``config.json``: latent attention, 3 dense layers, then 1 and 8 of 256 experts."""
    hidden, heads, layers, dense = 7168, 128, 61, 3
    queries = hidden * 1536 + 1536 + 1536 * heads * (128 + 64)
    keys = hidden * (512 + 64) + 512 + 512 * heads * (128 + 128)
    attention = queries + keys + heads * 128 * hidden + 2 * hidden
    expert, choosing = 3 * hidden * 2048, 256 * hidden + 256
    table = 129_280 * hidden
    shape = SHAPES["deepseek-v3"]
    for experts, counted in ((256, shape.parameters), (8, shape.active)):
        mixed = (layers - dense) * ((experts + 1) * expert + choosing)
        inner = mixed + dense * 3 * hidden * 18432
        assert counted == layers * attention + inner + 2 * table + hidden
    assert (shape.hidden, shape.table, shape.weight_bytes) == (hidden, table, shape.parameters)
    assert shape.kv_bytes == layers * (512 + 64) * 2  # in 16 bits, with weights in 8


def test_deepseek_v3_on_eight_b200_is_what_a_hand_computes() -> None:
    shape, gpu, gpus = parts("deepseek-v3@b200")
    assert (gpus, gpu.name) == (8, "b200-180gb")
    reading, computing = roofline(shape, gpu, gpus).lines
    layer = 61 * 90_000
    passed = shape.parameters - shape.table
    assert reading.round_ns == pytest.approx(passed / (0.8 * 8 * 8_000) + layer, abs=1)
    exchanged = 2 * 61 * (2 * 7 / 8 * 7168 * 2) / (0.6 * 900)
    assert shape.active is not None
    operations = 2 * (shape.active - shape.table) / (0.6 * 8 * 2_250_000)
    assert computing.token_ns == pytest.approx(operations + exchanged, abs=1)
    assert roofline(shape, gpu, gpus).kv_ns == round(70_272 / (0.8 * 8_000))  # on every GPU
    notes = batch_time("deepseek-v3@b200").notes or ""
    assert "small batches read few experts and take less" in notes
    assert "arithmetic is counted at the speed of 16 bits" in notes
    assert "speed of 16 bits" not in (batch_time("llama-3-8b@b200").notes or "")


def test_what_fits_on_no_number_of_gpus_is_no_pair(run: Run) -> None:
    assert {pair for pair in pairs() if pair.startswith("deepseek")} == {
        "deepseek-v3@h200",
        "deepseek-v3@b200",
    }
    for name in ("deepseek-v3@h100", "deepseek-v3@8xh100"):
        with pytest.raises(InvalidInput, match="deepseek-v3: does not fit on 8 x h100-80gb"):
            batch_time(name)
    out = run.done("hardware", "list")[0]
    assert len([line for line in out.splitlines() if line.startswith("deepseek-v3@")]) == 2


def test_every_model_and_gpu_says_where_it_is_from() -> None:
    assert {*CONFIGS, "deepseek-v3"} == {*SHAPES}
    assert all(shape.source for shape in MODELS.values())
    assert all(gpu.source for gpu in GPUS.values())


# ---- the model ---------------------------------------------------------------------


def test_one_gpu_is_what_a_hand_computes() -> None:
    """Llama-3-8B on an H100: 7.5 * 10^9 parameters at 80% of 3,350 GB/s, 60% of 989 TFLOP/s."""
    model = roofline(*parts("llama-3-8b@h100"))
    assert model.name == "llama-3-8b@1xh100-80gb"
    passed = 8_030_261_248 - 128_256 * 4096
    reading, computing = model.lines
    assert reading.round_ns == pytest.approx(2 * passed / (0.8 * 3350) + 32 * 50_000, abs=1)
    assert reading.token_ns == 0
    assert computing.token_ns == pytest.approx(2 * passed / (0.6 * 989_000), abs=1)
    assert model.kv_ns == round(131_072 / (0.8 * 3350))


def test_gpus_share_the_work_and_exchange_what_each_has() -> None:
    one, four = (roofline(SHAPES["llama-3-70b"], GPUS["a100-80gb"], n) for n in (1, 4))
    exchanged = 2 * 80 * (2 * 3 / 4 * 8192 * 2) / (0.6 * 300)
    start = 80 * 50_000
    assert four.lines[0].token_ns == pytest.approx(exchanged, abs=1)
    assert four.lines[0].round_ns == pytest.approx(
        (one.lines[0].round_ns - start) / 4 + start + 80 * 40_000, abs=2
    )
    assert four.lines[1].token_ns == pytest.approx(one.lines[1].token_ns / 4 + exchanged, abs=2)
    assert four.kv_ns == pytest.approx(one.kv_ns / 4, abs=1)


def test_gpus_beyond_the_heads_of_keys_read_the_same_ones() -> None:
    shape = SHAPES["qwen2.5-7b"]
    four, eight = (roofline(shape, GPUS["l4-24gb"], gpus) for gpus in (4, 8))
    assert shape.kv_heads == 4
    assert four.kv_ns == eight.kv_ns


def test_a_mixture_reads_all_experts_and_computes_with_some() -> None:
    mixture = roofline(*parts("mixtral-8x7b@1xh200"))
    assert mixture.lines[0].round_ns > 3 * 2 * 12_879_925_248 / (0.8 * 4800)
    assert mixture.lines[1].token_ns < 2 * 12_879_925_248 / (0.6 * 989_000)
    assert "experts" in (mixture.notes or "")


@pytest.mark.parametrize("pair", pairs())
def test_the_fewest_gpus_hold_the_weights_and_some_cache(pair: str) -> None:
    shape, gpu, gpus = parts(pair)
    assert capacity(shape, gpu.memory, gpus, SHARE) >= LEAST_CACHE
    if gpus > 1:
        assert shape.weight_bytes + LEAST_CACHE * shape.kv_bytes > gpus // 2 * gpu.memory * SHARE
    model = batch_time(pair)
    assert model.name == f"{shape.name}@{gpus}x{gpu.name}"
    assert "a roofline, not a measurement" in (model.notes or "")
    assert model == batch_time(str(model.name)) == batch_time(pair.upper())


def test_where_a_measurement_exists_the_roofline_is_as_near_as_it_says() -> None:
    measured = PRESETS["llama-2-70b-2xa100"]
    shape, gpu, gpus = parts("llama-2-70b@2xa100")
    model = roofline(shape, gpu, gpus)
    ratios = [
        model.round_ns(tokens, 0, 10_000) / measured.round_ns(tokens, 0, 10_000)
        for tokens in range(1, 4097)
    ]
    assert is_checked(shape, gpu)
    assert EXTREMES[0] <= min(ratios) < max(ratios) <= EXTREMES[1]


def test_rounds_of_the_public_profile_are_as_near_as_the_roofline_says(public_data: Path) -> None:
    shape = SHAPES["llama-2-70b"]
    model = roofline(shape, GPUS["a100-80gb"], 1)  # no exchanges, which the profile has not
    rows = rows_of_profile(public_data, shape.layers, 1)
    ratios = [model.round_ns(row.tokens, 0, 0) / (row.milliseconds * 1e6) for row in rows]
    assert EXTREMES[0] <= min(ratios) < max(ratios) <= EXTREMES[1]


# ---- names -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("llama3-8b@h100", "batch time: model: must be one of"),
        ("llama3-8b@h100", "did you mean llama-3-8b?"),
        ("llama-3-8b@h10", "did you mean h100?"),
        ("llama-3-8b@3xh100", "batch time: must be on 1, 2, 4 or 8 GPUs, got 'llama-3-8b@3xh100'"),
        ("llama-3-8b@0xh100", "must be on 1, 2, 4 or 8 GPUs"),
        ("llama-3-70b@1xh100", "llama-3-70b: has no room: the weights take 141,107,412,992 bytes"),
        ("a@b@c", "must be MODEL@GPU or MODEL@NxGPU"),
        ("llama-3-8b-h100", "must be one of"),
        ("llama-3-8b-h100", "did you mean llama-3-8b@h100?"),
        ("llama-2-70b-2a100", "did you mean llama-2-70b-2xa100?"),
        ("jaillet-2025-v1@a100", "model: must be one of"),
    ],
)
def test_bad_names_are_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        batch_time(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_is_no_file_and_a_file_no_name(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "me@h100.json"
    assert run("hardware", "show", "llama-3-8b@h100", "-o", path)[0] == 0
    assert batch_time(path) == batch_time("llama-3-8b@h100")


# ---- the command line --------------------------------------------------------------


def test_runs_say_that_it_is_a_roofline(run: Run, ec1: Path) -> None:
    arguments = ("run", ec1, "-P", "svf", "--seconds", "--json", "--batch-time")
    out, err = run.done(*arguments, "llama-3-8b@h100")
    assert err == (
        "assumed: llama-3-8b@1xh100-80gb is a roofline, not a measurement: 93 rounds of 100 came "
        "to 0.8 to 1.25 times the measured time of their operators, all of them to 0.6 to 1.45\n"
    )
    assert json.loads(out)["batch_time"]["name"] == "llama-3-8b@1xh100-80gb"
    _, _, err = run(*arguments, "mixtral-8x7b@2xl40s", "--batch-time", "mixtral-8x7b@h200")
    assert "mixtral-8x7b@1xh200-141gb is a roofline" in err
    assert "compared with no measured round" in err


def test_a_study_takes_it_and_says_so(run: Run, tmp_path: Path) -> None:
    study = tmp_path / "one.toml"
    study.write_text(
        'clock = "seconds"\ncertify = false\npolicies = ["mc-sf"]\nbatch_time = "qwen2.5-7b@l40s"\n'
        '[[instances]]\nfamily = "arrival-1"\nn = 3\nmemory = 30\nseed = 1\n'
    )
    err = run.done("study", study, "--out", tmp_path / "folder", "--jobs", 1)[1]
    assert "assumed: qwen2.5-7b@1xl40s-48gb is a roofline" in err


def test_presets_are_listed_and_shown(run: Run) -> None:
    code, out, err = run("hardware", "list")
    assert (code, err) == (0, "")
    assert all(name in out for name in (*PRESETS, *SHAPES, "@l40s"))
    found = {entry["preset"]: entry for entry in run.json("hardware", "list")["presets"]}
    assert {*found} == {*PRESETS, *pairs()}
    shown = run.json("hardware", "show", "llama-3-8b@h100")
    assert found["llama-3-8b@h100"] == {"preset": "llama-3-8b@h100", **shown}
    _, out, _ = run("hardware", "show", "llama-3-8b@h100")
    assert "config.json of meta-llama/Meta-Llama-3-8B" in out
    assert "3,350 GB/s at 80%" in out


def test_models_and_gpus_are_listed(run: Run) -> None:
    listed = run("hardware", "list")[1]
    assert all(name in listed for name in (*MODELS, *GPUS))
    found = run.json("hardware", "list")
    assert [entry["name"] for entry in found["gpus"]] == [*GPUS]
    assert found["models"][3]["kv_heads"] == 8
    machine = ("--gpu", "h200", "--gpus", 1, "--model", "llama-3-8b", "--json")
    tokens = capacity(MODELS["llama-3-8b"], 141 * 10**9, 1, Fraction(9, 10))
    assert json.loads(run("hardware", "capacity", *machine)[1])["memory"] == tokens
