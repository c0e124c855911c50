"""Memory in whole blocks: what a server gives out, and never less than the tokens held."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from kvopt.timetable.sweep import Sweep

if TYPE_CHECKING:
    from kvopt.timetable.schedule import Schedule


def blocks_for(tokens: int, block: int) -> int:
    """Return how many blocks of so many tokens hold these tokens."""
    return -(-tokens // block)


def blocks_held(sweep: Sweep, block: int) -> Iterator[tuple[int, int]]:
    """Yield each time at which work ends, ascending, and the blocks held then.

    Blocks are given back at ends only, so that is where they peak.  What holds ``offset + t``
    tokens at time t, with ``offset = q B + r`` and ``t = u B + v``, takes ``q + u`` blocks, one
    more if ``r + v > 0``, and one more if ``r + v > B``: so what is active is counted by its r.
    """
    changes: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for start, end, prompt in zip(sweep.starts, sweep.ends, sweep.prompts, strict=True):
        whole, rest = divmod(prompt - start, block)
        changes[start].append((1, whole, rest))
        changes[end].append((-1, -whole, rest))
    active = wholes = 0
    rests: Counter[int] = Counter()
    for time in sorted(changes):
        rounds, late = divmod(time, block)
        if any(change < 0 for change, _, _ in changes[time]):
            begun = sum(n for r, n in rests.items() if r + late > 0)
            more = sum(n for r, n in rests.items() if r + late > block)
            yield time, wholes + active * rounds + begun + more
        for change, whole, rest in changes[time]:
            active, wholes = active + change, wholes + whole
            rests[rest] += change
            if not rests[rest]:
                del rests[rest]


def most_blocks(sweep: Sweep, block: int) -> int:
    """Return the most blocks held at one time."""
    return max((needed for _, needed in blocks_held(sweep, block)), default=0)


def block_overflow(schedule: Schedule, block: int) -> tuple[int, int, int] | None:
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


def _changes(schedule: Schedule, block: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield for each request when it takes blocks (more than 0) or gives them back."""
    for i, segments in enumerate(schedule.spans):
        held = schedule.instance.requests[i].prompt
        for first, last in segments:
            yield i, (first, blocks_for(held + 1, block))
            full = held + 1 + -(held + 1) % block  # tokens of the blocks that it has by then
            end = held + last - first + 1
            yield from ((i, (first + n - held, 1)) for n in range(full, end, block))
            held = end
            yield i, (last + 1, -blocks_for(held, block))
