"""A pool of worker processes, which may hang or crash without harm to the study."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from kvopt.errors import KvoptError
from kvopt.experiments.studies.task_runner import TaskResult
from kvopt.experiments.studies.tasks import Task
from kvopt.kernels import memory

_TRIES = 2
"""Tries of a task whose process ended, killed from outside say."""

_BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from kvopt.experiments.studies import worker"
)


class WorkerLost(KvoptError):
    """The process that worked on a task hung or is gone."""

    def __init__(self, reason: str, step: str, hung: bool) -> None:
        super().__init__(reason)
        self.step = step
        self.hung = hung


class PoolClosed(KvoptError):
    """The study ended while this was to be done."""


class Worker:
    """A process that does one task at a time, within so many bytes of memory."""

    def __init__(self, ram: int | None = None) -> None:
        budget = {} if ram is None else {memory.VARIABLE: str(ram)}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"{_BEGIN}; worker.main()", json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **budget},
            start_new_session=True,  # Ctrl-C is for the study, which ends its workers
        )
        self._replies: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                self._replies.put(line)
        self._replies.put(b"")

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return the answer to it; a step that takes too long ends it."""
        assert self._process.stdin is not None
        step, seconds = "start", 120.0
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise WorkerLost(self._ended(), step, hung=False) from None
        while True:
            try:
                line = self._replies.get(timeout=seconds)
            except Empty:
                reason = f"{step}: did not end within {seconds:g} s"
                raise WorkerLost(reason, step, hung=True) from None
            if not line:
                raise WorkerLost(f"{step}: {self._ended()}", step, hung=False)
            answer: dict[str, Any] = json.loads(line)
            if "interrupted" in answer:
                reason = f"{step}: interrupted by {answer['interrupted']}"
                raise WorkerLost(reason, step, hung=False)
            if "step" not in answer:
                return answer
            step, seconds = answer["step"], answer["seconds"]

    def _ended(self) -> str:
        """Say how the process ended, with the last line that it wrote."""
        status = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return f"the process ended {how}" + (f": {said[-1]}" if said else "")

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            with suppress(OSError):  # what was not sent can no longer be
                self._process.stdin.close()
        self._errors.close()


class WorkerPool:
    """Workers, made when they are needed and used again, each with a budget of memory."""

    def __init__(self, ram: int | None = None) -> None:
        self._ram = ram
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._guard = threading.Lock()
        self._closed = False

    def run(self, task: Task) -> dict[str, Any]:
        """Do a task; a policy that hangs or ends the process is left out in another try."""
        began = time.monotonic()
        skip: dict[str, str] = {}
        tries = 0
        while True:
            try:
                answer = self._asked({"task": task.to_json(), "skip": skip})
            except WorkerLost as lost:
                error, label = str(lost), lost.step.removeprefix("policy ")
                if label != lost.step:
                    skip[label] = error
                    continue
                tries += 1
                if not lost.hung and tries < _TRIES:
                    continue
            else:
                if "error" not in answer:
                    return answer
                error = answer["error"]
            return TaskResult((task.failure(error, time.monotonic() - began),)).to_json()

    def close(self) -> None:
        """End every process, whatever it is doing."""
        with self._guard:
            self._closed = True
            for worker in (*self._idle, *self._busy):
                worker.close()
            self._idle.clear()

    def _asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._guard:
            if self._closed:
                raise PoolClosed
            worker = self._idle.pop() if self._idle else Worker(self._ram)
            self._busy.add(worker)
        answer = None
        try:
            answer = worker.ask(request)
            return answer
        finally:
            with self._guard:
                self._busy.discard(worker)
                if answer is None or self._closed:
                    worker.close()
                else:
                    self._idle.append(worker)


_HERE = WorkerPool()


def run(task: Mapping[str, Any]) -> dict[str, Any]:
    """Do a task on the machine where this is called, in workers that end with its process."""
    return _HERE.run(Task.from_json(task))
