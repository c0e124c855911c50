"""Memory in whole blocks: what a server gives out, and never less than the tokens held."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate

from kvopt.model.pausing import PausedSchedule


def blocks_for(tokens: int, block: int) -> int:
    """Return how many blocks of so many tokens hold these tokens."""
    return -(-tokens // block)


def block_overflow(schedule: PausedSchedule, block: int) -> tuple[int, int, int] | None:
    """Return where the blocks of a memory do not suffice, None if they do.

    Returns
    -------
    tuple[int, int, int] | None
        The first such time, the blocks needed then, and the position of the request that was
        the last to take one of them.
    """
    total, needed = schedule.instance.memory // block, 0
    changes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for i, (time, change) in _changes(schedule, block):
        changes[time].append((change, i))
    for time in sorted(changes):
        in_order = sorted(changes[time])  # blocks are given back first
        sums = list(accumulate((change for change, _ in in_order), initial=needed))
        needed = sums[-1]
        if needed > total:
            last = next(k for k, after in enumerate(sums[1:]) if after > total)
            return time, needed, in_order[last][1]
    return None


def _changes(schedule: PausedSchedule, block: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield for each request when it takes blocks (more than 0) or gives them back."""
    for i, segments in enumerate(schedule.segments):
        held = schedule.instance.requests[i].prompt
        for first, last in segments:
            yield i, (first, blocks_for(held + 1, block))
            full = held + 1 + -(held + 1) % block  # tokens of the blocks that it has by then
            end = held + last - first + 1
            yield from ((i, (first + n - held, 1)) for n in range(full, end, block))
            held = end
            yield i, (last + 1, -blocks_for(held, block))
