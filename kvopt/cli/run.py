"""``kvopt run``: what schedulers do to an instance, in rounds or in seconds."""

from __future__ import annotations

from csv import writer
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from kvopt.cli import common
from kvopt.cli.assumed import clock_of, say_assumed_clock
from kvopt.cli.common import option
from kvopt.cli.live import LiveProgress
from kvopt.cli.outputs import try_outputs, written
from kvopt.errors import InvalidInput, KvoptError
from kvopt.files.atomic import write_atomically
from kvopt.problem.clocks import Clock, Seconds
from kvopt.problem.instance_files import read_instance
from kvopt.simulate.policies.registry import policy as policy_from
from kvopt.simulate.routers.registry import router as router_from
from kvopt.simulate.running import run as simulate
from kvopt.timetable.fleet_runs import FleetRun
from kvopt.timetable.measures import Measures, waiting_cells
from kvopt.timetable.paused_runs import PausedRun
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.schedule_files import write_schedule

_IN_ROUNDS = (
    "policy", "latency>", "mean>", "p99>", "first token>", "times the best>", "makespan>",
    "evictions>", "peak>", "seconds>", "outcome",
)  # fmt: skip
_IN_SECONDS = (
    "policy", "mean s>", "median s>", "p99 s>", "times the best>", "first token s>",
    "per token s>", "tokens/s>", "makespan s>", "evictions>", "peak>", "outcome",
)  # fmt: skip
"""Columns of the table: means, but for ``median`` and ``p99`` of latency."""

_OPTIONAL_IN_ROUNDS = (
    "seconds", "peak", "first token", "makespan", "mean", "evictions", "p99", "latency",
)  # fmt: skip
_OPTIONAL_IN_SECONDS = (
    "peak", "makespan s", "tokens/s", "median s", "evictions", "per token s", "first token s",
    "p99 s", "times the best",
)  # fmt: skip
"""Columns that a narrow terminal goes without, the first of them first."""


def run_command(
    file: common.InstanceFile,
    names: Annotated[
        list[str],
        common.policies("A scheduler; may be given several times."),
    ],
    memory: common.Memory = None,
    workers: common.Workers = None,
    block_size: common.BlockSize = None,
    router: common.Router = "central",
    json: common.Json = False,
    output: Annotated[
        Path | None,
        option("--output -o", "Write the schedule; - is standard output.", "SCHEDULE"),
    ] = None,
    seconds: common.Seconds = False,
    model: common.BatchTime = None,
    timeline: Annotated[
        Path | None,
        option("--timeline", "With --seconds: write memory over time.", "CSV"),
    ] = None,
    _modules: common.Modules = None,
) -> None:
    """Simulate schedulers on one clock and compare their total latency.

    Every run is checked in integers.  A run that would go on for ever is reported as a
    livelock.  Ctrl-C keeps the runs that are done.
    """
    if output is not None and len(names) > 1:
        raise InvalidInput("goes with a single --policy", field="-o")
    try_outputs(output=output, timeline=timeline, as_json=json)
    chosen = [policy_from(name) for name in names]  # refuse what is wrong before reading
    way = router_from(router)
    if seconds and output is not None:
        raise InvalidInput("goes with rounds, which --seconds are not", field="-o")
    clock = clock_of(seconds, model)
    if timeline is not None and not seconds:
        raise InvalidInput("goes with --seconds", field="--timeline")
    instance = read_instance(file, memory, workers, block_size)
    if router != "central" and instance.workers == 1:
        raise InvalidInput("goes with several --workers", field="--router")
    say_assumed_clock(clock, model)
    if instance.workers > 1 and not json:
        when = "arrives" if way.is_irrevocable else "starts"
        said = f"a request is given to one of {instance.workers} workers when it {when}"
        common.say(f"{common.label(file)}: router {router}: {said}")
    runs: list[PolicyRun] = []
    interrupted, refused = False, None
    try:
        for name, policy in zip(names, chosen, strict=True):
            if common.is_watched() and not json:
                common.say(f"{common.label(file)}: {name} ...")
            with LiveProgress(name, quiet=json):  # it says so when something is compiled
                runs.append(simulate(instance, policy, router=router, clock=clock, label=name))
    except KeyboardInterrupt:
        interrupted = True
    except KvoptError as error:
        if not runs:
            raise
        refused = error  # what is done is worth reporting
    target = output if runs else None
    with common.undisturbed():
        with (
            written("--output", target, lambda path: _write_schedule(runs[0], path)) as is_written,
            written("--timeline", timeline, lambda path: write_atomically(path, _timeline(runs))),
        ):
            _report(runs, clock, json)
        if is_written and runs[0].evictions:
            common.say(
                f"kvopt: {target} holds the last starts; work that {runs[0].evictions} evictions "
                "threw away is not in it"
            )
    if refused is not None:
        raise refused
    if interrupted:
        raise typer.Exit(common.INTERRUPTED)


