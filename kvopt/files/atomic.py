"""Files appear whole or not at all; devices and pipes get everything or nothing."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvopt.errors import InvalidInput

TEMPORARY = ".kvopt-"
"""Prefix of the names of unfinished files, which remain after a process is killed."""

_STREAMS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", re.ASCII)


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Yield a temporary path; its content is moved to ``target`` when the block succeeds.

    The temporary name keeps the suffix of the target, for writers that choose their
    format by it.  A regular file is replaced; for a symbolic link, the file it points
    to.  A device or a pipe is written to, not replaced.
    """
    target = Path(target)
    try:
        regular = _regular_file(target)
        folder = tempfile.gettempdir() if regular is None else regular.parent
        handle, name = tempfile.mkstemp(dir=folder, prefix=TEMPORARY, suffix=target.suffix)
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        if regular is None:
            _pour(temporary, target)
        else:
            temporary.chmod(_mode_for(regular))
            os.replace(temporary, regular)
    except (OSError, UnicodeError) as error:
        if isinstance(error, BrokenPipeError) and own_descriptor(target) == 1:
            raise  # the reader of the output ended; no file is at fault
        raise _unwritable(target, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(target: str | Path, text: str) -> None:
    """Write ``text`` to ``target``, all of it or nothing."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def refuse_unwritable(target: str | Path) -> None:
    """Raise if ``target`` cannot be written now; an existing file stays as it is.

    A pipe is not opened for this test: it would wait for a reader.
    """
    target = Path(target)
    try:
        regular = _regular_file(target)
        if regular is not None:
            handle, name = tempfile.mkstemp(dir=regular.parent, prefix=TEMPORARY)
            os.close(handle)
            os.unlink(name)
        elif (descriptor := own_descriptor(target)) is not None:
            os.fstat(descriptor)  # this fails if it is closed
        elif not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from None


def _regular_file(target: Path) -> Path | None:
    """Return the file to create or replace, None for a target that can only be written to."""
    if own_descriptor(target) is not None:
        return None
    real = Path(os.path.realpath(target))
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:  # a new file, or a link to one
        return real
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return real if stat.S_ISREG(mode) else None


def own_descriptor(target: Path) -> int | None:
    """Return the descriptor of an open file such as ``-`` or ``/dev/stdout``."""
    name = str(target)
    if name in _STREAMS:
        return _STREAMS[name]
    match = _DESCRIPTOR.fullmatch(name)
    return None if match is None else int(match[1])


def _pour(temporary: Path, target: Path) -> None:
    # Opening /dev/stdout by its name would begin a redirected file anew, and fail for a
    # socket; a copy of the descriptor continues at the position of the others.
    descriptor = own_descriptor(target)
    sink = target if descriptor is None else os.dup(descriptor)
    with open(sink, "wb") as stream, temporary.open("rb") as source:
        shutil.copyfileobj(source, stream)


def _unwritable(target: Path, error: OSError | ValueError) -> InvalidInput:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return InvalidInput(f"cannot be written: {reason}", file=str(target))


def _mode_for(path: Path) -> int:
    # mkstemp makes private files: the new one should be as readable as the one it
    # replaces, or as any other new file.
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
