"""Run a study: skip finished work, hand out the rest, keep each result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kvopt.errors import KvoptError
from kvopt.incumbent.interrupts import signals_remembered
from kvopt.incumbent.limits import available_threads
from kvopt.problem.requests import checked_integer
from kvopt.show.dataframes import frame
from kvopt.studies import folder
from kvopt.studies.answers import answer
from kvopt.studies.description import Study, builtin_study, read_study
from kvopt.studies.ratio_intervals import Runs, by_policy
from kvopt.studies.record_lines import COUNTS, Record, grouped, lines_of, natural, read_records
from kvopt.studies.tasks import Task, TaskResult, tasks_of
from kvopt.studies.workers import workers

if TYPE_CHECKING:
    from pandas import DataFrame


_LISTENING = 0.5
"""Seconds after which a signal is seen at the latest."""
_COLUMNS = (
    "family", "parameters", "requests_least", "requests_most", "memory_least", "memory_most",
    "policy", "runs", "completed", "proved",
    "mean_least", "mean_most", "worst_least", "worst_most",
)  # fmt: skip
_ELSEWHERE = ("n", "memory", "file", "requests", *COUNTS)
"""Keys of an instance that other columns show, or that no table has room for."""


class ClusterLost(KvoptError):
    """The connection to the scheduler of a cluster was lost."""


@dataclass(frozen=True)
class StudyProgress:
    """Progress of a study.

    Parameters
    ----------
    instances, done, failed
        All instances; those with records; those of them with a failure.
    before
        Instances that were done when this run began.
    seconds
        Time of this run.
    worst
        The record with the largest certain ratio, ``value / upper``.
    """

    instances: int
    done: int = 0
    failed: int = 0
    before: int = 0
    seconds: float = 0.0
    worst: Record | None = None

    @property
    def rate(self) -> float | None:
        """Instances a second, None before the first is done."""
        new = self.done - self.before
        return new / self.seconds if new and self.seconds else None

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the rest takes at this rate."""
        return None if self.rate is None else (self.instances - self.done) / self.rate

    def counting(self, records: Sequence[Record]) -> StudyProgress:
        """Return the progress after one more instance with these records."""
        judged = [r for r in (self.worst, *records) if r is not None and r.ratio[0] is not None]
        worst = max(judged, key=lambda record: record.ratio[0] or 0, default=None)
        failed = self.failed + any(record.outcome == "error" for record in records)
        return replace(self, done=self.done + 1, failed=failed, worst=worst)


StudyObserver = Callable[[StudyProgress], None]


@dataclass(frozen=True)
class StudyResult:
    """The result of a run of a study.

    Parameters
    ----------
    study, directory
        The study and its folder.
    progress
        Final counts.
    records
        Every record of the folder, those of earlier runs included.
    damaged
        A message for each ignored line of the record file.
    signal_number
        The signal that ended the run, if any.
    """

    study: Study
    directory: Path
    progress: StudyProgress
    records: tuple[Record, ...]
    damaged: tuple[str, ...] = ()
    signal_number: int | None = None

    @property
    def answer(self) -> list[str]:
        """Answers of the study, in sentences that its certified intervals prove."""
        return answer(self.records)

    def to_dataframe(self) -> DataFrame:
        """Return a row for each source and policy: runs, and the ends of mean and worst."""

        def source(record: Record) -> str:
            """Return the key of a family or a file with its parameters."""
            keys = {k: v for k, v in record.instance.parameters.items() if k not in COUNTS}
            name = record.instance.family or record.instance.name
            return json.dumps([None if "file" in keys else name, keys], sort_keys=True)

        judged = (record for record in self.records if record.policy is not None)
        groups = grouped(judged, source).values()
        rows = [_runs_row(runs) for group in groups for runs in by_policy(group)]
        order = "family", "parameters", "policy"
        rows.sort(key=lambda row: [natural(str(row[name])) for name in order])
        return frame({name: [row[name] for row in rows] for name in _COLUMNS})


def _runs_row(runs: Runs) -> dict[str, object]:
    """Return the cells of one policy on the instances of one source."""
    instances = [record.instance for record in runs.records]
    first, keys = instances[0], instances[0].parameters
    name = first.name if "file" in keys else first.family or first.name
    words = ", ".join(f"{key} {value}" for key, value in keys.items() if key not in _ELSEWHERE)
    sizes = [i.requests for i in instances], [i.memory for i in instances]
    ratios = (runs.mean.lower, runs.mean.upper, runs.worst.lower, runs.worst.upper)
    cells = (
        name,
        words,
        *(end(size) for size in sizes for end in (min, max)),
        runs.policy,
        len(runs.records),
        len(runs.done),
        runs.proved,
        *(None if end is None else float(end) for end in ratios),
    )
    return dict(zip(_COLUMNS, cells, strict=True))


