"""Memory in whole blocks: what a server gives out, and never less than the tokens held."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from kvopt.timetable.sweep import Sweep


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
    for start, end, prompt in zip(sweep.starts, sweep.ends, sweep.before, strict=True):
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
