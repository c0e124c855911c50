"""``kvopt certify --seconds``: bounds and schedulers on the clock of a batch-time model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.markup import escape

from kvopt.certificates.seconds import SecondsCertificate, certify_seconds
from kvopt.certificates.seconds_writing import write_seconds_with_budget
from kvopt.cli import common
from kvopt.cli.assumed import clock_of, say_assumed_clock
from kvopt.cli.outputs import written
from kvopt.errors import InvalidInput
from kvopt.files import read_instance
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.batch_time import NANOSECONDS
from kvopt.model.scope import COVERED

_INTERRUPTED = 130
_NOTHING_FOUND = 3


def certify_in_seconds(
    file: Path,
    output: Path,
    policies: Sequence[str],
    model: str | None,
    *,
    memory: int | None,
    time_limit: float | None,
    command: str,
    json: bool,
) -> None:
    """Write a certificate in seconds and print what it says."""
    clock = clock_of(model)
    instance = read_instance(file, memory)
    try:
        arrivals_ns(instance)
    except InvalidInput as error:
        raise error.located(file=str(file)) from None
    say_assumed_clock(model)
    budgets: list[int] = []

    def write(path: Path) -> None:
        budgets.append(write_seconds_with_budget(found, path))

    with common.undisturbed():  # a signal between search and file must not take the answer with it
        found = certify_seconds(instance, clock, policies, time_limit=time_limit, command=command)
        with written("--output", output, write):
            if json:
                common.print_json(found.to_json())
            else:
                _print(found, output, budgets)
    if found.interrupted:
        raise typer.Exit(_INTERRUPTED)
    if found.upper is None:
        raise typer.Exit(_NOTHING_FOUND)


def _print(found: SecondsCertificate, output: Path, budgets: Sequence[int]) -> None:
    count = len(found.instance)
    print(
        f"mean latency {_mean(found.objective_ns, count, up=True)} s, proved to be at least "
        f"{_mean(found.lower_bound_ns, count, up=False)} s: gap {common.percent(found.gap)}"
    )
    if found.runs or found.unfinished:
        table = common.new_table(
            "policy", "mean s>", "x optimum, at least>", "at most>", "evictions>", "outcome",
            prose=("outcome",), optional=("evictions", "outcome", "mean s"),
        )  # fmt: skip
        for run in found.runs:
            table.add_row(
                escape(run.policy),
                _mean(run.objective_ns, count, up=True),
                common.times(run.objective_ns, found.objective_ns, up=False),
                common.times(run.objective_ns, found.lower_bound_ns, up=True),
                common.or_dash(run.evictions),
                str(run.outcome),
            )
        for name in found.unfinished:
            table.add_row(escape(name), "-", "-", "-", "-", "unfinished")
        common.print_table(table)
    if found.lower_bound_ns is not None:
        common.messages.print(COVERED, soft_wrap=True)
    common.say_certificates(output, budgets)


def _mean(total_ns: int | None, count: int, *, up: bool) -> str:
    """Return a mean in seconds to the microsecond, rounded outward."""
    if total_ns is None:
        return "-"
    scale = max(count, 1) * NANOSECONDS // 1_000_000
    micros = -(-total_ns // scale) if up else total_ns // scale
    return f"{micros // 1_000_000:,}.{micros % 1_000_000:06}"
