"""``kvopt study``: certified experiments that go on where they were broken off."""

from __future__ import annotations

import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from kvopt.cli import common
from kvopt.cli.assumed import say_assumed_clock_of_study
from kvopt.cli.outputs import try_folder

if TYPE_CHECKING:
    from kvopt.experiments.studies import Record, Study, StudyProgress, StudyResult

_FAILED = 1
_INTERRUPTED = 130


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("study")(study_command)


def study_command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME|FILE.toml", help="A built-in study, or a file.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of the study.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes; default: every core."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="Dask scheduler: tcp://host:8786."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, metavar="K", help="The first K draws of each entry only."),
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Do again what failed in an earlier run.")
    ] = False,
    describe: Annotated[
        bool, typer.Option("--describe", help="Print the description of the study and do nothing.")
    ] = False,
    modules: common.Modules = None,
    json: common.Json = False,
) -> None:
    """Run many instances through many policies and certify every ratio.

    What is in the folder counts and is not done again, so the same command goes on after a
    crash or Ctrl-C.  Without a name the built-in studies are listed.  Exit status: 0, 1 if an
    instance failed, 130 after Ctrl-C, 2 for input that is refused.
    """
    from kvopt.experiments.studies.running import run_study

    if name is None:
        _list(json)
        return
    study, text = _described(name)
    # Every process that works on the study loads them too.
    study = replace(study, modules=tuple(dict.fromkeys([*study.modules, *(modules or ())])))
    if describe:
        sys.stdout.write(text)
        return
    if out is None:
        raise typer.BadParameter("is missing", param_hint="--out")
    try_folder("--out", out)
    if study.limits[0].batch_time is not None and "batch_time" not in tomllib.loads(text):
        say_assumed_clock_of_study()
    if scheduler is None:
        common.warn_oversubscription(jobs)
    try:
        with StudyLine(study.name, quiet=json) as observer:
            found = run_study(
                study,
                out,
                jobs=jobs,
                scheduler=scheduler,
                limit=limit,
                retry=retry,
                observer=observer,
            )
    except KeyboardInterrupt:  # before anything was begun
        raise typer.Exit(_INTERRUPTED) from None
    with common.undisturbed():
        for message in found.damaged:
            common.messages.print(f"kvopt: {escape(message)}")
        if json:
            common.print_json(_to_json(found))
        else:
            _print(found)
    if found.signal_number is not None:
        raise typer.Exit(128 + found.signal_number)
    if found.progress.failed:
        raise typer.Exit(_FAILED)


def _described(name: str) -> tuple[Study, str]:
    from kvopt.experiments.studies import builtin, description
    from kvopt.files.reading import read_text

    if name.endswith(".toml"):
        return description.read_study(name), read_text(name)
    return builtin.builtin_study(name), builtin.builtin_text(name)


def _list(json: bool) -> None:
    from kvopt.experiments.studies.builtin import builtin_names, builtin_study

    studies = [builtin_study(name) for name in builtin_names()]
    if json:
        common.print_json({"studies": [{"name": s.name, "title": s.title} for s in studies]})
        return
    table = common.new_table(
        "study", "instances>", "what it asks", prose=("what it asks",), optional=("instances",)
    )
    for study in studies:
        instances = sum(entry.instances for entry in study.entries) * len(study.limits)
        table.add_row(study.name, common.or_dash(instances), escape(study.title))
    common.print_table(table)


def _to_json(found: StudyResult) -> dict[str, object]:
    progress = found.progress
    return {
        "study": found.study.name,
        "directory": str(found.directory),
        "instances": progress.instances,
        "done": progress.done,
        "failed": progress.failed,
        "before": progress.before,
        "records": len(found.records),
        "damaged": list(found.damaged),
        "verdicts": [verdict.to_json() for verdict in found.verdicts],
        "seconds": round(progress.seconds, 3),
    }


def _print(found: StudyResult) -> None:
    from kvopt.experiments.studies.summary import by_policy

    in_seconds = found.study.limits[0].batch_time is not None
    table = common.new_table(
        "policy", "runs>", "completed>", "proved>", "mean x optimum>", "worst x optimum>",
        *(["mean s>"] if in_seconds else []), optional=("proved",),
    )  # fmt: skip
    for row in by_policy(found.records):
        counts = map(common.or_dash, (row.runs, row.completed, row.proved))
        cells = [escape(row.policy), *counts, escape(str(row.mean)), escape(str(row.worst))]
        mean = "-" if row.latency is None else f"{row.latency:,.3f}"
        table.add_row(*cells, *([mean] if in_seconds else []))
    if table.row_count:
        common.print_table(table)
    for verdict in found.verdicts:
        print(f"{verdict.verdict}: {verdict.claim} ({verdict.source})")
        print(f"  published: {verdict.published}\n  found:     {verdict.found}")
    for record in found.records:
        if record.outcome == "error":
            label = record.instance.name + (f", {record.policy}" if record.policy else "")
            common.messages.print(f"kvopt: failed: {escape(f'{label}: {record.error}')}")
    progress = found.progress
    common.messages.print(
        f"kvopt: {progress.done} of {progress.instances} instances done, {progress.failed} failed; "
        f"{escape(str(found.directory))} holds what was found"
    )


class StudyLine:
    """An observer that shows counts, rate, time left and the worst ratio.

    On a terminal it is a bar that is kept up to date; in a log file there is a line now and then.
    """

    _LOG_EVERY = 10.0

    def __init__(self, label: str, quiet: bool = False) -> None:
        self._label = label
        self._quiet = quiet
        self._printed = -self._LOG_EVERY
        shown = common.is_watched() and not quiet
        self._bar = _bar() if shown else None
        self._task = None if self._bar is None else self._bar.add_task(label, total=None)

    def __enter__(self) -> StudyLine:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *ending: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: StudyProgress) -> None:
        """Show where the study is."""
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task,
                total=progress.instances,
                completed=progress.done,
                description=escape(f"{self._label}  {_told(progress)}"),
            )
        elif not self._quiet and time.monotonic() - self._printed >= self._LOG_EVERY:
            self._printed = time.monotonic()
            common.messages.print(escape(f"{self._label}  {_told(progress)}"))


def _bar() -> Progress:
    whole = Column(overflow="fold")  # goes on in a further line rather than lose a name
    columns = (
        BarColumn(bar_width=20),
        TextColumn("{task.description}", table_column=whole),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _told(progress: StudyProgress) -> str:
    parts = [f"{progress.done}/{progress.instances} instances"]
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.rate is not None and progress.seconds_left is not None:
        parts.append(f"{60 * progress.rate:.3g} a minute")
        parts.append(f"{_clock(progress.seconds_left)} left")
    if progress.worst is not None:
        parts.append(_worst(progress.worst))
    return "  ".join(parts)


def _worst(record: Record) -> str:
    return f"worst {record.ratio[0]:.3f} ({record.policy}, {record.instance.name})"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
