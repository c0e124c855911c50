"""Files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvopt.errors import InvalidInput


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target`` that replaces it when the block succeeds.

    The temporary name keeps the suffix of the target, for writers that choose their
    format by it.
    """
    target = Path(target)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".kvopt-", suffix=target.suffix)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", file=str(target)) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(_mode_of_new_files())
        os.replace(temporary, target)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", file=str(target)) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(target: str | Path, text: str) -> None:
    """Write ``text`` to ``target``, all of it or nothing."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _mode_of_new_files() -> int:
    # mkstemp makes private files; the result should be as readable as any other file.
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
