"""The memory budget of this process, and its current use.

A budget is kept like a time limit.  Work of known size is refused before it begins if it is too
large; work that grows is stopped.  The default is a share of
the memory of the machine or of the container.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from kvopt.errors import InvalidInput, shown

VARIABLE = "KVOPT_RAM"
"""Environment variable with the default budget."""

DEFAULT_SHARE = 0.8
"""Default share of the machine's memory for a search."""

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNLIMITED = 2**60
"""From so many bytes on a limit of a container is no limit."""


def parsed_size(text: str | int | None, field: str = "ram") -> int | None:
    """Return bytes of a size such as ``4G``, ``512M`` or ``2.5GiB``; K, M, G are powers of 1024."""
    if text is None:
        return None
    match = _SIZE.fullmatch(str(text).strip())
    size = 0 if match is None else int(float(match[1]) * _UNITS[match[2].upper()])
    if size < 1:
        raise InvalidInput(f"must be a size such as 4G or 512M, got {shown(text)}", field=field)
    return size


def in_words(size: float) -> str:
    """Return bytes in a suitable unit."""
    if size < 2**30:
        return f"{size / 2**20:,.0f} MB"
    return f"{size / 2**30:,.1f} GB"


@cache
def default_budget() -> int:
    """Return the budget of the environment, else a share of the available memory."""
    if (budget := parsed_size(os.environ.get(VARIABLE), VARIABLE)) is not None:
        return budget
    limits = container_limits(_text(Path("/proc/self/cgroup")))
    return int(DEFAULT_SHARE * min([_machine(), *limits]))


def used() -> int:
    """Return the current bytes of this process, 0 if the system does not report them."""
    fields = _text(Path("/proc/self/statm")).split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def give_back() -> None:
    """Return freed memory to the system, for the next engine."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # not every C library has it
        if trim is not None:
            trim(0)


def _machine() -> int:
    """Return the bytes that the machine has."""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _UNLIMITED


def container_limits(groups: str, root: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """Yield the limits of control groups of both versions, from the list of the system."""
    for line in groups.splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        base = root / "memory" if kinds else root
        name = "memory.limit_in_bytes" if kinds else "memory.max"
        inner = base / path.lstrip("/")
        for group in (inner, *inner.parents):
            limit = _text(group / name).strip()
            if limit.isdigit() and int(limit) < _UNLIMITED:
                yield int(limit)
            if group == base:
                break


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
