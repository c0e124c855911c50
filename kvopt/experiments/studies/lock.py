"""One run at a time in one folder: the system lets go of the lock of a process that is gone."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvopt.errors import InvalidInput

FILE = "lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder of a study; refuse it while another run holds it.

    The file stays when the run ends, however it ends: what counts is the lock of the system on
    it, which never outlives its process.
    """
    path = folder / FILE
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", file=str(path)) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            reason = f"another run is at work in this folder{_holder(handle)}"
            raise InvalidInput(reason, file=str(path)) from None
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _holder(handle: int) -> str:
    try:
        holder = json.loads(os.pread(handle, 1000, 0))
        return f" (process {int(holder['pid'])} on {holder['host']})"
    except (ValueError, KeyError, TypeError):  # it is about to say so, or about to end
        return ""
