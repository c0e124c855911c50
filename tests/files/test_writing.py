"""Writing is all or nothing, and devices, pipes and links stay what they are."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from interpreters import python
from strategies import instance_of

from kvopt.errors import InvalidInput
from kvopt.files.atomic import atomic_path, own_descriptor, write_atomically
from kvopt.problem.instance_files import write_instance


class WriterError(Exception):
    """Stands for whatever may go wrong while a file is written."""


def write_half(target: Path, failure: type[BaseException]) -> None:
    with atomic_path(target) as temporary:
        temporary.write_text("half", encoding="utf-8")
        assert temporary.suffix == target.suffix
        if target.is_file():
            assert target.read_text(encoding="utf-8") == "old"
        raise failure


@pytest.mark.parametrize("failure", [WriterError, KeyboardInterrupt])
def test_a_failure_keeps_the_old_file_and_leaves_nothing(
    failure: type[BaseException], tmp_path: Path
) -> None:
    target = tmp_path / "a.json"
    write_atomically(target, "old")
    with pytest.raises(failure):
        write_half(target, failure)
    assert os.listdir(tmp_path) == ["a.json"]
    assert target.read_text(encoding="utf-8") == "old"


def test_a_full_disk_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    target = tmp_path / "a.json"
    write_atomically(target, "old")
    for owner, name in ((Path, "write_text"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, refuse)
            with pytest.raises(InvalidInput, match=r"a\.json: cannot be written: No space left"):
                write_instance(instance_of(5, []), target)
        assert os.listdir(tmp_path) == ["a.json"]
        assert target.read_text(encoding="utf-8") == "old"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "none" / "a.json", tmp_path / "folder"):
        with pytest.raises(InvalidInput, match="cannot be written: "):
            write_atomically(target, "text")
    assert os.listdir(tmp_path) == ["folder"]


def test_written_files_are_as_readable_as_others(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_atomically(tmp_path / "a.json", "é\n")
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert (tmp_path / "a.json").read_bytes() == b"\xc3\xa9\n"


def test_a_file_stays_as_private_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.json").touch(mode=0o600)
    write_atomically(tmp_path / "a.json", "new")
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["a\0b.json", "a\0/b.json", "\ud800.json"], ids=ascii)
def test_a_name_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written: ") as caught:
        write_atomically(tmp_path / name, "text")
    assert str(caught.value).isprintable()
    assert os.listdir(tmp_path) == []


# ---- links ------------------------------------------------------------------------------


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_its_file_is_replaced(exists: bool, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    real, near, link = tmp_path / "far" / "real.json", tmp_path / "near", tmp_path / "link.json"
    near.symlink_to(real)
    link.symlink_to("near")
    if exists:
        real.write_text("old")
    write_atomically(link, "new")
    assert link.is_symlink()
    assert near.is_symlink()
    assert not real.is_symlink()
    assert real.read_text() == "new"
    assert os.listdir(tmp_path / "far") == ["real.json"]


@pytest.mark.parametrize("to", ["link", "folder", "none/a"], ids=["itself", "folder", "nowhere"])
def test_a_link_that_leads_to_no_file(to: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(to)
    with pytest.raises(InvalidInput, match="link: cannot be written: "):
        write_atomically(tmp_path / "link", "text")
    assert sorted(os.listdir(tmp_path)) == ["folder", "link"]
    assert (tmp_path / "link").is_symlink()


# ---- devices and pipes ------------------------------------------------------------------


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """Return a named pipe."""
    os.mkfifo(tmp_path / "pipe.json")
    return tmp_path / "pipe.json"


def test_a_named_pipe_gets_the_text_and_stays(pipe: Path) -> None:
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_atomically(pipe, "é" * 100_000)
    reader.join()
    assert read == ["é" * 100_000]
    assert pipe.is_fifo()
    assert os.listdir(pipe.parent) == ["pipe.json"]


def test_a_pipe_gets_nothing_when_the_writer_fails(pipe: Path) -> None:
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(WriterError):
            write_half(pipe, WriterError)
        assert os.read(reader, 9) == b""
    finally:
        os.close(reader)
    assert pipe.is_fifo()


# The devices below lie where not even root could replace them, were there a mistake.


def test_a_terminal_gets_the_text() -> None:
    ours, theirs = os.openpty()
    try:
        write_atomically(os.ttyname(theirs), "text\n")
        assert os.read(ours, 9).split() == [b"text"]
    finally:
        os.close(ours)
        os.close(theirs)


WRITE = "from kvopt.files.atomic import write_atomically as w; w({!r}, 'second\\n')"


@pytest.mark.parametrize("name", ["/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("mode", ["w", "a"])
def test_standard_output_goes_on_where_it_is(name: str, mode: str, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("zeroth\n")
    with target.open(mode) as stream:
        for code in ("print('first')", WRITE.format(name), "print('third')"):
            subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
    lines = target.read_text().split()
    assert lines == ["zeroth"] * (mode == "a") + ["first", "second", "third"]


@pytest.mark.parametrize(
    ("name", "number"),
    [("/dev/stdout", 1), ("/dev/stderr", 2), ("/dev/fd/7", 7), ("/dev/stdin", None), ("1", None)],
)
def test_names_of_open_files(name: str, number: int | None) -> None:
    assert own_descriptor(Path(name)) == number


def test_standard_error_may_be_a_pipe() -> None:
    code = WRITE.format("/dev/fd/2")
    done = python("-c", code, check=True)
    assert (done.stdout, done.stderr) == ("", "second\n")


def test_a_closed_descriptor_is_refused() -> None:
    with pytest.raises(InvalidInput, match="/dev/fd/999999: cannot be written: Bad file"):
        write_atomically("/dev/fd/999999", "text")
