"""Runs of studies: what they leave, that they go on, and what does not stop them."""

from __future__ import annotations

import json
import os
import pickle
import pty
import re
import resource
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from brute_force import optimum
from commands import Run
from known import known
from strategies import plain
from studied import BAD_POLICIES, certified, tiny

import kvopt
from kvopt.certificates.certificate_files import certificate_text
from kvopt.errors import InvalidInput
from kvopt.files.reading import read_text
from kvopt.problem.instance_files import instance_from_json
from kvopt.studies import StudyProgress, read_records, read_study, run_study
from kvopt.studies.description import builtin_text
from kvopt.studies.folder import locked
from kvopt.studies.record_lines import Record
from kvopt.studies.tasks import Unverified, require_valid, tasks_of
from kvopt.studies.workers import WorkerPool
from kvopt.studies.workers import run as work_here

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a description and the folder of a run of it; tests leave both as they are."""
    folder = tmp_path_factory.mktemp("study")
    description = tiny(folder / "tiny.toml")
    found = run_study(read_study(description), folder / "out", jobs=2)
    assert (found.progress.done, found.progress.failed) == (6, 0)
    return description, folder / "out"


def found_values(folder: Path) -> list[tuple[Any, ...]]:
    """Return what must be the same however a study is run."""
    return sorted(
        (r.instance.hash, r.policy, r.outcome, r.value, r.evictions, r.upper, r.lower, r.key)
        for r in kept(folder)
    )


def copied(done: tuple[Path, Path], to: Path) -> Path:
    subprocess.run(["cp", "-r", done[1], to / "out"], check=True)
    return to / "out"


class TestFolder:
    """What a run leaves."""

    @pytest.mark.slow
    def test_records_are_true_and_link_to_certificates_that_verify(self, tmp_path: Path) -> None:
        folder = tmp_path / "out"
        found = run_study(read_study(tiny(tmp_path / "tiny.toml", narrow=True)), folder, jobs=1)
        pairs = certified(folder)
        assert [record for record, _ in pairs] == list(found.records)
        assert (len(pairs), len({record.ratio for record, _ in pairs}) > 1) == (12, True)
        for record, content in pairs:
            instance = instance_from_json(content["instance"])
            best = optimum(*plain(instance))
            assert (record.upper, record.lower, record.proved) == (best, best, True)
            run = kvopt.run(instance, known(record.policy))
            assert (record.value, record.makespan, record.peak_memory, record.evictions) == (
                run.objective, run.makespan, run.peak_memory, run.evictions,
            )  # fmt: skip
            assert [p["policy"] for p in content["policies"]] == ["mc-sf", "fcfs"]

    @pytest.mark.slow
    def test_the_files_are_those_of_the_contract(self, done: tuple[Path, Path]) -> None:
        description, folder = done
        assert sorted(path.name for path in folder.iterdir()) == [
            "certificates", "lock", "records.jsonl", "study.toml",
        ]  # fmt: skip
        assert read_study(folder / "study.toml") == read_study(description)
        line = json.loads(read_text(folder / "records.jsonl").splitlines()[0])
        assert line["schema"] == "kvopt.study-record/1"
        assert line["ratio"] == [line["value"] / line["upper"], line["value"] / line["lower"]]


class TestGoingOn:
    """A run after another does what is left, and only that."""

    def test_what_is_done_is_not_done_again(self, done: tuple[Path, Path], run: Run) -> None:
        description, folder = done
        before = {path: path.stat().st_mtime_ns for path in (folder / "certificates").iterdir()}
        text = read_text(folder / "records.jsonl")
        said = run.json("study", description, "--out", folder)
        assert (said["done"], said["before"], said["records"]) == (6, 6, 12)
        assert read_text(folder / "records.jsonl") == text
        after = {path: path.stat().st_mtime_ns for path in (folder / "certificates").iterdir()}
        assert after == before

    def test_more_draws_are_added(self, done: tuple[Path, Path], tmp_path: Path) -> None:
        folder = copied(done, tmp_path)
        text = read_text(folder / "records.jsonl")
        more = read_study(tiny(tmp_path / "tiny.toml", draws=8))
        found = run_study(more, folder, jobs=1)
        assert (found.progress.before, found.progress.done) == (6, 8)
        assert read_text(folder / "records.jsonl").startswith(text)

    @pytest.mark.slow
    @pytest.mark.usefixtures("own_processes")
    def test_the_rest_after_a_limit_gives_the_same(
        self, done: tuple[Path, Path], tmp_path: Path, run: Run
    ) -> None:
        """And in a process of its own, which makes no difference."""
        description, folder = done
        args = ("study", description, "--out", tmp_path / "out", "--jobs", 1)
        code, out, _ = run(*args, "--limit", 2, "--json")
        assert (code, json.loads(out)["instances"]) == (0, 2)
        out, err = run.done(*args)
        assert "6 of 6 instances done, 0 failed" in err
        assert "mc-sf" in out
        assert found_values(tmp_path / "out") == found_values(folder)

    @pytest.mark.slow
    def test_damaged_lines_and_lost_certificates_are_done_again(
        self, done: tuple[Path, Path], tmp_path: Path, run: Run
    ) -> None:
        folder = copied(done, tmp_path)
        path = folder / "records.jsonl"
        lines = read_text(path).splitlines(keepends=True)
        lost = json.loads(lines[4])["certificate"]
        (folder / lost).unlink()
        half = "".join(lines[:-1]) + lines[-1][:200]
        path.write_text(half.replace('"mc-sf"', '"mc-xx"', 1))
        out, err = run.done("study", done[0], "--out", folder, "--jobs", 1, "--json")
        said = json.loads(out)
        assert (said["before"], said["done"], len(said["damaged"])) == (3, 6, 2)
        assert "line 1 is damaged" in err
        assert found_values(folder) == found_values(done[1])
        assert (folder / lost).exists()
        text = read_text(path)
        run("study", done[0], "--out", folder, "--jobs", 1)
        assert read_text(path) == text

    def test_progress_counts_up(self, done: tuple[Path, Path], tmp_path: Path) -> None:
        seen: list[StudyProgress] = []
        run_study(read_study(done[0]), tmp_path / "out", jobs=2, observer=seen.append)
        assert [progress.done for progress in seen] == list(range(7))
        assert seen[0].rate is None
        assert seen[-1].seconds_left == 0
        worst = seen[-1].worst
        assert known(worst).ratio[0] == max(r.ratio[0] or 0 for r in read_records(tmp_path / "out"))


class TestRefused:
    """What ends with a clear message and exit status 2, and leaves what was there."""

    def test_a_second_run_into_a_folder_is_refused(self, done: tuple[Path, Path], run: Run) -> None:
        description, folder = done
        with locked(folder):
            code, _, err = run("study", description, "--out", folder)
        assert code == 2
        assert "another run is at work in this folder" in err
        assert run("study", description, "--out", folder)[0] == 0

    def test_a_lock_of_a_process_that_is_gone_is_taken_over(
        self, done: tuple[Path, Path], tmp_path: Path, run: Run
    ) -> None:
        folder = copied(done, tmp_path)
        (folder / "lock").write_text('{"pid": 1, "host": "elsewhere"}')
        assert run("study", done[0], "--out", folder)[0] == 0

    def test_the_folder_of_another_study_is_refused(
        self, done: tuple[Path, Path], run: Run
    ) -> None:
        err = run.refused("study", "smoke", "--out", done[1])
        assert "study.toml: holds another study" in err

    def test_a_folder_that_cannot_be(self, done: tuple[Path, Path], run: Run) -> None:
        assert "Not a directory" in run.refused("study", done[0], "--out", done[0] / "out")

    @pytest.mark.parametrize("option", ["jobs", "limit"])
    def test_numbers_below_one_are_refused(self, done: tuple[Path, Path], option: str) -> None:
        numbers: dict[str, Any] = {option: 0}
        with pytest.raises(InvalidInput, match=f"^{option}: must be at least 1"):
            run_study(read_study(done[0]), done[1], **numbers)

    @pytest.mark.slow
    def test_a_full_disk_keeps_what_is_there(self, done: tuple[Path, Path], tmp_path: Path) -> None:
        folder = tmp_path / "out"
        most = 5_000  # bytes that a file may have: some records fit, not all of them
        limited = subprocess.run(
            study_command(done[0], folder, "--jobs", "1"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert limited.returncode == 2
        assert "records.jsonl: cannot be written: File too large" in limited.stderr
        said: list[str] = []
        kept = read_records(folder, said.append)
        assert said == []
        assert 0 < len(kept) < 12
        run_study(read_study(done[0]), folder, jobs=1)
        assert found_values(folder) == found_values(done[1])


def study_command(description: Path, folder: Path, *options: str) -> list[str]:
    """Return the command line of a study as a process of its own."""
    begin = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from kvopt.cli import main; main()"
    return [
        sys.executable, "-c", begin, "study", str(description), "--out", str(folder), *options,
    ]  # fmt: skip


@pytest.mark.usefixtures("own_things", "own_processes")
class TestFailures:
    """What policies of others do harms nothing else."""

    @pytest.mark.slow
    def test_policies_that_misbehave_are_contained(self, tmp_path: Path, run: Run) -> None:
        names = ["throws", "hangs", "lies", "overfills", "mumbles", "exits", "dawdles", "mc-sf"]
        (tmp_path / "bad.py").write_text(BAD_POLICIES)
        (tmp_path / "bad.toml").write_text(
            f'modules = ["bad.py"]\npolicies = {json.dumps(names)}\n'
            "[limits]\ntime_limit = 60\npolicy_time_limit = 0.2\n"
            '[[instances]]\nfamily = "geometric"\nn = 6\nmemory = 8\nparameters = { u = 6 }\n'
        )
        code, out, err = run("study", tmp_path / "bad.toml", "--out", tmp_path / "out", "--json")
        assert code == 1, err
        assert json.loads(out)["failed"] == 1
        records = {record.policy: record for record in read_records(tmp_path / "out")}
        assert [records[name].outcome for name in names] == ["error"] * 6 + [
            "unfinished", "completed",
        ]  # fmt: skip
        errors = [records[name].error for name in names[:6]]
        assert errors[0] is not None
        assert errors[0].startswith("PolicyFault: ")
        assert errors[0].endswith("bad.py: line 13: throws: admit failed: RuntimeError: on purpose")
        assert errors[1] == "policy hangs: did not end within 1.3 s"
        assert errors[2] == "PolicyFault: lies: starts 1000000, which is not waiting"
        assert known(errors[3]).startswith("PolicyFault: overfills: holds ")
        assert known(errors[4]).startswith("PolicyFault: mumbles: starts n, which is not waiting")
        assert errors[5] == "policy exits: the process ended with status 7"
        good = records["mc-sf"]
        assert good.proved
        assert good.certificate is not None
        assert kvopt.verify(tmp_path / "out" / good.certificate).valid
        assert {record.certificate for record in records.values()} == {good.certificate}

    @pytest.mark.slow
    def test_a_failure_is_kept_until_a_retry_is_asked_for(self, tmp_path: Path, run: Run) -> None:
        (tmp_path / "fragile.py").write_text(
            "import sys\n"
            "from pathlib import Path\n"
            "missing = not Path(__file__).with_name('ok').exists()\n"
            "if missing and sys.argv[0] == '-c':\n"  # as the processes of a study begin
            "    raise OSError('not here')\n"
        )
        text = tiny(tmp_path / "tiny.toml", draws=1).read_text()
        path = tmp_path / "fragile.toml"
        path.write_text(text.replace("policies", 'modules = ["fragile.py"]\npolicies', 1))
        args = ("study", path, "--out", tmp_path / "out", "--jobs", 1)
        code, _, err = run(*args)
        assert code == 1
        assert "OSError: not here" in err
        (failed,) = read_records(tmp_path / "out")
        assert (failed.policy, failed.outcome, failed.certificate) == (None, "error", None)
        (tmp_path / "ok").touch()
        text = read_text(tmp_path / "out" / "records.jsonl")
        assert run(*args)[0] == 1
        assert read_text(tmp_path / "out" / "records.jsonl") == text
        assert run(*args, "--retry")[0] == 0
        assert [r.outcome for r in read_records(tmp_path / "out")] == ["completed"] * 2

    @pytest.mark.slow
    def test_a_process_that_somebody_ends_gets_another_try(self, tmp_path: Path) -> None:
        (tmp_path / "slow.toml").write_text(SLOW.replace("= 100", "= 0.8"))
        *_, slow = tasks_of(read_study(tmp_path / "slow.toml"))
        before, pool = set(children(os.getpid())), WorkerPool()
        try:
            with ThreadPoolExecutor(1) as executor:
                answer = executor.submit(pool.run, slow)
                until(lambda: set(children(os.getpid())) - before)
                time.sleep(1.0)  # it is at work
                (worker,) = set(children(os.getpid())) - before
                os.kill(worker, signal.SIGKILL)
                (found,) = answer.result().records
            assert (found.outcome, found.policy, found.error) == ("completed", "mc-sf", None)
            assert set(children(os.getpid())) - before not in (set(), {worker}), "in a new process"
        finally:
            pool.close()


def test_a_certificate_that_does_not_verify_is_a_failure() -> None:
    found = kvopt.certify(kvopt.generate("geometric", n=5, memory=300), ["mc-sf"])
    require_valid(certificate_text(found))
    false = replace(found, lower=replace(known(found.lower), value=known(found.lower).value + 1))
    with pytest.raises(Unverified, match="does not verify"):
        require_valid(certificate_text(false))


def test_a_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    (task,) = tasks_of(read_study(tiny(tmp_path / "tiny.toml", draws=1)))
    with pytest.raises(InvalidInput, match=r"version of kvopt: is 9\.9 where the study runs"):
        work_here(pickle.dumps(task), "9.9")


SLOW = """
policies = ["mc-sf"]
[limits]
time_limit = 100
[[instances]]
family = "geometric"
n = 5
memory = 300
draws = 2
parameters = { u = 40 }
[[instances]]
family = "arrival-1"
n = 60
"""


@pytest.mark.slow
def test_a_signal_keeps_what_is_done(tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text(SLOW)
    folder = tmp_path / "out"
    process = subprocess.Popen(
        study_command(tmp_path / "slow.toml", folder, "--jobs", "1"),
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: len(kept(folder)) == 2)
    workers = children(process.pid)
    before = ticks(workers)
    until(lambda: ticks(workers) > before + 30)  # the third is under way
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM, err
    assert "2 of 3 instances done" in err
    assert len(kept(folder)) == 2
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def kept(folder: Path) -> list[Record]:
    return read_records(folder, lambda _: None)


def until(holds: Any, seconds: float = 120) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    """Return the processes that a process began."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


