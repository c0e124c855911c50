"""``kvopt study``: certified experiments that continue after an interruption."""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kvopt.cli import common
from kvopt.cli.common import argument, option
from kvopt.cli.messages import show_line
from kvopt.cli.outputs import try_folder
from kvopt.files.reading import read_text
from kvopt.problem.scopes import Scope

if TYPE_CHECKING:
    from kvopt.experiments.studies import StudyProgress, StudyResult

_LOG_EVERY = 10.0
"""Seconds between two lines of progress in a log file."""


@dataclass(frozen=True)
class WorkOptions:
    """Options for the place and manner of the work, with the names of `run_study`."""

    jobs: int | None = option("--jobs -j", "Processes; default: every core.", "N", min=1)
    scheduler: str | None = option("--scheduler", "Dask scheduler: tcp://host:8786.", "ADDRESS")
    limit: int | None = option("--limit", "The first K draws of each entry only.", "K", min=1)
    retry: bool = option("--retry", "Repeat instances that failed in an earlier run.")


def study_command(
    *,
    work: WorkOptions,
    name: str | None = argument(
        "NAME|FILE.toml", "A file, or one of {studies}.", "studies", default=None
    ),
    out: Path | None = option("--out", "Folder of the study.", "DIR"),
    data: Path | None = option(
        "--data", "Folder of the public traces, which replace stand-ins.", "DIR"
    ),
    describe: bool = option("--describe", "Print the description of the study and do nothing."),
    modules: list[str] | None = common.MODULES,
    json: bool = common.JSON,
) -> None:
    """Run many instances through many policies and certify every ratio.

    Finished work in the folder is not done again, so the same command continues after a
    crash or Ctrl-C.  Without a name the built-in studies are listed.  Exit status: 0, 1 if an
    instance failed, 130 after Ctrl-C, 2 for input that is refused.
    """
    from kvopt.experiments.studies.description import builtin_text, study_from_text
    from kvopt.experiments.studies.running import run_study

    if name is None:
        _list(json)
        return
    file = Path(name) if name.endswith(".toml") else None
    text = builtin_text(name) if file is None else read_text(file)
    study = study_from_text(text, file, checked=bool(file or data), data=data)
    # Every process that works on the study loads them too.
    study = replace(study, modules=tuple(dict.fromkeys([*study.modules, *(modules or ())])))
    if describe:
        if json:
            common.print_json({"name": study.name, **tomllib.loads(text)})
        else:
            sys.stdout.write(text)
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
        observer = None if json else _observer(study.name)
        found = run_study(study, out, observer=observer, **vars(work))
    except KeyboardInterrupt:  # before any work
        raise typer.Exit(common.INTERRUPTED) from None
    if common.is_watched() and not json:
        show_line("")
    with common.undisturbed():
        for message in found.damaged:
            common.say(f"kvopt: {message}")
        if json:
            common.print_json(_to_json(found))
        else:
            _print(found)
    common.finish(found.signal_number, common.FAILED * bool(found.progress.failed))


def _list(json: bool) -> None:
    from kvopt.experiments.studies.description import builtin_names, builtin_study

    studies = [builtin_study(name, checked=False) for name in builtin_names()]
    if json:
        common.print_json({"studies": [{"name": s.name, "title": s.title} for s in studies]})
        return
    rows = [
        {
            "study": study.name,
            "instances": sum(entry.instances for entry in study.entries) * len(study.limits),
            "what it asks": study.title,
        }
        for study in studies
    ]
    common.print_rows(rows, prose=("what it asks",), optional=("instances",))


def _to_json(found: StudyResult) -> dict[str, object]:
    from kvopt.experiments.studies.answers import left_out

    progress = found.progress
    counts = ("instances", "done", "failed", "before")
    return {
        "study": found.study.name,
        "directory": str(found.directory),
        **{key: getattr(progress, key) for key in counts},
        "records": len(found.records),
        "damaged": list(found.damaged),
        "answer": list(found.answer),
        "left_out": left_out(found.records),
        "verdicts": [verdict.to_json() for verdict in found.verdicts],
        "seconds": round(progress.seconds, 3),
    }


def _print(found: StudyResult) -> None:
    from kvopt.experiments.studies.answers import left_out
    from kvopt.experiments.studies.intervals import by_policy, four_digits

    limits = found.study.limits
    in_seconds = limits[0].batch_time is not None
    scoped = any(each.scope is not Scope.RUNS for each in limits)
    rows = [
        {
            "policy": row.policy,
            **({"scope": row.scope} if scoped else {}),
            "runs": len(row.records),
            "completed": len(row.done),
            "proved": row.proved,
            "mean x optimum": row.mean,
            "worst x optimum": row.worst,
            **({"x slower": row.machine} if limits[0].slower else {}),
            **({"mean s": row.latency and four_digits(row.latency)} if in_seconds else {}),
        }
        for row in by_policy(found.records)
    ]
    if rows:
        common.print_rows(rows, optional=("proved",))
    for sentence in found.answer:
        print(sentence)
    for verdict in found.verdicts:
        print(verdict)
    for line in left_out(found.records):
        common.say(f"kvopt: {line}")
    for record in found.records:
        if record.outcome == "error":
            label = record.instance.name + (f", {record.policy}" if record.policy else "")
            common.say(f"kvopt: failed: {label}: {record.error}")
    progress = found.progress
    common.say(
        f"kvopt: {progress.done} of {progress.instances} instances done, {progress.failed} failed; "
        f"{found.directory} holds the results"
    )


def _observer(label: str) -> Callable[[StudyProgress], None]:
    """Return an observer that shows counts, rate, time left and the worst ratio.

    A terminal shows one line that is kept up to date; a log file gets a line now and then.
    """
    said = -_LOG_EVERY

    def show(progress: StudyProgress) -> None:
        nonlocal said
        line = f"{label}  {_told(progress)}"
        if common.is_watched():
            show_line(line)
        elif time.monotonic() - said >= _LOG_EVERY:
            said = time.monotonic()
            common.say(line)

    return show


def _told(progress: StudyProgress) -> str:
    parts = [f"{progress.done}/{progress.instances} instances"]
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.rate is not None and progress.seconds_left is not None:
        left = timedelta(seconds=round(progress.seconds_left))
        parts += [f"{60 * progress.rate:.3g} a minute", f"{left} left"]
    if (worst := progress.worst) is not None:
        parts.append(f"worst {worst.ratio[0]:.3f} ({worst.policy}, {worst.instance.name})")
    return "  ".join(parts)
