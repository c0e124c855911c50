"""Run a study: what was done before counts, what is left is handed out, each end is kept."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvopt.errors import KvoptError
from kvopt.experiments.studies import folder
from kvopt.experiments.studies.builtin import builtin_study
from kvopt.experiments.studies.claims import CLAIMS, Verdict
from kvopt.experiments.studies.description import Study, read_study
from kvopt.experiments.studies.executors import Submit, workers
from kvopt.experiments.studies.interrupts import interruptible
from kvopt.experiments.studies.lock import locked
from kvopt.experiments.studies.progress import StudyObserver, StudyProgress, Tally
from kvopt.experiments.studies.records import Record, lines_of, read_records
from kvopt.experiments.studies.resume import EarlierRecords
from kvopt.experiments.studies.task_runner import TaskResult
from kvopt.experiments.studies.tasks import Task, tasks_of
from kvopt.model.instance import checked_integer
from kvopt.search.incumbent import available_threads


class ClusterLost(KvoptError):
    """The scheduler of a cluster went away."""


@dataclass(frozen=True)
class StudyResult:
    """What came of a run of a study.

    Parameters
    ----------
    study, directory
        What was studied, and the folder of it.
    progress
        Counts, at the end.
    records
        Every record of the folder, those of earlier runs included.
    verdicts
        Published claims beside what was found.
    damaged
        A message for each line of the record file that does not count.
    signal_number
        The signal that ended the run, where one did.
    """

    study: Study
    directory: Path
    progress: StudyProgress
    records: tuple[Record, ...]
    verdicts: tuple[Verdict, ...]
    damaged: tuple[str, ...] = ()
    signal_number: int | None = None


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
    """Run a study, or what is left of it.

    Parameters
    ----------
    study
        A name of a built-in study, the path of a ``.toml`` file, or a `Study`.
    out
        Its folder.  What is in there counts and is not done again.
    jobs
        Instances at a time, each in a process; as many as there are cores for, by default.
    scheduler
        Address of a Dask scheduler whose workers do the work instead.
    limit
        Only so many draws of each entry.
    retry
        Do again what failed before.
    observer
        Called with a `StudyProgress` when an instance is done.

    Returns
    -------
    StudyResult
        Failures of single instances are in it; Ctrl-C is an ordinary end.
    """
    chosen = study if isinstance(study, Study) else study_named(study)
    for label, number in (("--jobs", jobs), ("--limit", limit)):
        if number is not None:
            checked_integer(number, label, 1)
    if jobs is None:
        jobs = max(1, available_threads() // chosen.limits[0].threads)
    directory = folder.made(Path(out))
    with locked(directory):
        folder.sweep(directory)
        folder.keep_description(directory, chosen)
        run = _Run(chosen, directory, limit, retry, observer)
        run.to_the_end(jobs, scheduler)
        return run.result()


def study_named(name: str | Path) -> Study:
    """Return a built-in study by its name, or one from the path of a ``.toml`` file."""
    return read_study(name) if str(name).endswith(".toml") else builtin_study(str(name))


class _Run:
    """One run: its tasks, and what is known of them."""

    def __init__(
        self,
        study: Study,
        directory: Path,
        limit: int | None,
        retry: bool,
        observer: StudyObserver | None,
    ) -> None:
        self.study = study
        self.directory = directory
        self.ledger = folder.Ledger(directory)
        self.damaged: list[str] = []
        self.signal_number: int | None = None
        earlier = EarlierRecords(directory, lines_of(directory, self.damaged.append), retry)
        tasks = list(tasks_of(study, limit))
        self.tally = Tally(len(tasks), observer)
        self.left: list[Task] = []
        for task in tasks:
            done = earlier.records(task)
            if done is None:
                self.left.append(task)
            else:
                self.tally.know(done)

    def to_the_end(self, jobs: int, scheduler: str | None) -> None:
        """Do what is left; an interrupt keeps what is done."""
        self.tally.tell()
        if not self.left:
            return
        with interruptible(self._end_by), workers(jobs, scheduler) as (submit, window):
            self._work(submit, window)

    def _end_by(self, number: int) -> None:
        self.signal_number = number

    def _work(self, submit: Submit, window: int) -> None:
        pending: dict[Future[dict[str, Any]], Task] = {}
        for task in self.left:
            pending[submit(task)] = task
            if len(pending) >= window:
                self._keep_next(pending)
        while pending:
            self._keep_next(pending)

    def _keep_next(self, pending: dict[Future[dict[str, Any]], Task]) -> None:
        """Wait for what is done next, and write it down."""
        for future in wait(pending, return_when=FIRST_COMPLETED).done:
            found = _came_of(future, pending.pop(future))
            self.ledger.append(found)
            self.tally.add(found.records)

    def result(self) -> StudyResult:
        """Judge the claims by all records of the folder."""
        records = read_records(self.directory, lambda _: None)
        verdicts = [v for claim in self.study.claims for v in CLAIMS[claim](records)]
        folder.write_verdicts(self.directory, self.study.name, verdicts)
        return StudyResult(
            study=self.study,
            directory=self.directory,
            progress=self.tally.progress(),
            records=tuple(records),
            verdicts=tuple(verdicts),
            damaged=tuple(self.damaged),
            signal_number=self.signal_number,
        )


def _came_of(future: Future[dict[str, Any]], task: Task) -> TaskResult:
    try:
        return TaskResult.from_json(future.result())
    except CancelledError:
        raise ClusterLost("the scheduler is gone; what was done until then is kept") from None
    except Exception as error:  # the machine that should do it failed, and others after it
        return TaskResult((task.failure(f"{type(error).__name__}: {error}", 0.0),))
