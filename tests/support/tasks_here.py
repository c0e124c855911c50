"""Tasks of studies in the process of the tests, which has loaded already what they need."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any

from kvopt.studies import workers as processes
from kvopt.studies.tasks import Task, TaskResult, run_task

WORKERS, WAIT = processes.workers, concurrent.futures.wait
"""What hands tasks to processes, and what waits for them."""


class Later(Future[TaskResult]):
    """A task that is done when it is waited for."""

    numbers = count()

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.number, self.task = next(self.numbers), task

    def do(self) -> None:
        """Do it as a process does: what fails is a record."""
        try:
            found = run_task(self.task, {}, lambda *_: None)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            found = TaskResult((self.task.failure(said, 0.0),))
        self.set_result(found)


def workers(
    jobs: int, scheduler: str | None
) -> AbstractContextManager[Callable[[Task], Future[TaskResult]]]:
    """Yield what keeps tasks for later; a cluster stays one."""
    return nullcontext(Later) if scheduler is None else WORKERS(jobs, scheduler)


def wait(left: set[Any], *limits: Any, **options: Any) -> tuple[set[Any], set[Any]]:
    """Do the first of the tasks that were kept for later; wait for others."""
    if not all(isinstance(each, Later) for each in left):
        return WAIT(left, *limits, **options)
    first = min(left, key=lambda each: each.number)
    first.do()
    return {first}, left - {first}
