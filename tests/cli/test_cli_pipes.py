"""``-o -`` is standard output, ``-`` as a file to read is standard input."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import EC1, Run
from known import known

import kvopt

SAMPLES = Path(kvopt.__file__).parents[1] / "samples"
KVOPT = [sys.executable, "-m", "kvopt"]

WRITERS = {
    "generate": ("generate", "arrival-1", "--n", 4),
    "import": ("import", SAMPLES / "chat.csv", "-f", "azure", "-m", 4096),
    "run": ("run", "FILE", "-P", "mc-sf"),
    "solve": ("solve", "FILE"),
    "certify": ("certify", "FILE"),
    "export": ("export", "FILE"),
    "reduce": ("reduce", "three-partition", "--target", 40, 11, 11, 12, 11, 17, 18),
    "hardware": ("hardware", "fit", SAMPLES / "batches.csv"),
}
STARTS = {
    "run": '{"schema": "kvopt.schedule/1"',
    "solve": '{"schema": "kvopt.schedule/1"',
    "export": "\\ File written by HiGHS",
}
"""How what is written begins; else as a JSON file with the schema below another name."""


@contextmanager
def standard_output(path: Path) -> Iterator[Path]:
    """Let the file behind standard output be another one."""
    before = os.dup(1)
    with path.open("w") as stream:
        os.dup2(stream.fileno(), 1)
    try:
        yield path
    finally:
        os.dup2(before, 1)
        os.close(before)


def given(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    """Let standard input hold a text."""
    content = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


class TestStandardOutput:
    """Files go to standard output, tables then to standard error."""

    @pytest.mark.slow
    @pytest.mark.parametrize("command", WRITERS)
    def test_holds_the_file_alone(self, run: Run, ec1: Path, command: str) -> None:
        arguments = [str(ec1 if word == "FILE" else word) for word in WRITERS[command]]
        target = ec1.with_name("a.lp" if command == "export" else "-")
        _, shown, said = run(*arguments, "-o", target)
        with standard_output(ec1.with_name("out")) as out:
            code, rest, err = run(*arguments, "-o", "-")
        assert (code, rest) == (0, "")
        assert out.read_text().startswith(STARTS.get(command, "{\n"))
        assert stable(out.read_text()) == stable(target.read_text())
        for line in shown.splitlines()[:1]:
            assert line in err, "tables go to standard error"
        assert said.count("wrote") == err.count("wrote")

    def test_quiet_leaves_the_file(self, run: Run, ec1: Path) -> None:
        with standard_output(ec1.with_name("out")) as out:
            assert run("run", ec1, "-P", "mc-sf", "-o", "-", "-q") == (0, "", "")
        assert json.loads(out.read_text())["objective"] == 12


def stable(text: str) -> Any:
    """Return what is the same in each run: no times, and no names of files."""
    if not text.startswith("{"):
        return text.splitlines()[1:]
    content = json.loads(text)
    return {key: value for key, value in content.items() if key not in ("provenance", "name")}


class TestStandardInput:
    """Instances, schedules and certificates are read from standard input."""

    @pytest.mark.parametrize(
        ("text", "options"),
        [
            (json.dumps(EC1), ()),
            ("\ufeff" + json.dumps(EC1, indent=1), ()),
            ("arrival,prompt,output\n0,1,1\n0,1,2\n0,1,3\n0,1,4\n", ("-m", 7)),
        ],
    )
    def test_instances_are_read_from_standard_input(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, text: str, options: tuple[object, ...]
    ) -> None:
        given(monkeypatch, text)
        code, out, _ = run("bound", "-", "--method", "volume", "--json", *options)
        assert (code, json.loads(out)["value"]) == (0, 11)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "holds nothing; it can be read once only"),
            (b"\xff", "is not UTF-8 text (byte 0)"),
            ("arrival,prompt,output\n", "memory: CSV has no memory: give it with --memory"),
            (json.dumps({**EC1, "memory": 4}), "request 'r3': output: needs 5 tokens"),
        ],
    )
    def test_refusals_name_standard_input(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, text: str | bytes, said: str
    ) -> None:
        given(monkeypatch, text)
        err = run.refused("bound", "-")
        assert err.startswith(f"kvopt: <stdin>: {said}")
        assert len(err.splitlines()) == 1

    def test_standard_input_is_read_once(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        given(monkeypatch, json.dumps(EC1))
        code, _, err = run("solve", "-", "-")
        assert (code, err) == (2, "kvopt: <stdin>: holds nothing; it can be read once only\n")

    def test_schedules_are_read_from_standard_input(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, ec1: Path
    ) -> None:
        given(monkeypatch, '{"schema": "kvopt.schedule/1", "starts": [0, 0, 0, 2]}')
        assert run("check", ec1, "-")[1].startswith("feasible: total latency 12")
        given(monkeypatch, '{"schema": "kvopt.schedule/1"}')
        assert run("check", ec1, "-")[2] == "kvopt: <stdin>: starts: is missing\n"

    @pytest.mark.parametrize(
        ("words", "packed"),
        [
            ("import chat.csv -f azure -m 4096", True),
            ("import documents.jsonl -f mooncake -m 4096", False),
            ("import-run vllm.jsonl", True),
            ("hardware-fit batches.csv", False),
        ],
    )
    def test_traces_records_and_tables_are_read_from_standard_input(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, packed: bool
    ) -> None:
        command, name, *options = words.split()
        verbs = ["hardware", "fit"] if command == "hardware-fit" else [command]
        target, content = tmp_path / "a.json", (SAMPLES / str(name)).read_bytes()
        assert run(*verbs, SAMPLES / str(name), *options, "-o", target)[0] == 0
        wanted = target.read_text()
        given(monkeypatch, gzip.compress(content) if packed else content)
        run.done(*verbs, "-", *options, "-o", target)
        unnamed = [json.loads(text) for text in (wanted, target.read_text())]
        for each in unnamed:
            for place in (each, each.get("instance", {})):
                place.pop("name", None)
                place.pop("notes", None)
        assert unnamed[0] == unnamed[1]

    @pytest.mark.slow
    def test_commands_work_in_a_pipeline(self, tmp_path: Path) -> None:
        kvopt = " ".join(KVOPT)
        line = (
            f"{kvopt} generate two-point --n 4 -p u=4 -p l=2 --memory 12 -o - | "
            f"{kvopt} certify - --policy svf -o - | tee c.json | {kvopt} verify -"
        )
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout.endswith("VALID\n")
        assert "<stdin>" in done.stderr
        assert json.loads((tmp_path / "c.json").read_text())["instance"]["memory"] == 12


class TestOtherMemory:
    """``-m`` changes the cache of a file in every command alike."""

    COMMANDS = (
        ("solve", "FILE"), ("run", "FILE", "-P", "mc-sf"), ("check", "FILE", "SCHEDULE"),
        ("export", "FILE", "-o", "OUT.lp"),
    )  # fmt: skip

    @pytest.mark.slow
    @pytest.mark.parametrize("command", COMMANDS, ids=lambda words: str(words[0]))
    def test_another_memory_is_reported_and_counts(
        self, run: Run, ec1: Path, tmp_path: Path, command: tuple[str, ...]
    ) -> None:
        schedule = tmp_path / "s.json"
        schedule.write_text('{"schema": "kvopt.schedule/1", "starts": [0, 0, 0, 0]}')
        words = {"FILE": ec1, "SCHEDULE": schedule}
        arguments = [words.get(w, w.replace("OUT", str(tmp_path / "out"))) for w in command]
        out, err = run.done(*arguments, "-m", 9)
        assert err.startswith(f"{ec1}: memory 9 instead of the file's 7\n")
        if command[0] in ("solve", "check"):
            assert "10" in out, "everything starts together in a larger cache"
        code, out, err = run(*arguments, "-m", 4)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "request 'r3': output: needs 5 tokens (prompt + output), memory is 4" in err
        assert "instead of" not in run(*arguments, "-m", 7)[2]

    def test_certificates_hold_the_instance_as_it_was_taken(
        self, run: Run, ec1: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "c.json"
        assert run("certify", ec1, "-m", 9, "-o", path)[0] == 0
        found = json.loads(path.read_text())
        assert found["instance"]["memory"] == 9
        assert found["upper"]["value"] == 10


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("-m", "kvopt", "generate", "steady", "-o", "-"),
        ("-m", "kvopt.verify", "CERTIFICATE"), ("instances/tables.py", "--help"),
        ("benchmarks/policies.py", "svf", "--sizes", "20"),
    ],
    ids=lambda words: " ".join(words[:3]),
)  # fmt: skip
def test_a_reader_that_leaves_is_no_error(
    words: tuple[str, ...], tmp_path: Path, run: Run, ec1: Path
) -> None:
    certificate = tmp_path / "c.json"
    if "CERTIFICATE" in words:
        assert run("certify", ec1, "-o", certificate)[0] == 0
    root = SAMPLES.parent
    with subprocess.Popen(
        [sys.executable, *(word.replace("CERTIFICATE", str(certificate)) for word in words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as child:  # fmt: skip
        known(child.stdout).close()
        said = known(child.stderr).read()
    is_help = words[-1] == "--help"  # of which argparse says nothing
    assert child.returncode in (141, -signal.SIGPIPE, *([0] if is_help else []))
    assert said == ""


class TestUnusable:
    """Standard streams that are closed or full: a line, and no status that means something else."""

    @staticmethod
    def left(*command: object, streams: str) -> tuple[int, str]:
        """Return status and messages of a command whose streams a shell redirects."""
        line = shlex.join(map(str, command)) + " " + streams
        done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stderr

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("command", "streams", "reason"),
        [
            ("policies", ">&-", "Bad file descriptor"),
            ("--help", "> /dev/full", "No space left on device"),
        ],
    )
    def test_unusable_output_is_reported_in_a_line(
        self, command: str, streams: str, reason: str
    ) -> None:
        said = f"kvopt: standard output: cannot be written: {reason}\n"
        assert self.left(*KVOPT, command, streams=streams) == (2, said)

    @pytest.mark.slow
    def test_unusable_output_of_the_checker_is_reported(self, run: Run, ec1: Path) -> None:
        certificate = ec1.with_name("c.json")
        assert run("certify", ec1, "-o", certificate, "-t", "5")[0] == 0
        checker = (sys.executable, "-m", "kvopt.verify", certificate)
        said = "standard output cannot be written: No space left on device\n"
        assert self.left(*checker, streams="> /dev/full") == (2, said)
        assert self.left(*checker, streams=">&-") == (0, "")

    @pytest.mark.slow
    def test_a_file_does_not_take_the_place_of_closed_output(self, ec1: Path) -> None:
        target = ec1.with_name("m.lp")
        code, err = self.left(*KVOPT, "export", ec1, "-o", target, streams=">&-")
        assert (code, err) == (0, f"wrote {target}\n")
        assert target.read_text().startswith("\\ File written by HiGHS")

    @pytest.mark.slow
    def test_unusable_input_is_reported_in_a_line(self, ec1: Path) -> None:
        said = "kvopt: <stdin>: cannot be read: Bad file descriptor\n"
        assert self.left(*KVOPT, "check", ec1, "-", streams="<&-") == (2, said)

    @pytest.mark.slow
    @pytest.mark.parametrize("streams", ["2>&-", "2> /dev/full"])
    def test_messages_are_lost_and_the_work_is_done(self, ec1: Path, streams: str) -> None:
        line = f"{streams} > {shlex.quote(str(ec1.with_name('out')))}"
        assert self.left(*KVOPT, "run", ec1, "-P", "fcfs", streams=line) == (0, "")
        assert "completed" in ec1.with_name("out").read_text()
