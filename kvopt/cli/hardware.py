"""``kvopt hardware``: the cache of a machine in tokens, and the length of a round on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path

from kvopt import BatchTime
from kvopt.cli.common import Json, OptionalOutput, argument, label, option, refuse
from kvopt.cli.printing import is_json, name_of, say, show, table, warn, written
from kvopt.errors import InvalidInput, shown
from kvopt.files.atomic import own_descriptor
from kvopt.problem.hardware.batch_time_files import PRESETS, batch_time, write_batch_time
from kvopt.problem.hardware.fitting import fit_linear, fit_roof
from kvopt.problem.hardware.presets import (
    ANY_GPU,
    GIGABYTE,
    GPUS,
    MODELS,
    SHARE,
    Gpu,
    ModelShape,
    capacity,
    preset,
)
from kvopt.problem.hardware.roofline import pairs, parts
from kvopt.timetable.server_records import read_batches

_OF_THE_PAPERS = ("jaillet-2025-v1", "llama-2-70b")
_NOTE = (
    "kvopt: jaillet-2025-v1 states 16,492 tokens for Llama-2-70B on two A100; its formula, (160 GB "
    "- 140 GB) / 2,621,440 bytes, gives 7,629. It gives every query head keys of its own; with the "
    "8 heads of keys that the model has, the whole memory beside the weights holds 67,281. v2 "
    "calls 16,492 an observed value."
)
"""Notes on models for which the papers and the formula disagree."""

_MAX_OFF, _MAX_TYPICAL = 0.1, 1.0
"""Shares of the measured time, of all rounds and of one: larger errors are warnings."""


@dataclass(frozen=True)
class MachineOptions:
    """A model, and the GPUs that hold it."""

    model: str | None = option("One of {models}; default: llama-2-70b.", "NAME")
    gpu: str | None = option("One of {gpus}; default: a100-80gb.", "NAME")
    gpus: int | None = option("GPUs that hold the model together; default: 2.", "N", min=1)

    def parts(self) -> tuple[ModelShape, Gpu, int]:
        """Return the model, the GPU and the number of GPUs."""
        shape = preset(MODELS, self.model or "llama-2-70b", "--model")
        return shape, preset(ANY_GPU, self.gpu or "a100-80gb", "--gpu"), self.gpus or 2


@dataclass(frozen=True)
class ShapeOptions:
    """Shape of a model, overriding its preset; the names are of `ModelShape`."""

    parameters: int | None = option("Weights of the model.", "N", min=1)
    layers: int | None = option("Its layers.", "N", min=1)
    kv_heads: int | None = option("Its heads of keys.", "N", min=1)
    head_size: int | None = option("Numbers in a key.", "N", min=1)
    bytes: int | None = option("Bytes of a weight or cached number.", "N", min=1)


def capacity_command(
    *,
    name: str | None = argument(
        "[MACHINE]", "MODEL@GPU or MODEL@NxGPU, as for --batch-time; else the options.", None
    ),
    machine: MachineOptions,
    changed: ShapeOptions,
    gpu_memory: str | None = option("10^9 bytes of one GPU.", "GB"),
    fraction: str = option(
        "Share of memory for weights and cache.", "F", default=str(float(SHARE))
    ),
    _json: Json,
) -> None:
    """Print how many tokens of KV cache fit next to the weights of a model.

    That is (GPUs x memory x fraction - parameters x bytes) / (2 x layers x KV heads x head size
    x bytes), rounded down; GPUs beyond the KV heads hold copies and add none.  Options replace
    values of a preset.
    """
    for other, value in {**vars(machine), "gpu-memory": gpu_memory}.items():
        refuse("MACHINE", f"goes without --{other}", name is not None and value is not None)
    shape, gpu, gpus = machine.parts() if name is None else parts(name, "MACHINE")
    memory = int(_number(gpu_memory, "--gpu-memory") * GIGABYTE) if gpu_memory else gpu.memory
    shape = replace(shape, **{field: number for field, number in vars(changed).items() if number})
    share = _number(fraction, "--fraction")
    tokens = capacity(shape, memory, gpus, share)
    note = _NOTE if shape.name in _OF_THE_PAPERS else None
    facts = {
        "memory": tokens,
        "kv_bytes": shape.kv_bytes,
        "weight_bytes": shape.weight_bytes,
        "gpu_memory": memory,
        "gpus": gpus,
        "fraction": float(share),
        "note": note,
    }
    lines = (
        f"{tokens:,} tokens of {shape.kv_bytes:,} bytes",
        f"{shape.name}: weights {shape.weight_bytes:,} bytes; "
        f"{gpus} x {memory:,} bytes x {fraction}",
    )
    show(facts, lines)
    if note and not is_json():
        say(note)


def _number(text: str, field: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(f"must be a number, got {shown(text)}", field=field) from None


def fit_command(
    *,
    table: Path = argument("TABLE", "CSV with measured batches, or a record of vLLM."),
    output: OptionalOutput,
    lines: int = option("2 for a roof, 1 for a straight line.", "1|2", default=2, min=1, max=2),
    kv_ns: int = option("For each token held, if not fitted.", "NS", default=0, min=0),
    _json: Json,
) -> None:
    """Fit a batch-time model to a table, for `--batch-time`.

    A table has the columns tokens and milliseconds, and perhaps prompts and held; a record that
    kvopt.integrations.vllm wrote is one too, and - is standard input.
    """
    rows = read_batches(table)
    if any(row.held or row.prompts for row in rows):
        fit = fit_linear(rows)
    else:
        fit = fit_roof(rows, lines)
        fit = replace(fit, batch_time=replace(fit.batch_time, kv_ns=kv_ns))
    errors = (
        f"{fit.rows} batches, relative error {fit.typical_error:.1%} typically and "
        f"{fit.largest_error:.1%} at most"
    )
    is_file = output is not None and own_descriptor(output) != 1
    fitted = replace(
        fit.batch_time,
        name=output.stem if is_file and output else None,
        notes=f"fitted to {label(table)}: {errors}",
    )
    columns = ("rows", "seconds", "model_seconds", "largest_error", "typical_error")
    with written(output, write_batch_time, fitted):
        show(
            fitted.to_json() | {name: getattr(fit, name) for name in columns}, _model_lines(fitted)
        )
    if not is_json():
        say(f"{'fitted' if output is None else f'wrote {name_of(output)}'}: {errors}")
        say(f"these rounds took {fit.seconds:.4g} s, by the model {fit.model_seconds:.4g} s")
    off = fit.model_seconds / fit.seconds - 1
    if abs(off) > _MAX_OFF:
        warn(f"the model's rounds take {off:+.0%} in all")
    if fit.typical_error > _MAX_TYPICAL:
        warn(f"a round of the model is typically off by {fit.typical_error:.0%}")


def show_command(
    *,
    model: str = argument("MODEL", "{batch_times}, MODEL@GPU, MODEL@NxGPU or a .json file."),
    output: OptionalOutput,
    _json: Json,
) -> None:
    """Show a batch-time model: a measured one, a roofline such as llama-3-8b@h100, or a file."""
    shown_model = batch_time(model)
    with written(output, write_batch_time, shown_model):
        show(shown_model.to_json(), [*_model_lines(shown_model), shown_model.notes or ""])
    if output is not None and not is_json():
        say(f"wrote {name_of(output)}")


def _model_lines(model: BatchTime) -> Iterator[str]:
    for line in model.lines:
        yield f"{line.round_ns:,} ns + {line.token_ns:,} ns a token"
    yield f"{model.kv_ns:,} ns a token held, {model.prompt_ns:,} ns more a prompt token"


def list_command(_json: Json) -> None:
    """List models and GPUs with their sources, and how long the shortest round lasts on them."""
    times = {name: batch_time(name) for name in (*PRESETS, *pairs())}
    lists = {
        "models": [asdict(shape) | {"kv_bytes": shape.kv_bytes} for shape in MODELS.values()],
        "gpus": [asdict(gpu) for gpu in GPUS.values()],
        "presets": [{"preset": name, **model.to_json()} for name, model in times.items()],
    }
    columns = ("name", "parameters", "active", "kv_bytes", "source")
    units = {"memory": "GB", "bandwidth": "GB/s", "flops": "GFLOP/s", "link": "GB/s"}
    models = [{key: row[key] for key in columns} for row in lists["models"]]
    gpus = [
        row | {key: f"{row[key] // GIGABYTE:,} {unit}" for key, unit in units.items()}
        for row in lists["gpus"]
    ]
    rounds = [
        {
            "batch time": name,
            "on": model.name,
            "shortest round, ms": f"{model.least_ns / 10**6:.1f}",
        }
        for name, model in times.items()
    ]
    show(lists, [*table(models), "", *table(gpus), "", *table(rounds)])
