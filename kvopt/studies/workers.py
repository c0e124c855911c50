"""Run tasks in processes of this machine or on a Dask cluster, behind one interface.

A policy or a solver that hangs or crashes does so in a process of its own, not in the study.  A
pipe sends the task there, and steps and results back.  The process ends with the pipe, so it never
outlives the study.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from kvopt.errors import InvalidInput, KvoptError
from kvopt.kernels import memory
from kvopt.show.optional import optional
from kvopt.studies.tasks import Task, TaskResult, run_task
from kvopt.version import __version__

_STARTING = 120.0
"""Seconds in which a process has to begin with its first step."""
_TRIES = 2
"""Attempts at a task whose process ended, for example killed from outside."""

_BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from kvopt.studies import workers; workers.work(int(sys.argv[2]))"
)


@contextmanager
def workers(
    jobs: int, scheduler: str | None, patience: float = 10.0
) -> Iterator[Callable[[Task], Future[TaskResult]]]:
    """Yield a function that hands out tasks, here or on a cluster; what is unfinished ends.

    A Dask scheduler has to answer within some seconds, else the study is refused.
    """
    if scheduler is not None:
        with _cluster(scheduler, patience) as cluster:
            yield lambda task: cluster.submit(run, pickle.dumps(task), __version__)
        return
    pool = WorkerPool(memory.default_budget() // jobs)
    executor = ThreadPoolExecutor(jobs, "kvopt-study")
    try:
        # A thread only waits for its process.
        yield lambda task: executor.submit(pool.run, task)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        pool.close()


@contextmanager
def _cluster(address: str, patience: float) -> Iterator[Executor]:
    """Yield the executor of a Dask cluster."""
    distributed = optional("distributed", "cluster")
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # the study reports it
    try:
        client = distributed.Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = f"{address} does not answer: {str(error).splitlines()[0]}"
        raise InvalidInput(reason, field="scheduler") from None
    try:
        # If a worker is lost, another one gets its task.
        yield client.get_executor(pure=False, retries=5)
    finally:
        client.close(timeout=patience)


class WorkerLost(KvoptError):
    """The process of a task hung or ended."""

    def __init__(self, reason: str, step: str, hung: bool = False) -> None:
        super().__init__(f"{step}: {reason}")
        self.step = step
        self.hung = hung


class TaskWorker:
    """A process that does one task at a time, within so many bytes of memory."""

    def __init__(self, ram: int | None = None) -> None:
        budget = {} if ram is None else {memory.VARIABLE: str(ram)}
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._pipe, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN, json.dumps(sys.path), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                env={**os.environ, **budget},
                start_new_session=True,  # the study handles Ctrl-C and ends its workers
            )

    def result(self, task: Task, skip: Mapping[str, str]) -> TaskResult:
        """Run a task; a step that takes too long ends it."""
        step, seconds = "start", _STARTING
        try:
            self._pipe.send((task, skip))
            while self._pipe.poll(seconds):
                answer: TaskResult | tuple[str, float] = self._pipe.recv()
                if isinstance(answer, TaskResult):
                    return answer
                step, seconds = answer
        except (EOFError, OSError):
            raise WorkerLost(self._end(), step) from None
        raise WorkerLost(f"did not end within {seconds:g} s", step, hung=True)

    def _end(self) -> str:
        """Describe how the process ended, with the last line that it wrote."""
        status = self._process.wait()
        try:
            self._output.seek(0)
            lines = self._output.read()[-2000:].decode(errors="replace").strip().splitlines()
        except ValueError:  # the pipe is closed: the study ends
            lines = []
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return f"the process ended {how}" + (f": {lines[-1]}" if lines else "")

    def close(self) -> None:
        """Kill the process; the pipe is closed when no thread waits for it."""
        self._process.kill()
        self._process.wait()
        self._output.close()


class WorkerPool:
    """A worker for each thread that submits tasks, each with a budget of memory."""

    def __init__(self, ram: int | None = None) -> None:
        self._ram = ram
        self._workers: dict[int, TaskWorker] = {}
        self._guard = threading.Lock()
        self._closed = False

    def run(self, task: Task) -> TaskResult:
        """Run a task; retry without a policy that hangs or ends the process."""
        began, tries, skip = time.monotonic(), 0, dict[str, str]()
        thread = threading.get_ident()
        while True:
            with self._guard:
                if self._closed:
                    raise CancelledError
                if thread not in self._workers:
                    self._workers[thread] = TaskWorker(self._ram)
                worker = self._workers[thread]
            try:
                return worker.result(task, skip)
            except WorkerLost as lost:
                worker.close()
                with self._guard:
                    self._workers.pop(thread, None)
                if self._closed:
                    raise CancelledError from None
                label = lost.step.removeprefix("policy ")
                if label != lost.step:
                    skip[label] = str(lost)
                    continue
                tries += 1
                if lost.hung or tries == _TRIES:
                    return TaskResult((task.failure(str(lost), time.monotonic() - began),))

    def close(self) -> None:
        """Kill every process, and distribute no more tasks."""
        with self._guard:
            self._closed = True
            for worker in self._workers.values():
                worker.close()


_HERE = WorkerPool()


def run(task: bytes, version: str) -> TaskResult:
    """Run a pickled task on this machine, in workers that end with its process.

    Both sides need the same version of kvopt.
    """
    if version != __version__:
        reason = f"is {version} where the study runs and {__version__} at the worker"
        raise InvalidInput(reason, field="version of kvopt")
    return _HERE.run(pickle.loads(task))


def work(descriptor: int) -> None:
    """Run tasks from a pipe until the study closes it: the main loop of a worker."""
    os.set_inheritable(descriptor, False)  # a process that a solver starts must not inherit it
    pipe: Connection[Any, Any] = Connection(descriptor)
    tasks: SimpleQueue[tuple[Task, Mapping[str, str]]] = SimpleQueue()

    def listen() -> None:
        try:
            while True:
                tasks.put(pipe.recv())
        except (EOFError, OSError):
            os._exit(0)  # unfinished work is dropped

    threading.Thread(target=listen, daemon=True).start()
    while True:
        task, skip = tasks.get()
        began = time.monotonic()
        try:
            answer = run_task(task, skip, lambda *step: pipe.send(step))
        except Exception as error:  # recorded as the failure of this instance
            reason = f"{type(error).__name__}: {error}"
            answer = TaskResult((task.failure(reason, time.monotonic() - began),))
        pipe.send(answer)
