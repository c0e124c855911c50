"""Files that commands write: tested before long work; a failed write never loses a result."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvopt.cli.messages import AsMessages, is_json, say
from kvopt.errors import InvalidInput, KvoptError
from kvopt.files.atomic import TEMPORARY, own_descriptor, refuse_unwritable

CHECKED = "; kvopt verify checks it"
"""Remark about a certificate."""


def try_outputs(**given: Path | None) -> None:
    """Refuse a file that cannot be written, before the work whose result it holds.

    The paths have the names of their options.  If one of them is standard output, everything else
    is printed to standard error.
    """
    known = {f"--{name} {path}": path for name, path in given.items() if path is not None}
    piped = [place for place, path in known.items() if own_descriptor(path) == 1]
    others = ["--json"] * is_json() + piped[1:]
    if piped and others:
        reason = f"goes without {others[0]}: both are standard output"
        raise InvalidInput(reason, field=piped[0])
    if piped:
        sys.stdout = AsMessages()
    for place, path in known.items():
        with _placed(place):
            refuse_unwritable(path)


def try_folder(path: Path) -> None:
    """Refuse a folder that can neither be used nor created; create none."""
    real = path.absolute()
    existing = next(place for place in (real, *real.parents) if os.path.lexists(place))
    with _placed(f"--out {path}"):
        refuse_unwritable(existing / TEMPORARY)


@contextmanager
def written(
    path: Path | None,
    write: Callable[[Any, Path], object],
    value: object,
    about: str | None = None,
    option: str = "--output",
) -> Iterator[bool]:
    """Write a value to a file, let the block print the result, and report a failed write last.

    A full disk must not lose the result of an hour.  The block learns whether a file was
    written: none is without a path, or without a value.  With a remark the file is reported.
    """
    failure, is_there = None, False
    if path is not None and value is not None:
        try:
            with _placed(f"{option} {path}"):
                write(value, path)
            is_there = True
        except KvoptError as error:
            failure = error
    yield is_there
    if failure is not None:
        raise failure
    if path is not None and is_there and about is not None:
        say(f"wrote {name_of(path)}{about}")


def write_output(
    path: Path, write: Callable[[Any, Path], object], value: object, about: str = ""
) -> None:
    """Write the file of ``--output`` if nothing else is printed, and report it."""
    with written(path, write, value, about):
        pass


def name_of(path: Path) -> str:
    """Return the name of a written file for messages."""
    return "standard output" if own_descriptor(path) == 1 else str(path)


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Name option and path in an error about the path; one with a field is about the content."""
    try:
        yield
    except InvalidInput as error:
        if error.field is not None:
            raise
        raise InvalidInput(error.reason, field=place) from None
