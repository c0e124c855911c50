"""A study on a Dask cluster: a real scheduler and two workers on loopback, one of them killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from commands import Run
from studied import certified, tiny

import kvopt
from kvopt.studies import StudyProgress, read_records, read_study, run_study
from kvopt.studies.workers import workers

pytest.importorskip("distributed")

ROOT = Path(__file__).parents[2]
DRAWS = 24

# The command of Dask, with what it says in a file that is named after the process.
LOGGED = """
import os, sys
log = os.open(f"{sys.argv.pop(1)}/{os.getpid()}.log", os.O_WRONLY | os.O_CREAT)
os.dup2(log, 1), os.dup2(log, 2)
from dask.__main__ import main
sys.argv[0] = "dask"
main()
"""


class Cluster:
    """A scheduler and workers, each a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scheduler = self._begin("scheduler", "--port", "0", "--no-dashboard")
        self.address = self._said(self.scheduler, "Scheduler at:").split()[-1]
        self.workers = [
            self._begin("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
            for _ in range(2)
        ]
        for worker in self.workers:
            self._said(worker, "Registered to:")

    def _begin(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", LOGGED, str(self.folder), *command, "--host", "127.0.0.1"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def _said(self, process: subprocess.Popen[bytes], wanted: str) -> str:
        """Return the first line with some words in the log of a process."""
        log = self.folder / f"{process.pid}.log"
        end = time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            for line in log.read_text().splitlines() if log.exists() else ():
                if wanted in line:
                    return line.strip()
            time.sleep(0.05)
        raise AssertionError(f"{log} has no line with {wanted}")

    @property
    def is_whole(self) -> bool:
        return all(each.poll() is None for each in (*self.workers, self.scheduler))

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def clusters() -> Iterator[list[Cluster]]:
    """Yield what this module began, to be ended with it."""
    made: list[Cluster] = []
    yield made
    for each in made:
        each.close()


@pytest.fixture
def cluster(clusters: list[Cluster], tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Return the cluster of the test before, or a new one where that test ended a part of it."""
    if not (clusters and clusters[-1].is_whole):
        clusters.append(Cluster(tmp_path_factory.mktemp("cluster")))
    return clusters[-1]


@pytest.mark.slow
def test_a_signal_keeps_what_is_done_on_a_cluster(tmp_path: Path, cluster: Cluster) -> None:
    study = read_study(tiny(tmp_path / "tiny.toml", DRAWS))

    def interrupt(progress: StudyProgress) -> None:
        if progress.done == DRAWS // 4:
            signal.raise_signal(signal.SIGINT)

    found = run_study(study, tmp_path / "out", scheduler=cluster.address, observer=interrupt)
    assert found.signal_number == signal.SIGINT
    assert DRAWS // 4 <= found.progress.done < DRAWS
    assert run_study(study, tmp_path / "out", jobs=1).progress.done == DRAWS


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing_but_time(tmp_path: Path, cluster: Cluster) -> None:
    study = read_study(tiny(tmp_path / "tiny.toml", DRAWS))
    killed: list[int] = []

    def kill_one(progress: StudyProgress) -> None:
        if progress.done >= DRAWS // 4 and not killed:
            killed.append(progress.done)
            cluster.workers[0].send_signal(signal.SIGKILL)

    found = run_study(study, tmp_path / "out", scheduler=cluster.address, observer=kill_one)
    assert killed
    assert (found.progress.done, found.progress.failed) == (DRAWS, 0)
    keys = [record.key for record in read_records(tmp_path / "out")]
    lines = (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    assert len(keys) == len(set(keys)) == len(lines) == 2 * DRAWS
    certified(tmp_path / "out")
    here = run_study(study, tmp_path / "here", jobs=1)
    assert {(r.key, r.value, r.upper, r.lower) for r in found.records} == {
        (r.key, r.value, r.upper, r.lower) for r in here.records
    }


@pytest.mark.slow
def test_a_scheduler_that_goes_away_keeps_what_is_done(
    tmp_path: Path, cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = read_study(tiny(tmp_path / "tiny.toml", DRAWS))

    def end(progress: StudyProgress) -> None:
        if progress.done == DRAWS // 4:
            cluster.scheduler.kill()

    with pytest.raises(kvopt.KvoptError, match="the scheduler is gone"):
        run_study(study, tmp_path / "out", scheduler=cluster.address, observer=end)
    kept = len(read_records(tmp_path / "out"))
    assert kept >= 2 * (DRAWS // 4)
    monkeypatch.setattr("kvopt.studies.execution.workers", partial(workers, patience=2))
    assert "scheduler: tcp:" in run.refused(
        "study", tmp_path / "tiny.toml", "--out", tmp_path / "out", "--scheduler", cluster.address
    )
    assert len(read_records(tmp_path / "out")) == kept
