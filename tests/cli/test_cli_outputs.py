"""Files that commands write: refused before the work, and never at the cost of a result."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands import Run

import kvopt
from kvopt.errors import InvalidInput
from kvopt.files.atomic import refuse_unwritable
from kvopt.formulations.export import export, format_of
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request

SAMPLES = Path(kvopt.__file__).parents[1] / "samples"

SUMS = ("reduce", "three-partition", "--target", 40, 11, 11, 12, 11, 17, 18)
LATE = {
    "generate": ("generate", "arrival-1", "-o", "OUT"),
    "export": ("export", "FILE", "--format", "lp", "-o", "OUT"),
    "solve": ("solve", "FILE", "-o", "OUT"),
    "certify": ("certify", "FILE", "-o", "OUT"),
    "certify --seconds": ("certify", "FILE", "--seconds", "-t", 0.2, "-o", "OUT"),
    "run": ("run", "FILE", "-P", "mc-sf", "-o", "OUT"),
    "run --timeline": ("run", "FILE", "-P", "mc-sf", "--seconds", "--timeline", "OUT"),
    "reduce -o": (*SUMS, "-o", "OUT"),
    "reduce": (*SUMS, "--certificate", "OUT"),
    "hardware fit": ("hardware", "fit", "TABLE", "-o", "OUT"),
}
WRITERS = {
    **LATE,
    "import": ("import", "missing.csv", "--format", "csv", "-m", 9, "-o", "OUT"),
    "plot": ("plot", "FILE", "-o", "OUT.png"),
    "report": ("report", "STUDY", "--verify", "-o", "OUT"),
    "report --csv": ("report", "STUDY", "--verify", "--csv", "OUT"),
    "study": ("study", "smoke", "--out", "OUT/folder"),
}


def nothing_long(*_args: object, **_options: object) -> Any:
    raise AssertionError("the work began before its file was tried")


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing begin that may be long."""
    for name in (
        "solve.solve", "certify.certify", "run.simulate",
        "files.generate", "tools.decide",
    ):  # fmt: skip
        monkeypatch.setattr(f"kvopt.cli.{name}", nothing_long)
    monkeypatch.setattr("kvopt.studies.report.write_report", nothing_long)
    monkeypatch.setattr("kvopt.studies.execution.run_study", nothing_long)


@pytest.mark.slow
@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.usefixtures("idle")
def test_a_file_that_cannot_be_written_is_refused_first(
    run: Run, ec1: Path, studied: Path, tmp_path: Path, command: str
) -> None:
    words = {"FILE": str(ec1), "STUDY": str(studied), "TABLE": "missing.csv"}
    # Below a file nothing can be made, whoever asks.
    arguments = [
        words.get(str(word), str(word).replace("OUT", f"{ec1}/out")) for word in WRITERS[command]
    ]
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert {"-o": "--output"}.get(arguments[-2], arguments[-2]) in err
    assert err.count(f"{ec1}/out") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ec1.json", "study"]


def test_the_page_of_a_study_is_tried_by_its_own_name(run: Run, studied: Path) -> None:
    (studied / "report.html").mkdir()
    err = run.refused("report", studied, "--verify")
    assert err == f"kvopt: --output {studied / 'report.html'}: cannot be written: Is a directory\n"


def test_what_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    old, link, pipe = tmp_path / "old", tmp_path / "link", tmp_path / "pipe"
    old.write_text("before")
    link.symlink_to("new")
    os.mkfifo(pipe)  # which nobody reads: opening it would wait
    for target in (old, link, pipe, "/dev/null", "/dev/stdout", tmp_path / "new"):
        refuse_unwritable(target)
    assert old.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "old", "pipe"]


def test_paths_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    lost, file = tmp_path / "lost", tmp_path / "file"
    lost.symlink_to(tmp_path / "nowhere" / "file")
    file.touch()
    wrong = (tmp_path, lost, file / "below", tmp_path / "nowhere" / "x", "/dev/fd/999", "n" * 999)
    for target in wrong:
        with pytest.raises(InvalidInput, match="cannot be written"):
            refuse_unwritable(target)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "json_"), [*((name, False) for name in LATE), ("solve", True)])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_result_is_printed_though_the_disk_is_full(
    run: Run, ec1: Path, command: str, json_: bool
) -> None:
    words = {"FILE": ec1, "OUT": "/dev/full", "TABLE": SAMPLES / "batches.csv"}
    arguments = [words.get(str(word), word) for word in LATE[command]]
    code, out, err = run(*arguments, *(["--json"] if json_ else []))
    option = {"-o": "--output"}.get(str(arguments[-2]), arguments[-2])
    last = err.splitlines()[-1]
    assert (code, last) == (
        2,
        f"kvopt: {option} /dev/full: cannot be written: No space left on device",
    )
    assert "wrote" not in err
    if json_:
        json.loads(out)
    else:
        assert (out == "") == (command in ("generate", "export", "reduce -o"))


class TestExport:
    """What the name of an exported model says is what is in it."""

    @pytest.mark.parametrize("kind", ["mps", "lp"])
    def test_compressed_is_the_same_model_and_the_same_bytes(
        self, run: Run, ec1: Path, tmp_path: Path, kind: str
    ) -> None:
        plain, packed = tmp_path / f"a.{kind}", tmp_path / f"a.{kind}.gz"
        other = tmp_path / f"b.{kind}.gz"
        for path in (plain, packed, other):
            assert run("export", ec1, "-o", path)[0] == 0
        assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
        assert packed.read_bytes() == other.read_bytes()
        assert packed.read_bytes()[4:8] == bytes(4), "no date"
        assert plain.read_text().startswith("NAME" if kind == "mps" else "\\")

    def test_a_format_that_is_given_counts(self, run: Run, ec1: Path, tmp_path: Path) -> None:
        for name in ("a.sol", "a.lp", "a.sol.gz"):
            path = tmp_path / name
            assert run("export", ec1, "-o", path, "--format", "mps")[0] == 0
            text = path.read_bytes()
            text = gzip.decompress(text) if name.endswith(".gz") else text
            assert text.startswith(b"NAME")

    def test_the_function_goes_by_the_name_too(self, tmp_path: Path) -> None:
        instance = Instance(4, [Request(0, 1, 2)])
        export(instance, tmp_path / "a.mps.gz")
        assert gzip.decompress((tmp_path / "a.mps.gz").read_bytes()).startswith(b"NAME")
        with pytest.raises(InvalidInput, match=r"must end in one of \.mps, "):
            export(instance, tmp_path / "a.sol")
        assert format_of("model") == format_of("/dev/stdout") == "lp"
