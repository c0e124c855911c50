"""Time and peak memory of building the time-indexed model: arrays into HiGHS against Pyomo.

    python benchmarks/all.py --only model-building-22000 model-building-145000

Each build runs in a process of its own, so that peaks do not mix.
"""

from __future__ import annotations

import multiprocessing as mp
import resource
import time
from multiprocessing.queues import Queue
from pathlib import Path

from kvopt import Instance, generate
from kvopt.formulations.windows import Windows


def sized(columns: int) -> tuple[Instance, Windows]:
    """Return an arrival-1 instance and windows with about so many columns."""
    count = max(30, round((columns / 20) ** 0.5))
    instance = generate("arrival-1", n=count, memory=50, seed=1)
    length = columns // count
    return instance, tuple(range(request.arrival, request.arrival + length) for request in instance)


def build(kind: str, columns: int, answers: Queue[tuple[float, float]]) -> None:
    """Build once and report seconds, and megabytes above the imports."""
    from kvopt.formulations.pyomo import time_indexed
    from kvopt.formulations.time_indexed import time_indexed_arrays, to_highs

    instance, windows = sized(columns)
    before = peak()
    begin = time.perf_counter()
    if kind == "arrays":
        model = time_indexed_arrays(instance, windows)
        highs = to_highs(model)
        assert highs.getNumCol() == model.num_columns
    else:
        time_indexed(instance, windows)
    seconds = time.perf_counter() - begin
    answers.put((seconds, peak() - before))


def peak() -> float:
    """Return the most megabytes of this process; `getrusage` begins with those of its parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def measured(kind: str, columns: int) -> tuple[float, float]:
    """Run one build in a fresh process."""
    context = mp.get_context("spawn")
    answers: Queue[tuple[float, float]] = context.Queue()
    process = context.Process(target=build, args=(kind, columns, answers))
    process.start()
    figures = answers.get()
    process.join()
    return figures
