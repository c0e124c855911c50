"""``kvopt run --seconds``: what schedulers do when a round lasts as long as its batch."""

from __future__ import annotations

from csv import writer
from io import StringIO
from pathlib import Path

import typer
from rich.markup import escape

from kvopt.cli import common
from kvopt.files import read_instance, write_atomically
from kvopt.seconds import SecondsRun, simulate_seconds
from kvopt.seconds.files import DEFAULT_MODEL, batch_time
from kvopt.seconds.model import NANOSECONDS

_INTERRUPTED = 130


def run_in_seconds(
    file: Path,
    policies: list[str],
    memory: int | None,
    model: str | None,
    json: bool,
    timeline: Path | None,
) -> None:
    """Simulate schedulers in continuous time and compare what their users wait."""
    clock = batch_time(model or DEFAULT_MODEL)
    instance = read_instance(file, memory)
    runs: list[SecondsRun] = []
    interrupted = False
    try:
        for policy in policies:
            if common.is_watched() and not json:
                common.messages.print(f"{escape(file.name)}: {escape(policy)} ...")
            runs.append(simulate_seconds(instance, policy, clock))
    except KeyboardInterrupt:
        interrupted = True
    with common.undisturbed():
        if timeline is not None:
            write_atomically(timeline, _timeline(runs))
        if json:
            common.print_json(
                {"batch_time": clock.to_json(), "policies": [run.to_json() for run in runs]}
            )
        else:
            _print(runs)
    if interrupted:
        raise typer.Exit(_INTERRUPTED)


def _timeline(runs: list[SecondsRun]) -> str:
    """Return memory over time as CSV; between two rows of a policy it is a straight line."""
    text = StringIO()
    table = writer(text, lineterminator="\n")
    table.writerow(("policy", "seconds", "tokens"))
    for run in runs:
        table.writerows((run.policy, *point) for point in zip(*run.memory_over_time(), strict=True))
    return text.getvalue()


def _print(runs: list[SecondsRun]) -> None:
    means = [mean for run in runs if (mean := _mean(run)) is not None]
    table = common.new_table(
        "policy", "mean s>", "median s>", "p99 s>", "of the best>", "first token s>", "tokens/s>",
        "makespan s>", "evictions>", "peak>", "outcome",
    )  # fmt: skip
    for run in runs:
        found = run.to_json()
        latency, mean = found["latency"], _mean(run)
        table.add_row(
            escape(run.policy),
            *(_three(latency[key]) for key in ("mean", "median", "p99")),
            "-" if mean is None or not min(means) else f"{mean / min(means):.4f}",
            _three(found["time_to_first_token"]["mean"]),
            _three(run.tokens_per_second),
            _three(found["makespan_seconds"]),
            common.or_dash(run.evictions),
            common.or_dash(run.peak_memory),
            _outcome(run),
        )
    common.print_table(table)


def _mean(run: SecondsRun) -> float | None:
    """Return the mean latency, None when something never finished."""
    if run.objective_ns is None or not run.starts:
        return None
    return run.objective_ns / len(run.starts) / NANOSECONDS


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3f}"


def _outcome(run: SecondsRun) -> str:
    text = str(run.outcome)
    if run.completed < len(run.starts):
        text += f"; {run.completed} of {len(run.starts)} finished"
    return text if run.note is None else f"{text}; {escape(run.note)}"
