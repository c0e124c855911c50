"""The folder of a study: its lock, description, records and certificates."""

from __future__ import annotations

import fcntl
import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvopt.errors import InvalidInput
from kvopt.files.atomic import TEMPORARY, write_atomically
from kvopt.studies.description import Study, resolved_text
from kvopt.studies.record_lines import FILE
from kvopt.studies.tasks import FOLDER, TaskResult


def created(folder: Path) -> Path:
    """Return the folder, created if needed."""
    try:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot be made: {error.strerror}", file=str(folder)) from None
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder of a study; refuse it while another run has the lock.

    The file remains after the run: the lock of the operating system on it counts, which never
    outlives its process.
    """
    path = folder / "lock"
    try:
        file = path.open("a+b", buffering=0)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", file=str(path)) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            reason = "another run is at work in this folder"
            raise InvalidInput(reason, file=str(path)) from None
        yield


def sweep(folder: Path) -> None:
    """Remove unfinished files of a run that was killed."""
    for place in (folder, folder / FOLDER):
        for path in place.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)


def keep_description(folder: Path, study: Study) -> None:
    """Write the description of the study; refuse a folder that holds another study.

    More draws of the same entries are the same study.
    """
    path, text = folder / "study.toml", resolved_text(study)
    if path.exists() and _fixed(path.read_text(encoding="utf-8")) != _fixed(text):
        reason = "holds another study: take another folder, or the same description"
        raise InvalidInput(reason, file=str(path))
    write_atomically(path, text)


def _fixed(text: str) -> dict[str, Any]:
    """Return what another run may not change: all but the numbers of draws."""
    table = tomllib.loads(text)
    table.pop("claims", None)  # of earlier versions
    for entry in table["instances"]:
        entry.pop("draws", None)
    return table


def append(folder: Path, done: TaskResult) -> None:
    """Write the records of one task, and wait until they are on the disk.

    A certificate is written first, then its records in a single write: a process that is killed
    leaves all records of an instance or none.  After a crash of the machine half a line remains a
    line of its own, which readers report.
    """
    path = folder / FILE
    lines = "".join(json.dumps(record.to_json()) + "\n" for record in done.records).encode()
    try:
        name = next((record.certificate for record in done.records), None)
        if name is not None and done.certificate is not None:
            write_atomically(folder / name, done.certificate)
            with (folder / name).open("rb") as written:
                os.fsync(written.fileno())
        with path.open("a+b", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                lines = b"\n" + lines
            try:
                while lines:
                    lines = lines[file.write(lines) :]
            except OSError:
                file.truncate(size)
                raise
            os.fsync(file.fileno())
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", file=str(path)) from None
