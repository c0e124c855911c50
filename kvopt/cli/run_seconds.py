"""``kvopt run --seconds``: what schedulers do when a round lasts as long as its batch."""

from __future__ import annotations

from csv import writer
from io import StringIO
from pathlib import Path

import typer
from rich.markup import escape

from kvopt.cli import common
from kvopt.cli.assumed import clock_of, say_assumed_clock
from kvopt.cli.outputs import written
from kvopt.files import read_instance, write_atomically
from kvopt.model.batch_time import NANOSECONDS
from kvopt.simulation.seconds import simulate_seconds
from kvopt.simulation.seconds_run import SecondsRun, summary

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
    clock = clock_of(model)
    instance = read_instance(file, memory)
    say_assumed_clock(model)
    runs: list[SecondsRun] = []
    interrupted = False
    try:
        for policy in policies:
            if common.is_watched() and not json:
                common.messages.print(f"{escape(file.name)}: {escape(policy)} ...")
            runs.append(simulate_seconds(instance, policy, clock))
    except KeyboardInterrupt:
        interrupted = True
    with (
        common.undisturbed(),
        written("--timeline", timeline, lambda path: write_atomically(path, _timeline(runs))),
    ):
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
        "policy", "mean s>", "median s>", "p99 s>", "times the best>", "first token s>",
        "tokens/s>", "makespan s>", "evictions>", "peak>", "outcome", prose=("outcome",),
        optional=(
            "peak", "makespan s", "tokens/s", "median s", "first token s", "evictions", "p99 s",
            "times the best",
        ),
    )  # fmt: skip
    for run in runs:
        mean = _mean(run)
        table.add_row(
            escape(run.policy),
            *map(_three, _latencies(run)),
            "-" if mean is None or not min(means) else f"{mean / min(means):.4f}",
            *map(_three, _of_what_finished(run)),
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


def _latencies(run: SecondsRun) -> list[float | None]:
    """Return mean, median and 99th percentile; see `_of_what_finished`."""
    found = summary(run.latencies_ns)
    return [None if run.objective_ns is None else found[key] for key in ("mean", "median", "p99")]


def _of_what_finished(run: SecondsRun) -> list[float | None]:
    """Return the time to the first token, tokens per second and the makespan.

    Those of the few that finish before a livelock would make it look like the best run.
    """
    if run.objective_ns is None:
        return [None] * 3
    first = summary(run.times_to_first_token_ns)["mean"]
    return [first, run.tokens_per_second, run.makespan_ns / NANOSECONDS]


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3f}"


def _outcome(run: SecondsRun) -> str:
    text = str(run.outcome)
    if run.completed < len(run.starts):
        text += f"; {run.completed} of {len(run.starts)} finished"
    return text if run.note is None else f"{text}; {escape(run.note)}"
