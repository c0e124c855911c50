"""Throughput of studies, and what the harness costs beside the work.

    python benchmarks/studies.py throughput [--draws 60]     1 and 2 processes, and Dask
    python benchmarks/studies.py overhead [--draws 8] [--limit 10]
    python benchmarks/studies.py crashes [--kills 100]       kill -9 at any moment, with an audit

Throughput: instances of ``arrival-1`` with 7 requests, each proved in a moment, so that what the
harness does weighs most.  Overhead: instances of full size with a time limit, one process; the time
outside of the work on instances (starting up, planning, handing over, writing down), and inside of
it what is not the search (drawing, policies, verifying).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kvopt import verify
from kvopt.experiments.studies import read_records, run_study
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
FULL = """
name = "full"
policies = ["mc-sf", "fcfs", "svf"]
[limits]
time_limit = {limit}
[[instances]]
family = "arrival-1"
draws = {draws}
"""


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("throughput", "overhead", "crashes"))
    parser.add_argument("--draws", type=int, default=None)
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--kills", type=int, default=100)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        if options.what == "throughput":
            throughput(Path(name), options.draws or 60)
        elif options.what == "overhead":
            overhead(Path(name), options.draws or 8, options.limit)
        else:
            crashes(Path(name), options.kills)


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


def overhead(folder: Path, draws: int, limit: float) -> None:
    """Print where the time of a study goes."""
    study = study_from_text(FULL.format(draws=draws, limit=limit))
    began = time.monotonic()
    found = run_study(study, folder / "out", jobs=1)
    seconds = time.monotonic() - began
    work = sum({r.instance.hash: r.seconds for r in found.records}.values())
    search = 0.0
    for certificate in {record.certificate for record in found.records}:
        assert certificate is not None
        search += json.loads((folder / "out" / certificate).read_text())["provenance"]["seconds"]
    print(
        f"{draws} instances, limit {limit:g} s: {seconds:.1f} s in all, {work:.1f} s of it work on "
        f"instances, {search:.1f} s of it search; outside of the work {seconds - work:.2f} s = "
        f"{(seconds - work) / search:.2%} of the search; drawing, policies and verifying "
        f"{work - search:.2f} s = {(work - search) / search:.2%}"
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


def crashes(folder: Path, kills: int) -> None:
    """Kill the command at random moments, go on each time, and audit what is there."""
    text = SMALL.format(draws=4 * kills)
    description, out = folder / "small.toml", folder / "out"
    description.write_text(text)
    command = [sys.executable, "-m", "kvopt", "study", str(description), "--out", str(out)]
    moments = random.Random(0)
    for _ in range(kills):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        size, end = size_of(out), time.monotonic() + moments.choice((1.0, 60.0, 60.0, 60.0))
        while size_of(out) == size and time.monotonic() < end:  # some are killed while they begin
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 2.0))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    at_the_end = len(read_records(out)) // 3
    found = run_study(study_from_text(text), out)
    keys = [json.loads(line)["key"] for line in (out / "records.jsonl").read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 3 * found.progress.instances
    assert all(verify(path).valid for path in (out / "certificates").iterdir())
    print(
        f"{kills} kills, {at_the_end} of {found.progress.instances} instances done by then; "
        f"{len(keys)} records, each once, every certificate valid"
    )


def size_of(folder: Path) -> int:
    path = folder / "records.jsonl"
    return path.stat().st_size if path.exists() else 0


if __name__ == "__main__":
    with ended_by_reader():
        main()
