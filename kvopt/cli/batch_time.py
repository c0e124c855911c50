"""``kvopt batch-time``: how long a round lasts, from a measured table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kvopt.cli import common
from kvopt.cli.assumed import say_assumed_options
from kvopt.cli.common import option
from kvopt.cli.outputs import STANDARD_OUTPUT, name_of, try_outputs, written
from kvopt.files.batch_times import write_batch_time
from kvopt.hardware.capacity import GPUS, MODELS, preset
from kvopt.hardware.fitting import Fit, fit_linear, fit_roof, read_table
from kvopt.model.batch_time import NANOSECONDS, BatchTime


def batch_time_command(
    context: typer.Context,
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="CSV with measured batches.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="JSON file to write; - is standard output."
        ),
    ],
    model: Annotated[
        str, option("--model", "Of a profile: one of {models}.", "NAME", names="models")
    ] = "llama-2-70b",
    gpu: Annotated[
        str, option("--gpu", "Of a profile: one of {gpus}.", "NAME", names="gpus")
    ] = "a100-80gb",
    gpus: Annotated[
        int, typer.Option("--gpus", min=1, metavar="N", help="That a layer is divided among.")
    ] = 2,
    lines: Annotated[
        int, option("--lines", "2 for a roof, 1 for a straight line.", "1|2", min=1, max=2)
    ] = 2,
    kv_ns: Annotated[
        int | None,
        typer.Option("--kv-ns", min=0, metavar="NS", help="For each token held, where not fitted."),
    ] = None,
    json: common.Json = False,
) -> None:
    """Fit a batch-time model to a table, for `kvopt run --seconds`.

    A table has the columns tokens and milliseconds, and perhaps prompts and held.  A profile by
    operators (Vidur's num_tokens, time_stats.*.median) has no attention: the time to read the
    cache is added from the size of the model and the bandwidth of the GPUs.
    """
    shape, device = preset(MODELS, model, "--model"), preset(GPUS, gpu, "--gpu")
    try_outputs(output=output, as_json=json)
    rows, is_profile = read_table(table, shape.layers, gpus)
    if is_profile:
        say_assumed_options(context, ("model", "gpu", "gpus"))
    if any(row.held or row.prompts for row in rows):
        fit = fit_linear(rows)
        kv_ns = fit.batch_time.kv_ns
    else:
        fit = fit_roof(rows, lines)
        if kv_ns is None:  # as long as the GPUs together take to read one token of the cache
            reading = shape.kv_bytes * NANOSECONDS / (gpus * device.bandwidth)
            kv_ns = round(reading) if is_profile else 0
    errors = (
        f"{fit.rows} batches, relative error {fit.typical_error:.1%} typically and "
        f"{fit.largest_error:.1%} at most"
    )
    fitted, notes = fit.batch_time, f"fitted to {table.name}: {errors}"
    name = None if output == STANDARD_OUTPUT else output.stem
    found = BatchTime(fitted.lines, kv_ns, fitted.prompt_ns, name, notes)
    with written("--output", output, partial(write_batch_time, found)):
        _print(found, fit, json)
    if not json:
        common.say(f"wrote {name_of(output)}: {errors}")


def _print(found: BatchTime, fit: Fit, json: bool) -> None:
    if json:
        errors = {"largest_error": fit.largest_error, "typical_error": fit.typical_error}
        common.print_json({**found.to_json(), "rows": fit.rows, **errors})
        return
    for line in found.lines:
        print(f"{line.round_ns:,} ns + {line.token_ns:,} ns a token")
    print(f"{found.kv_ns:,} ns a token held, {found.prompt_ns:,} ns more a prompt token")
