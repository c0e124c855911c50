"""Where tasks run: processes of this machine, or a Dask cluster, behind one interface."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from kvopt.errors import InvalidInput, MissingSolver
from kvopt.experiments.studies.tasks import Task
from kvopt.experiments.studies.worker_pool import WorkerPool, run
from kvopt.kernels import memory

Submit = Callable[[Task], "Future[dict[str, Any]]"]
"""Hands a task to a worker, of this machine or of a cluster."""

_PATIENCE = 10
"""Seconds in which a Dask scheduler has to answer, else the study is refused."""


@contextmanager
def workers(jobs: int, scheduler: str | None) -> Iterator[tuple[Submit, int]]:
    """Yield how to hand over a task, and how many should be under way at a time."""
    if scheduler is not None:
        with _cluster(scheduler) as (executor, threads):
            yield lambda task: executor.submit(run, task.to_json()), 3 * threads
        return
    pool = WorkerPool(memory.default_budget() // jobs)
    executor = ThreadPoolExecutor(jobs, "kvopt-study")
    try:
        # A thread does nothing but wait for the process that it has.
        yield lambda task: executor.submit(pool.run, task), jobs
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        pool.close()


@contextmanager
def _cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """Yield the executor of a Dask cluster and the number of its threads."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingSolver("Dask is not installed: pip install 'kvopt[cluster]'") from None
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # the study says it itself
    connect: Any = Client  # its functions have no types
    try:
        client = connect(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = f"{address} does not answer: {str(error).splitlines()[0]}"
        raise InvalidInput(reason, field="--scheduler") from None
    try:
        threads = sum(client.nthreads().values())
        # A worker that is lost is no fault of the task: another one gets it.
        yield client.get_executor(pure=False, retries=5), max(threads, 1)
    finally:
        client.close(timeout=_PATIENCE)
