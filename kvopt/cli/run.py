"""``kvopt run``: what schedulers do to an instance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from kvopt.cli import common
from kvopt.cli.live import LiveProgress
from kvopt.cli.outputs import try_outputs, written
from kvopt.cli.run_seconds import run_in_seconds
from kvopt.errors import InvalidInput
from kvopt.files import read_instance, write_schedule
from kvopt.model.instance import Instance
from kvopt.policies.registry import policy as policy_from
from kvopt.simulation.runs import PolicyRun
from kvopt.simulation.simulator import simulate

_INTERRUPTED = 130


def run_command(
    file: common.InstanceFile,
    names: Annotated[
        list[str],
        typer.Option(
            "--policy",
            "-P",
            metavar="NAME[:KEY=VALUE,...]",
            help="A scheduler; may be given several times.  `kvopt policies` lists them.",
        ),
    ],
    memory: common.Memory = None,
    json: common.Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="SCHEDULE", help="Write the schedule."),
    ] = None,
    seconds: common.Seconds = False,
    model: common.BatchTime = None,
    timeline: Annotated[
        Path | None,
        typer.Option("--timeline", metavar="CSV", help="With --seconds: write memory over time."),
    ] = None,
    _modules: common.Modules = None,
) -> None:
    """Simulate schedulers on one clock and compare their total latency.

    Every run is checked in integers.  A run that would go on for ever is reported as a
    livelock.  Ctrl-C keeps the runs that are done.
    """
    if output is not None and len(names) > 1:
        raise InvalidInput("goes with a single --policy", field="-o")
    try_outputs(output=output, timeline=timeline)
    chosen = [policy_from(name) for name in names]  # refuse what is wrong before reading
    if seconds:
        if output is not None:
            raise InvalidInput("goes with rounds, which --seconds are not", field="-o")
        run_in_seconds(file, names, memory, model, json, timeline)
        return
    for option, value in (("--batch-time", model), ("--timeline", timeline)):
        if value is not None:
            raise InvalidInput("goes with --seconds", field=option)
    instance = read_instance(file, memory)
    runs: list[PolicyRun] = []
    interrupted = False
    try:
        for name, policy in zip(names, chosen, strict=True):
            if common.is_watched() and not json:
                common.messages.print(f"{escape(file.name)}: {escape(name)} ...")
            with LiveProgress(name, quiet=json):  # it says so when something is compiled
                runs.append(simulate(instance, policy, name))
    except KeyboardInterrupt:
        interrupted = True
    target = output if runs else None
    with common.undisturbed():
        with written("--output", target, lambda path: _write(runs[0], path)) as is_written:
            _report(instance, runs, json)
        if is_written and runs[0].evictions:
            common.messages.print(
                f"kvopt: {target} holds the last starts; work that {runs[0].evictions} evictions "
                "threw away is not in it",
                markup=False,
            )
    if interrupted:
        raise typer.Exit(_INTERRUPTED)


def _report(instance: Instance, runs: list[PolicyRun], json: bool) -> None:
    if json:
        common.print_json({"policies": [run.to_json() for run in runs]})
        return
    best = min((run.objective for run in runs if run.objective is not None), default=None)
    table = common.new_table(
        "policy", "latency>", "mean>", "times the best>", "makespan>", "evictions>", "peak>",
        "seconds>", "outcome", prose=("outcome",),
        optional=("seconds", "peak", "mean", "makespan", "evictions", "latency"),
    )  # fmt: skip
    for run in runs:
        value = run.objective
        table.add_row(
            escape(run.policy),
            common.or_dash(value),
            "-" if value is None or not len(instance) else f"{value / len(instance):,.2f}",
            "-" if value is None or not best else f"{value / best:.4f}",
            common.or_dash(None if value is None else run.makespan),
            common.or_dash(run.evictions),
            common.or_dash(run.peak_memory),
            f"{run.seconds:.2f}",
            str(run.outcome) if run.note is None else f"{run.outcome}; {escape(run.note)}",
        )
    common.print_table(table)


def _write(run: PolicyRun, output: Path) -> None:
    if run.schedule is None:
        raise InvalidInput("did not finish every request, so there is no schedule", field="-o")
    write_schedule(run.schedule, output)