def ticks(processes: list[int]) -> int:
    """Return how long processes have computed, in hundredths of a second."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in processes]
    return sum(int(word) for words in fields for word in words[11:13])


@pytest.mark.slow
def test_a_terminal_shows_progress(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        study_command(tiny(tmp_path / "tiny.toml", draws=3), tmp_path / "out", "--jobs", "1"),
        stderr=theirs,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "160"},
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the other end is closed
        while piece := os.read(ours, 4096):
            shown += piece
    os.close(ours)
    assert process.wait() == 0
    text = shown.decode()
    assert "tiny  0/3 instances" in text
    assert re.search(
        r"tiny  3/3 instances  \S+ a minute  0:00:00 left  worst 1.000 \(mc-sf, ", text
    )
    assert "3 of 3 instances done" in text


@pytest.mark.slow
@pytest.mark.usefixtures("studies_read_once")
def test_studies_are_listed_and_described(run: Run) -> None:
    out = run.done("study")[0]
    assert "arrival-1" in out
    assert "200" in out
    smoke = {"name": "smoke", "title": "A look at every family, small enough to be proved"}
    assert smoke in run.json("study")["studies"]
    assert run.done("study", "smoke", "--describe")[0].startswith("# A minute")
    assert run.json("study", "smoke", "--describe") == tomllib.loads(builtin_text("smoke"))


def test_the_table_of_a_study_holds_its_intervals(done: tuple[Path, Path]) -> None:
    description, folder = done
    found = run_study(read_study(description), folder, jobs=1)
    table = found.to_dataframe()
    assert table["runs"].sum() == len([r for r in found.records if r.policy is not None])
    assert (table["mean_least"] <= table["mean_most"]).all()
    assert (table["mean_most"] <= table["worst_most"]).all()


@pytest.mark.slow
def test_tables_have_a_row_for_each_source_and_policy(tmp_path: Path) -> None:
    """Drawn caches and numbers of requests are ranges, and parameters tell entries apart."""
    (tmp_path / "drawn.toml").write_text(
        'name = "drawn"\npolicies = ["mc-sf", "fcfs"]\n[limits]\ntime_limit = 20\n'
        '[[instances]]\nfamily = "geometric"\nn = 3\nparameters = {u = [9, 6]}\nmemory = 30\n'
        '[[instances]]\nfamily = "arrival-1"\nn = 4\ndraws = 3\n'
        '[[instances]]\ninline = "own"\nmemory = 9\nrequests = [[0, 1, 2]]\n'
    )
    found = run_study(read_study(tmp_path / "drawn.toml"), tmp_path / "out", jobs=1)
    table = found.to_dataframe()
    assert table["family"].tolist() == ["arrival-1"] * 2 + ["geometric"] * 4 + ["own"] * 2
    assert table["parameters"].tolist()[2:6] == ["u 6", "u 6", "u 9", "u 9"]
    assert table["policy"].tolist() == ["fcfs", "mc-sf"] * 4
    assert table["runs"].tolist() == [3, 3, 1, 1, 1, 1, 1, 1]
    sizes = {r.instance.memory for r in found.records if r.instance.family == "arrival-1"}
    row = table.iloc[0]
    assert (row["memory_least"], row["memory_most"]) == (min(sizes), max(sizes))
    assert len(sizes) > 1
