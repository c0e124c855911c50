"""Standard streams that are closed or full, or whose reader may leave, as ``head`` does."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kvopt.errors import InvalidInput

UNREAD = 141
"""Exit status if the reader of the output, such as `head`, closed it."""

_STREAMS = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))
"""Standard streams by descriptor: how each is opened so that its use fails, messages are lost."""

_STANDARD_OUTPUT = 1
"""Its descriptor, even if prints are redirected."""

_UNWRITABLE = (errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT)
"""Errors of a stream that is full or closed."""


def open_closed_streams() -> None:
    """Open the standard streams that the caller closed, or files would take their descriptors.

    Reading the input and writing the output fails then, and messages are lost.
    """
    for descriptor, (name, flags, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, flags)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


@contextmanager
def writing_output() -> Iterator[None]:
    """Write the output of a block to its end.

    If its reader has closed it, the process ends silently.

    Raises
    ------
    InvalidInput
        If it cannot be written, for example because a disk is full.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard()
        sys.exit(UNREAD)
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        _discard()
        reason = f"cannot be written: {error.strerror}"
        raise InvalidInput(reason, field="standard output") from None


def _discard() -> None:
    """Discard the rest of the output, which Python would write again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STANDARD_OUTPUT)
