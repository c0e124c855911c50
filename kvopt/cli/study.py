"""``kvopt study`` and ``report``: certified experiments."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kvopt.cli import common
from kvopt.cli.common import argument, finish, option
from kvopt.cli.printing import (
    is_json,
    is_watched,
    name_of,
    say,
    show,
    show_line,
    table,
    try_folder,
    try_outputs,
    warn,
)
from kvopt.files.reading import read_text
from kvopt.show.summary import counted

if TYPE_CHECKING:
    from kvopt.studies import StudyProgress, StudyResult

_LOG_EVERY = 10.0
"""Seconds between two lines of progress in a log file."""


@dataclass(frozen=True)
class WorkOptions:
    """Options for the place and manner of the work, with the names of `run_study`."""

    jobs: int | None = option("Processes; default: every core.", "N", "-j", min=1)
    scheduler: str | None = option("Dask scheduler: tcp://host:8786.", "ADDRESS")
    limit: int | None = option("The first K draws of each entry only.", "K", min=1)
    retry: bool = option("Repeat instances that failed in an earlier run.")


def study_command(
    *,
    work: WorkOptions,
    name: str | None = argument("NAME|FILE.toml", "A file, or one of {studies}.", None),
    out: Path | None = option("Folder of the study.", "DIR"),
    data: Path | None = option("Folder of the public traces, which replace stand-ins.", "DIR"),
    describe: bool = option("Print the description of the study and do nothing."),
    modules: common.Modules,
    _json: common.Json,
) -> None:
    """Run many instances through many policies and certify every ratio.

    Finished work in the folder is not done again, so the same command continues after a
    crash or Ctrl-C.  Without a name the built-in studies are listed.  Exit status: 0, 1 if an
    instance failed, 130 after Ctrl-C, 2 for input that is refused.
    """
    from kvopt.studies.answers import left_out
    from kvopt.studies.description import builtin_text, study_from_text
    from kvopt.studies.execution import run_study

    if name is None:
        _list()
        return
    file = Path(name) if name.endswith(".toml") else None
    text = builtin_text(name) if file is None else read_text(file)
    study = study_from_text(text, file, checked=bool(file or data), data=data)
    # Every process that works on the study loads them too.
    study = replace(study, modules=tuple(dict.fromkeys([*study.modules, *(modules or ())])))
    if describe:
        show({"name": study.name, **tomllib.loads(text)}, text.splitlines())
        return
    if out is None:
        raise typer.BadParameter("is missing", param_hint="--out")
    try_folder(out)
    if study.limits[0].batch_time is not None:
        model = tomllib.loads(text).get("batch_time")
        common.say_machine(model, 'batch_time = "{}"', "batch_time in the description")
    if work.scheduler is None:
        common.warn_oversubscription(work.jobs)
    try:
        observer = None if is_json() else _observer(study.name)
        result = run_study(study, out, observer=observer, **vars(work))
    except KeyboardInterrupt:  # before any work
        raise typer.Exit(common.INTERRUPTED) from None
    if is_watched():
        show_line("")
    progress, counts = result.progress, ("instances", "done", "failed", "before")
    answer = {
        "study": result.study.name,
        "directory": str(result.directory),
        **{key: getattr(progress, key) for key in counts},
        "records": len(result.records),
        "damaged": list(result.damaged),
        "answer": list(result.answer),
        "left_out": left_out(result.records),
        "seconds": round(progress.seconds, 3),
    }
    with common.undisturbed():
        for message in result.damaged:
            say(f"kvopt: {message}")
        show(answer, _study_lines(result))
    finish(result.signal_number, common.FAILED * bool(progress.failed))


def _list() -> None:
    from kvopt.studies.description import builtin_names, builtin_study

    rows, listed = [], []
    for study in (builtin_study(name, checked=False) for name in builtin_names()):
        count = sum(entry.draws for entry in study.entries) * len(study.limits)
        rows.append({"study": study.name, "instances": count, "what it asks": study.title})
        listed.append({"name": study.name, "title": study.title})
    show({"studies": listed}, table(rows))


def _study_lines(result: StudyResult) -> Iterator[str]:
    from kvopt.studies.answers import left_out
    from kvopt.studies.ratio_intervals import by_policy, four_digits, in_percent

    limits = result.study.limits[0]
    in_seconds = limits.batch_time is not None
    rows = []
    for row in by_policy(result.records):
        cells: dict[str, object] = {
            "policy": row.policy,
            "runs": len(row.records),
            "completed": len(row.done),
            "proved": row.proved,
            "mean x optimum": row.mean,
            "worst x optimum": row.worst,
        }
        if in_seconds:
            cells["mean s"] = row.latency and four_digits(row.latency)
        if limits.slo:  # no schedule is above the ceiling
            cells["attain"] = in_percent(row.attaining("attained"))
            cells["ceiling"] = in_percent(row.attaining("ceiling"), up=True)
            if limits.attain is not None:
                reached, impossible = row.judged("reached"), row.judged("impossible")
                share = f"{reached} of {len(row.records)}, impossible {impossible}"
                cells[limits.attain] = share
        rows.append(cells)
    yield from table(rows)
    yield from map(str, result.answer)
    for line in left_out(result.records):
        say(f"kvopt: {line}")
    for record in result.records:
        if record.outcome == "error":
            label = record.instance.name + (f", {record.policy}" if record.policy else "")
            say(f"kvopt: failed: {label}: {record.error}")
    progress = result.progress
    say(
        f"kvopt: {progress.done} of {progress.instances} instances done, {progress.failed} failed; "
        f"{result.directory} holds the results"
    )


def _observer(label: str) -> Callable[[StudyProgress], None]:
    """Return an observer that shows counts, rate, time left and the worst ratio.

    A terminal shows one line that is kept up to date; a log file gets a line now and then.
    """
    last_logged = -_LOG_EVERY

    def observe(progress: StudyProgress) -> None:
        nonlocal last_logged
        parts = [label, f"{progress.done}/{progress.instances} instances"]
        if progress.failed:
            parts.append(f"{progress.failed} failed")
        if progress.rate is not None and progress.seconds_left is not None:
            left = timedelta(seconds=round(progress.seconds_left))
            parts += [f"{60 * progress.rate:.3g} a minute", f"{left} left"]
        if (worst := progress.worst) is not None:
            parts.append(f"worst {worst.ratio[0]:.3f} ({worst.policy}, {worst.instance.name})")
        line = "  ".join(parts)
        if is_watched():
            show_line(line)
        elif time.monotonic() - last_logged >= _LOG_EVERY:
            last_logged = time.monotonic()
            say(line)

    return observe


def report_command(
    *,
    folder: Path = argument("DIR", "The folder of a study."),
    output: Path | None = option("Default: DIR/report.html.", "FILE.html", "-o"),
    csv: Path | None = option("Default: the name of the page with .csv.", "FILE"),
    verify: bool = option("Verify every certificate before it is linked."),
) -> None:
    """Write a study as a page that needs no network, and its records as CSV.

    The page shows ratios, gaps and the worst instances, with links to certificates.
    Exit status: 0, 1 if a certificate is false, 2 for input that is refused.
    """
    from kvopt.studies.report import write_report
    from kvopt.studies.report.writing import PAGE

    if output is None and folder.is_dir():
        output = folder / PAGE
        try_outputs(output=output)
    written = write_report(folder, output, csv, verify=verify)
    for line in (*written.warnings, *written.faults):
        warn(line)
    paths = (written.page, written.table)
    files = ", ".join(name_of(path) for path in paths if path is not None)
    say(f"wrote {files}: {counted(written.records, 'record')}")
    finish(status=common.FAILED * bool(written.faults))
