"""``kvopt batch-time``: how long a round lasts, from a measured table or by name."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from kvopt.cli import common
from kvopt.cli.assumed import say_assumed_options
from kvopt.cli.common import option
from kvopt.cli.outputs import STANDARD_OUTPUT, name_of, try_outputs, written
from kvopt.errors import InvalidInput
from kvopt.files.reading import STANDARD_INPUT
from kvopt.problem.batch_time import MILLISECOND, NANOSECONDS, BatchTime
from kvopt.problem.hardware.batch_time_files import PRESETS, batch_time, write_batch_time
from kvopt.problem.hardware.fitting import Fit, Measured, fit_linear, fit_roof
from kvopt.problem.hardware.presets import ANY_GPU, MODELS, SHORT_NAMES, preset
from kvopt.problem.hardware.roofline import SHAPES, pairs, parts, roofline
from kvopt.timetable.records import read_batches

_OF_TABLES = ("model", "gpu", "gpus", "lines", "kv_ns")
"""Options that nothing reads where a model is named."""
_ENDS = (".csv", ".jsonl", ".gz")
_MOST_OFF = 0.1
"""Of the time that the rounds took: if the model is off by more, that is a warning."""

PRESETS_BY_NAME = f"""Presets
measured: {", ".join(PRESETS)}
rooflines: MODEL@GPU or MODEL@NxGPU
MODEL: {", ".join(SHAPES)}
GPU: {", ".join(ANY_GPU)}"""
"""What stands below the options."""


def batch_time_command(
    context: typer.Context,
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="CSV with measured batches, a record of vLLM, or a preset."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option("--output -o", "JSON file to write; - is standard output.", "MODEL"),
    ] = None,
    model: Annotated[
        str, option("--model", "Of a profile: one of {models}.", "NAME", names="models")
    ] = "llama-2-70b",
    gpu: Annotated[
        str, option("--gpu", "Of a profile: one of {gpus}.", "NAME", names="gpus")
    ] = "a100-80gb",
    gpus: Annotated[int, option("--gpus", "That a layer is divided among.", "N", min=1)] = 2,
    lines: Annotated[
        int, option("--lines", "2 for a roof, 1 for a straight line.", "1|2", min=1, max=2)
    ] = 2,
    kv_ns: Annotated[
        int | None, option("--kv-ns", "For each token held, where not fitted.", "NS", min=0)
    ] = None,
    json: common.Json = False,
) -> None:
    """Fit a batch-time model to a table, for `--batch-time`, or list and show the presets.

    A table has the columns tokens and milliseconds, and perhaps prompts and held; a record that
    kvopt.integrations.vllm wrote is one too, and - is standard input.  A profile by
    operators (Vidur's num_tokens, time_stats.*.median) has no attention: the time to read the
    cache is added from the size of the model and the bandwidth of the GPUs.  Without TABLE the
    presets are listed; MODEL@GPU, llama-3-8b@h100 say, shows one.
    """
    if table is None:
        _refuse(context, "goes with a TABLE or a preset", (*_OF_TABLES, "output"))
        _list(json)
        return
    try_outputs(output=output, as_json=json)
    if _is_table(table):
        shape, device = preset(MODELS, model, "--model"), preset(ANY_GPU, gpu, "--gpu")
        rows, is_profile = read_batches(table, shape.layers, gpus)
        if is_profile:
            say_assumed_options(context, ("model", "gpu", "gpus"))
            if kv_ns is None:  # as long as the GPUs together take to read one token of the cache
                kv_ns = round(shape.kv_bytes * NANOSECONDS / (gpus * device.bandwidth))
        _write(_fit(rows, lines, kv_ns or 0, is_profile), Path(table), output, json)
        return
    _refuse(context, "goes with a table, which this is not", _OF_TABLES)
    found = batch_time(table)
    with written("--output", output, partial(write_batch_time, found)):
        _print(found, {}, json)
    if not json:
        print(found.notes or "")
        if output is not None:
            common.say(f"wrote {name_of(output)}")


def _is_table(text: str) -> bool:
    """Whether a text names a table and not a model: by its end, or as it is a file."""
    end = Path(text).suffix.lower()
    is_named = end != ".json" and text not in PRESETS and Path(text).exists()
    return is_named or end in _ENDS or text == STANDARD_INPUT


def _refuse(context: typer.Context, reason: str, names: tuple[str, ...]) -> None:
    """Refuse options that were given and that nothing would read."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise InvalidInput(reason, field=f"--{name.replace('_', '-')}")


def _fit(rows: list[Measured], lines: int, kv_ns: int, is_profile: bool) -> Fit:
    """Return the fit of a roof, or of one line where the table has more than tokens."""
    if any(row.held or row.prompts for row in rows):
        return fit_linear(rows)
    fit = fit_roof(rows, lines, is_profile=is_profile)
    return replace(fit, batch_time=BatchTime(fit.batch_time.lines, kv_ns))


def _write(fit: Fit, table: Path, output: Path | None, json: bool) -> None:
    errors = (
        f"{fit.rows} batches, relative error {fit.typical_error:.1%} typically and "
        f"{fit.largest_error:.1%} at most"
    )
    fitted, name = fit.batch_time, None if output in (None, STANDARD_OUTPUT) else output.stem
    notes = f"fitted to {common.label(table)}: {errors}"
    found = BatchTime(fitted.lines, fitted.kv_ns, fitted.prompt_ns, name, notes)
    more = {
        "rows": fit.rows,
        "seconds": fit.seconds,
        "model_seconds": fit.model_seconds,
        "largest_error": fit.largest_error,
        "typical_error": fit.typical_error,
    }
    with written("--output", output, partial(write_batch_time, found)):
        _print(found, more, json)
    if not json:
        common.say(f"{'fitted' if output is None else f'wrote {name_of(output)}'}: {errors}")
        common.say(
            f"these rounds took {fit.seconds:.4g} s, the model says {fit.model_seconds:.4g} s"
        )
    off = fit.model_seconds / fit.seconds - 1
    if abs(off) > _MOST_OFF:
        common.say(f"kvopt: warning: the model's rounds take {off:+.0%} in all")


def _print(found: BatchTime, more: dict[str, Any], json: bool) -> None:
    if json:
        common.print_json({**found.to_json(), **more})
        return
    for line in found.lines:
        print(f"{line.round_ns:,} ns + {line.token_ns:,} ns a token")
    print(f"{found.kv_ns:,} ns a token held, {found.prompt_ns:,} ns more a prompt token")


def _list(json: bool) -> None:
    """Print the presets: measured ones, and GPUs and shortest round of each pair."""
    if json:
        made = [(name, batch_time(name)) for name in (*PRESETS, *pairs())]
        common.print_json({"presets": [{"preset": n, **model.to_json()} for n, model in made]})
        return
    measured = common.new_table("measured", "shortest round>", "source", prose=("source",))
    for name, model in PRESETS.items():
        measured.add_row(name, _milliseconds(model), model.notes or "")
    common.print_table(measured)
    print("\nrooflines, as MODEL@GPU or MODEL@NxGPU: fewest GPUs, shortest round in ms")
    computed = common.new_table(
        "MODEL", *(f"@{gpu}>" for gpu in SHORT_NAMES), optional=("@a10", "@l4")
    )
    cells = {}
    for name in pairs():
        shape, gpu, gpus = parts(name)
        cells[name] = f"{gpus} x, {_milliseconds(roofline(shape, gpu, gpus))}"
    for shape_name in SHAPES:
        found = (cells.get(f"{shape_name}@{gpu_name}", "-") for gpu_name in SHORT_NAMES)
        computed.add_row(shape_name, *found)
    common.print_table(computed)


def _milliseconds(model: BatchTime) -> str:
    return f"{model.least_ns / MILLISECOND:.1f}"
