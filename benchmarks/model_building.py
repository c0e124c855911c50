"""Time and peak memory of building the time-indexed model: arrays into HiGHS against Pyomo.

    python benchmarks/model_building.py [--columns 22000 145000 500000]

Each build runs in a process of its own, so that peaks do not mix.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import platform
import resource
import time
from multiprocessing.queues import Queue
from pathlib import Path

from kvopt import Instance, generate
from kvopt.formulations.windows import Windows
from kvopt.kernels.pipes import ended_by_reader

Figures = tuple[float, float, int]


def sized(columns: int) -> tuple[Instance, Windows]:
    """Return an arrival-1 instance and windows with about so many columns."""
    count = max(30, round((columns / 20) ** 0.5))
    instance = generate("arrival-1", n=count, memory=50, seed=1)
    length = columns // count
    return instance, tuple(range(request.arrival, request.arrival + length) for request in instance)


def build(kind: str, columns: int, answers: Queue[Figures]) -> None:
    """Build once and report seconds, megabytes above the imports, nonzeros."""
    from kvopt.formulations.arrays import time_indexed_arrays, to_highs
    from kvopt.formulations.pyomo import time_indexed

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
    most = peak()
    nonzeros = sum(len(w) * (r.output + 1) for w, r in zip(windows, instance, strict=True))
    answers.put((seconds, most - before, nonzeros))


def peak() -> float:
    """Return the most megabytes of this process; `getrusage` begins with those of its parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def measured(kind: str, columns: int) -> Figures:
    """Run one build in a fresh process."""
    context = mp.get_context("spawn")
    answers: Queue[Figures] = context.Queue()
    process = context.Process(target=build, args=(kind, columns, answers))
    process.start()
    figures = answers.get()
    process.join()
    return figures


def main() -> None:
    """Print one line a size, both sides."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--columns", type=int, nargs="+", default=[22_000, 145_000, 500_000])
    print(f"{platform.machine()}, Python {platform.python_version()}")
    print("| columns | nonzeros | arrays s | arrays MB | Pyomo s | Pyomo MB | faster | smaller |")
    print("|---|---|---|---|---|---|---|---|")
    for columns in parser.parse_args().columns:
        fast, slow = measured("arrays", columns), measured("pyomo", columns)
        print(
            f"| {columns:,} | {fast[2]:,} | {fast[0]:.2f} | {fast[1]:.0f} | {slow[0]:.1f} "
            f"| {slow[1]:.0f} | {slow[0] / fast[0]:.0f}x | {slow[1] / max(fast[1], 1):.1f}x |",
            flush=True,
        )


if __name__ == "__main__":
    with ended_by_reader():
        main()
