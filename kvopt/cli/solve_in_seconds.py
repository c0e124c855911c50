"""``kvopt solve --seconds``: the best run and the best bound in seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kvopt.cli import common
from kvopt.cli.live import LiveProgress
from kvopt.errors import InvalidInput
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.clocks import Seconds
from kvopt.problem.instance import Instance, refuse_blocks

if TYPE_CHECKING:
    from kvopt.search.seconds import TimedResult


def refuse_in_seconds(given: Mapping[str, object]) -> None:
    """Refuse options that are for rounds, where one of them was given."""
    for name, value in given.items():
        if value:
            raise InvalidInput("is for rounds, not for --seconds", field=name)


def solve_files_in_seconds(
    given: Sequence[tuple[Path, Instance]],
    clock: Seconds,
    model: str | None,
    *,
    time_limit: float | None,
    threads: int | None,
    seed: int,
    gap: float | None,
    json: bool,
) -> None:
    """Solve instances one after another, and print what was found; see `solve_in_seconds`."""
    from kvopt.search.seconds import solve_in_seconds

    common.warn_oversubscription(threads)
    for file, instance in given:  # before there is work that it would cost
        with common.blamed_on(file):
            refuse_blocks(instance, "a clock of seconds")
            clock.arrivals(instance)
    common.ClockOptions(True, model).say_assumed()
    results: list[TimedResult] = []
    with common.undisturbed() as signals:
        for file, instance in given:
            with LiveProgress(common.label(file), quiet=json, total=in_seconds) as observer:
                found = solve_in_seconds(
                    instance, clock, time_limit=time_limit, threads=threads, seed=seed,
                    observer=observer, gap=gap,
                )  # fmt: skip
            results.append(found)
            if found.signal_number is not None or signals:
                break
        _report(given, clock, results, json)
    common.exit_by_signal(results[-1].signal_number)
    if any(result.run is None for result in results):
        raise typer.Exit(common.NOTHING_FOUND)


def in_seconds(nanoseconds: int | None) -> str:
    """Return a total in words."""
    return "-" if nanoseconds is None else f"{nanoseconds / NANOSECONDS:,.6g} s"


def _report(
    given: Sequence[tuple[Path, Instance]],
    clock: Seconds,
    results: Sequence[TimedResult],
    json: bool,
) -> None:
    if json:
        rows = [
            {"file": str(file), **result.to_json()}
            for (file, _), result in zip(given, results, strict=False)
        ]
        common.print_json(results[0].to_json() if len(given) == 1 else {"results": rows})
        return
    rows = []
    for (file, instance), result in zip(given, results, strict=False):
        count = max(len(instance), 1) * clock.scale
        means = (result.objective, result.lower_bound)
        mean, least = (None if value is None else f"{value / count:,.4f}" for value in means)
        rows.append(
            {
                "instance": instance.name or common.label(file),
                "n": str(len(instance)),
                "M": str(instance.memory),
                "workers": str(instance.workers),
                "status": result.status,
                "mean s": mean,
                "at least": least,
                "gap": common.percent(result.gap),
                "found by": result.found_by,
                "stopped": result.stop_reason,
            }
        )
    common.print_rows(rows, ("found by",), ("M", "n", "stopped", "found by", "gap"))
    common.say(results[0].scope.sentence)
    for (file, _), result in zip(given, results, strict=False):
        for line in (*result.faults, *result.notes):
            common.say(f"{common.label(file)}: {line}")