def run_study(
    study: str | Path | Study,
    out: str | Path,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    limit: int | None = None,
    retry: bool = False,
    observer: StudyObserver | None = None,
) -> StudyResult:
    """Run a study, or the rest of it.

    Parameters
    ----------
    study
        A name of a built-in study, the path of a ``.toml`` file, or a `Study`.
    out
        Its folder.  Finished work in it is not done again.
    jobs
        Instances at a time, each in a process; by default by the number of cores.
    scheduler
        Address of a Dask scheduler whose workers do the work instead.
    limit
        Only so many draws of each entry.
    retry
        Repeat failed instances.
    observer
        Called with a `StudyProgress` when an instance is done.

    Returns
    -------
    StudyResult
        Failures of single instances are in it; Ctrl-C is an ordinary end.
    """
    if not isinstance(study, Study):
        study = read_study(study) if str(study).endswith(".toml") else builtin_study(str(study))
    for label, number in (("jobs", jobs), ("limit", limit)):
        if number is not None:
            checked_integer(number, label, 1)
    if jobs is None:
        jobs = max(1, available_threads() // study.limits[0].threads)
    directory = folder.created(Path(out))
    with folder.locked(directory):
        folder.sweep(directory)
        folder.keep_description(directory, study)
        run = _Run(study, directory, observer)
        tasks = run.left(limit, retry)
        run.report()
        if tasks:
            run.work(tasks, jobs, scheduler)
        run.report(is_last=True)
        return StudyResult(
            study=study,
            directory=directory,
            progress=run.progress,
            records=tuple(read_records(directory, lambda _: None)),
            damaged=tuple(run.damaged),
            signal_number=next(iter(run.signals), None),
        )


@dataclass
class _Run:
    """One run: known results, and new ones."""

    study: Study
    directory: Path
    observer: StudyObserver | None
    damaged: list[str] = field(default_factory=list)
    signals: list[int] = field(default_factory=list)
    began: float = 0.0
    progress: StudyProgress = StudyProgress(instances=0)

    def left(self, limit: int | None, retry: bool) -> list[Task]:
        """Return the tasks that are not done, and count the others."""
        lines = lines_of(self.directory, self.damaged.append)
        earlier = {r.key: r for r in lines if not (retry and r.outcome == "error")}
        self.began = time.monotonic()
        tasks = list(tasks_of(self.study, limit))
        self.progress = replace(self.progress, instances=len(tasks))
        left = []
        for task in tasks:
            if done := _records_of(task, earlier, self.directory):
                self.progress = self.progress.counting(done)
            else:
                left.append(task)
        self.progress = replace(self.progress, before=self.progress.done)
        return left

    def work(self, tasks: Sequence[Task], jobs: int, scheduler: str | None) -> None:
        """Do the remaining work and record each result; an interrupt keeps finished work."""
        with workers(jobs, scheduler) as submit, signals_remembered(self.signals.append):
            pending = {submit(task): task for task in tasks}
            left = set(pending)
            while left and not self.signals:
                done, left = wait(left, _LISTENING, return_when=FIRST_COMPLETED)
                for future in done:
                    result = _result_of(future, pending[future])
                    folder.append(self.directory, result)
                    self.progress = self.progress.counting(result.records)
                    self.report()

    def report(self, *, is_last: bool = False) -> None:
        """Show the progress; the last one is part of the result."""
        self.progress = replace(self.progress, seconds=time.monotonic() - self.began)
        if self.observer is not None and not is_last:
            self.observer(self.progress)


def _records_of(task: Task, earlier: Mapping[str, Record], directory: Path) -> list[Record] | None:
    """Return the records of a finished task, else None."""
    keys = [task.key(policy) for policy in task.policies]
    records = [earlier[key] for key in keys if key in earlier]
    if task.limits.certify:
        records = [r for r in records if r.certificate and (directory / r.certificate).is_file()]
    if len(records) == len(keys):
        return records
    whole = earlier.get(task.key(None))
    return None if whole is None else [whole]


def _result_of(future: Future[TaskResult], task: Task) -> TaskResult:
    try:
        return future.result()
    except CancelledError:
        raise ClusterLost("the scheduler is gone; what was done until then is kept") from None
    except Exception as error:  # several machines in a row failed to do it
        return TaskResult((task.failure(f"{type(error).__name__}: {error}", 0.0),))
