"""The folder of a study: its description, records, certificates and verdicts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvopt.errors import InvalidInput
from kvopt.experiments.studies import records
from kvopt.experiments.studies.claims import Verdict
from kvopt.experiments.studies.description import Study, study_from_text
from kvopt.experiments.studies.resolved import resolved_text
from kvopt.experiments.studies.task_runner import FOLDER, TaskResult
from kvopt.files import write_atomically
from kvopt.files.atomic import TEMPORARY

DESCRIPTION = "study.toml"
VERDICTS = "verdicts.json"


def made(folder: Path) -> Path:
    """Return the folder, made if it was not there."""
    try:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot be made: {error.strerror}", file=str(folder)) from None
    return folder


def sweep(folder: Path) -> None:
    """Remove what a run that was killed was writing: files that never got their name."""
    for place in (folder, folder / FOLDER):
        for path in place.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)


def keep_description(folder: Path, study: Study) -> None:
    """Write what is studied; a folder that holds another study is refused.

    More draws of the same are the same study.
    """
    path = folder / DESCRIPTION
    if path.exists():
        before = study_from_text(path.read_text(encoding="utf-8"), path)
        if _without_draws(before) != _without_draws(study):
            reason = "holds another study: take another folder, or the same description"
            raise InvalidInput(reason, file=str(path))
    write_atomically(path, resolved_text(study))


def _without_draws(study: Study) -> list[str]:
    return [line for line in resolved_text(study).splitlines() if not line.startswith("draws = ")]


class Ledger:
    """Appends what was done: a certificate first, then its records in a single write.

    A process that is killed leaves all records of an instance or none; half a line, after a
    crash of the machine, stays a line of its own, which readers report.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / records.FILE

    def append(self, done: TaskResult) -> None:
        """Write what came of one task, to the disk and not only to the system."""
        try:
            if done.path is not None and done.certificate is not None:
                write_atomically(self._folder / done.path, done.certificate)
                _flush(self._folder / done.path)
            self._append("".join(json.dumps(r.to_json()) + "\n" for r in done.records).encode())
        except OSError as error:
            reason = f"cannot be written: {error.strerror}"
            raise InvalidInput(reason, file=str(self._path)) from None

    def _append(self, lines: bytes) -> None:
        handle = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                lines = b"\n" + lines
            try:
                while lines:
                    lines = lines[os.write(handle, lines) :]
            except OSError:
                os.ftruncate(handle, size)
                raise
            os.fsync(handle)
        finally:
            os.close(handle)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_verdicts(folder: Path, study: str, verdicts: Sequence[Verdict]) -> None:
    """Write what became of the published claims."""
    content: dict[str, Any] = {
        "schema": "kvopt.verdicts/1",
        "study": study,
        "verdicts": [verdict.to_json() for verdict in verdicts],
    }
    write_atomically(folder / VERDICTS, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
