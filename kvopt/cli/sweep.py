"""``kvopt sweep``: a scheduler over a grid of alpha and beta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from kvopt.cli import common
from kvopt.cli.assumed import clock_of, say_assumed_clock
from kvopt.problem.clocks import Seconds
from kvopt.problem.instance_files import read_instance

if TYPE_CHECKING:
    from kvopt.experiments.grids import SweptRun

_HUNDREDTHS = "0:0.3:0.01"


def sweep_command(
    file: common.InstanceFile,
    policy: Annotated[
        str,
        common.policies("The scheduler."),
    ] = "alpha-protect",
    alpha: Annotated[
        str | None,
        typer.Option(
            "--alpha",
            metavar="GRID",
            help=f"0.1,0.2 or FROM:TO:STEP; without --beta {_HUNDREDTHS} by default.",
        ),
    ] = None,
    beta: Annotated[
        str | None, typer.Option("--beta", metavar="GRID", help="For alpha-beta: the same.")
    ] = None,
    seconds: common.Seconds = False,
    model: common.BatchTime = None,
    safe: Annotated[
        bool,
        typer.Option(
            "--smallest-safe",
            help="Find the alpha from which on nothing loops, and run no more than that takes.",
        ),
    ] = False,
    memory: common.Memory = None,
    json: common.Json = False,
    _modules: common.Modules = None,
) -> None:
    """Run a scheduler for each value of alpha and beta, and see where evictions never end.

    Exit status: 0, 3 if --smallest-safe finds none, 130 after Ctrl-C with what was found printed,
    2 for input that is refused.
    """
    from kvopt.experiments.grids import grid, settings_of, smallest_safe, sweep

    if alpha is None and (beta is None or safe):
        alpha = _HUNDREDTHS
    settings = settings_of(
        policy,
        () if alpha is None else grid(alpha, "--alpha"),
        () if beta is None else grid(beta, "--beta"),
    )
    clock = clock_of(seconds, model)
    instance = read_instance(file, memory)
    say_assumed_clock(clock, model)
    runs: list[SweptRun] = []
    interrupted = False
    try:
        for run in sweep(instance, settings, clock, to_the_first_loop=safe):
            runs.append(run)
            if common.is_watched() and not json:
                line = f"{len(runs)}/{len(settings)}  {run.setting.label}: {run.run.outcome}"
                common.say(line)
    except KeyboardInterrupt:
        interrupted = True
    found = smallest_safe(runs) if safe and not interrupted else {}
    runs.sort(key=lambda run: (run.setting.beta or 0, run.setting.alpha or 0))
    with common.undisturbed():
        if json:
            smallest = [{"beta": _number(b), "alpha": _number(a)} for b, a in found.items()]
            said = {
                "batch_time": clock.batch_time.to_json() if isinstance(clock, Seconds) else None,
                "runs": [run.to_json() for run in runs],
                "smallest_safe": smallest if safe and not interrupted else None,
                "interrupted": interrupted,
            }
            common.print_json(said)
        else:
            _print(runs, seconds)
            _print_safe(found)
    if interrupted:
        raise typer.Exit(common.INTERRUPTED)
    if safe and None in found.values():
        raise typer.Exit(common.NOTHING_FOUND)


def _number(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def _print(runs: Sequence[SweptRun], seconds: bool) -> None:
    swept = [
        key for key in ("alpha", "beta") if any(getattr(r.setting, key) is not None for r in runs)
    ]
    latency = ("mean s>", "median s>", "p99 s>") if seconds else ("latency>", "mean>")
    table = common.new_table(
        *(f"{key}>" for key in swept), *latency, "evictions>", "outcome", prose=("outcome",),
        optional=("median s", "p99 s", "evictions") if seconds else ("mean", "evictions"),
    )  # fmt: skip
    for run in runs:
        outcome = str(run.run.outcome)
        if run.run.completed < len(run.run.starts):
            outcome += f"; {run.run.completed} of {len(run.run.starts)} finished"
        table.add_row(
            *(f"{getattr(run.setting, key):f}" for key in swept),
            *_latency(run),
            common.or_dash(run.run.evictions),
            outcome,
        )
    common.print_table(table)


def _print_safe(found: Mapping[Decimal | None, Decimal | None]) -> None:
    for beta, alpha in found.items():
        at = "" if beta is None else f" with beta = {beta:f}"
        if alpha is None:
            print(f"no alpha of the grid is safe{at}: its largest ends in a livelock")
        else:
            print(f"smallest alpha from which on nothing loops{at}: {alpha:f}")


def _latency(run: SweptRun) -> list[str]:
    """Return the cells of a run; of one that never ended they say nothing."""
    found = run.run
    if found.clock.is_even:
        value, count = found.objective, len(found.starts)
        mean = "-" if value is None or not count else f"{value / count:,.2f}"
        return [common.or_dash(value), mean]
    times = found.measures()["latency"] if found.objective is not None else {}
    cells = [times.get(key) for key in ("mean", "median", "p99")]
    return ["-" if cell is None else f"{cell:,.3f}" for cell in cells]
