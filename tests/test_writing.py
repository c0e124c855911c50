"""Writing is all or nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from strategies import instance_of

from kvopt.errors import InvalidInput
from kvopt.files import write_atomically, write_instance
from kvopt.files.atomic import atomic_path


class WriterError(Exception):
    """Stands for whatever may go wrong while a file is written."""


def write_half(target: Path, failure: type[BaseException]) -> None:
    with atomic_path(target) as temporary:
        temporary.write_text("half", encoding="utf-8")
        assert temporary.suffix == target.suffix
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
