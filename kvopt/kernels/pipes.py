"""Standard output that is a pipe whose reader may leave, as ``head`` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

UNREAD = 141
"""Exit status if the reader of the output, such as `head`, closed it."""

_STANDARD_OUTPUT = 1
"""Its descriptor, even if prints are redirected."""


@contextmanager
def ended_by_reader() -> Iterator[None]:
    """End the process silently if the reader of the block's output has closed it."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python would flush again at its end, and report an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STANDARD_OUTPUT)
        sys.exit(UNREAD)
