"""Throughput of studies in one process, in two, and through Dask.

    python benchmarks/studies.py [--draws 60]

Instances are of ``arrival-1`` with 7 requests, each proved in a moment, so that what the harness
does weighs most.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kvopt.experiments.studies import run_study
from kvopt.experiments.studies.description import Study, study_from_text
from kvopt.kernels.pipes import ended_by_reader

SMALL = """
name = "small"
policies = ["mc-sf", "fcfs", "svf"]
[limits]
time_limit = 60
[[instances]]
family = "arrival-1"
n = 7
draws = {draws}
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=60)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        throughput(Path(name), options.draws)


def throughput(folder: Path, draws: int) -> None:
    """Print instances a second for each way to run the same study."""
    study = study_from_text(SMALL.format(draws=draws))
    run_study(study, folder / "warm", jobs=1, limit=1)  # compiles
    print("| where | instances | seconds | a second | of the time in the work |")
    print("|---|---|---|---|---|")
    for jobs in (1, 2):
        timed(f"{jobs} processes" if jobs > 1 else "1 process", study, folder / str(jobs), jobs)
    with cluster(folder) as address:
        timed("Dask, 2 workers", study, folder / "dask", 2, address)


def timed(label: str, study: Study, folder: Path, jobs: int, scheduler: str | None = None) -> None:
    began = time.monotonic()
    found = run_study(study, folder, jobs=jobs, scheduler=scheduler)
    seconds = time.monotonic() - began
    assert found.progress.failed == 0
    work = sum({r.instance.hash: r.seconds for r in found.records}.values())
    count = found.progress.done
    print(
        f"| {label} | {count} | {seconds:.1f} | {count / seconds:.2f} | "
        f"{work / seconds / jobs:.1%} |",
        flush=True,
    )


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Begin a scheduler and two workers of one thread, and end them."""
    begin = [sys.executable, "-m", "dask"]
    address = "tcp://127.0.0.1:18786"
    place = ["--host", "127.0.0.1", "--no-dashboard"]
    commands = [[*begin, "scheduler", "--port", "18786", *place]]
    commands += [[*begin, "worker", address, "--nthreads", "1", *place]] * 2
    processes = [
        subprocess.Popen(c, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for c in commands
    ]
    try:
        time.sleep(10)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


if __name__ == "__main__":
    with ended_by_reader():
        main()
