"""Parallel kernels: threads share ranges of rows, since compiled loops release Python's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

_WORTH_IT = 5_000
"""Fewest rows of a range: for fewer, starting a thread takes longer than the work."""


def map_ranges(work: Callable[[int, int], Result], count: int, threads: int) -> list[Result]:
    """Return the results of a few ranges that make up ``range(count)``, in order."""
    parts = max(1, min(threads, count // _WORTH_IT))
    ends = [part * count // parts for part in range(parts + 1)]
    if parts == 1:
        return [work(0, count)]
    with ThreadPoolExecutor(parts) as pool:
        return list(pool.map(work, ends[:-1], ends[1:]))