def _write_schedule(run: PolicyRun, output: Path) -> None:
    if isinstance(run, PausedRun):
        write_schedule(run.paused_schedule, output)
        return
    if run.schedule is None:
        raise InvalidInput(
            "left requests unfinished, or pauses some in a fleet: there is no schedule", field="-o"
        )
    write_schedule(run.schedule, output)


def _timeline(runs: list[PolicyRun]) -> str:
    """Return memory over time as CSV; between two rows of a policy it is a straight line."""
    text = StringIO()
    table = writer(text, lineterminator="\n")
    table.writerow(("policy", "seconds", "tokens"))
    for run in runs:
        parts = run.parts if isinstance(run, FleetRun) else (run,)
        for number, part in enumerate(parts):
            name = f"{run.policy}, worker {number}" if len(parts) > 1 else run.policy
            points = zip(*part.memory_over_time(), strict=True)
            table.writerows((name, *point) for point in points)
    return text.getvalue()


def _report(runs: list[PolicyRun], clock: Clock, json: bool) -> None:
    if json:
        made = {"batch_time": clock.batch_time.to_json()} if isinstance(clock, Seconds) else {}
        common.print_json({**made, "policies": [run.to_json() for run in runs]})
        return
    heads = _IN_ROUNDS if clock.is_even else _IN_SECONDS
    optional = _OPTIONAL_IN_ROUNDS if clock.is_even else _OPTIONAL_IN_SECONDS
    table = common.new_table(*heads, prose=("outcome",), optional=optional)
    best = min((run.objective for run in runs if run.objective is not None), default=None)
    for run in runs:
        cells = _cells(run, best)
        table.add_row(*(cells[head.rstrip(">")] for head in heads))
    common.print_table(table)


def _cells(run: PolicyRun, best: int | None) -> dict[str, str]:
    """Return the cells of a row by column; times are left open after a livelock.

    Those of the few that finished before it would make it look like the best run.
    """
    said, value, count = str(run.outcome), run.objective, len(run.starts)
    waited = run.measures()
    if run.completed < count and not run.clock.is_even:
        said += f"; {run.completed} of {count} finished"
    return {
        "policy": escape(run.policy),
        "times the best": "-" if value is None or not best else f"{value / best:.4f}",
        "evictions": common.or_dash(run.evictions),
        "peak": common.or_dash(run.peak_memory),
        "outcome": said if run.note is None else f"{said}; {escape(run.note)}",
        **(_in_rounds(run) if run.clock.is_even else _in_seconds(run, waited)),
        **waiting_cells(None if value is None else waited, run.clock),
    }


def _in_rounds(run: PolicyRun) -> dict[str, str]:
    value, count = run.objective, len(run.starts)
    return {
        "latency": common.or_dash(value),
        "mean": "-" if value is None or not count else f"{value / count:,.2f}",
        "makespan": common.or_dash(None if value is None else run.makespan),
        "seconds": f"{run.wall_seconds:.2f}",
    }


def _in_seconds(run: PolicyRun, waited: Measures) -> dict[str, str]:
    values = {
        "mean s": waited["latency"]["mean"],
        "median s": waited["latency"]["median"],
        "tokens/s": run.throughput,
        "makespan s": run.makespan / run.clock.scale,
    }
    return {
        head: "-" if value is None or run.objective is None else f"{value:,.3f}"
        for head, value in values.items()
    }
