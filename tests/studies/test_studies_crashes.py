"""Studies that are killed at any moment: every record is there once, every certificate verifies."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from known import known
from studied import certified, tiny

from kvopt.files.reading import read_text
from kvopt.studies import read_study, run_study

ROOT = Path(__file__).parents[2]
KILLS = 4
DRAWS = 40

# A process with no threads of its own begins runs as copies of itself, which is quick.
RUNNER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from kvopt.studies import read_study
from kvopt.studies.execution import run_study
study = read_study(sys.argv[2])
for line in sys.stdin:
    process = os.fork()
    if process == 0:
        run_study(study, sys.argv[3], jobs=2)
        os._exit(0)
    print(process, flush=True)
    print(os.waitpid(process, 0)[1], flush=True)
"""


@pytest.mark.slow
def test_a_study_survives_kills_at_random_moments(tmp_path: Path) -> None:
    description, folder = tiny(tmp_path / "tiny.toml", DRAWS), tmp_path / "out"
    moments = random.Random(6)
    sizes = [0]
    with subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(ROOT), str(description), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as runner:
        for _ in range(KILLS):
            kill_in_the_middle(runner, folder, moments)
            sizes.append(size_of(folder))
        known(runner.stdin).close()
    assert sizes == sorted(sizes), "nothing is lost"
    assert len(set(sizes)) > KILLS / 2, "most runs got somewhere"
    found = run_study(read_study(description), folder, jobs=2)
    assert (found.progress.done, found.progress.failed, found.damaged) == (DRAWS, 0, ())
    assert found.progress.before < DRAWS, "the last run had something left"
    audit(folder)


def kill_in_the_middle(runner: subprocess.Popen[str], folder: Path, moments: random.Random) -> None:
    """Begin a run, and kill it some time after it wrote something new."""
    size = size_of(folder)
    known(runner.stdin).write("begin\n")
    process = int(known(runner.stdout).readline())
    end = time.monotonic() + 60
    if moments.random() < 0.8:  # else it is killed while it begins
        while size_of(folder) <= size:
            assert time.monotonic() < end, "the run writes nothing"
            time.sleep(0.001)
    time.sleep(moments.uniform(0, 0.015))
    os.kill(process, signal.SIGKILL)
    assert int(known(runner.stdout).readline()) == signal.SIGKILL


def size_of(folder: Path) -> int:
    path = folder / "records.jsonl"
    return path.stat().st_size if path.exists() else 0


def audit(folder: Path) -> None:
    """Check that the raw file has each record once, and that each is proved."""
    keys = [json.loads(line)["key"] for line in read_text(folder / "records.jsonl").splitlines()]
    assert len(keys) == len(set(keys)) == 2 * DRAWS
    records = [record for record, _ in certified(folder)]
    assert [record.key for record in records] == keys
    names = {f"certificates/{path.name}" for path in (folder / "certificates").iterdir()}
    assert names == {record.certificate for record in records}
    assert all(record.proved for record in records)
