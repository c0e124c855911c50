"""Tokens held over time: one sweep over begins and ends, in exact integers.

What holds prompt p from start k on holds ``p - k + t`` tokens at time t.  So memory grows in a
straight line from each begin or end to the next: what is held there follows from how many pieces
of work are active and from the sum of their ``p - k``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, repeat
from operator import add, mul, sub
from typing import NamedTuple

MANY = 2_000
"""Pieces from which on arrays are quicker than one piece after the other."""

_LARGEST_SUM = 2**62
"""Limit of sums in arrays; beyond, Python's integers are used."""


class Stretch(NamedTuple):
    """A time in which the same requests are active: nothing starts or completes inside.

    Parameters
    ----------
    begin, end
        It covers the rounds that end at ``begin + 1 .. end``.
    active
        Requests that are active: the tokens that memory grows by in a round.
    prompts
        Prompt tokens held.
    held
        Tokens held at its end, prompts included.
    """

    begin: int
    end: int
    active: int
    prompts: int
    held: int

    def held_at(self, time: int) -> int:
        """Return the tokens held at a time inside, on the way up to its end."""
        return self.held - self.active * (self.end - time)


class Sweep(NamedTuple):
    """What pieces of work hold, in columns.

    Parameters
    ----------
    starts, ends, prompts
        Of the pieces: each is active at the times ``start + 1 .. end``.
    times
        Those at which a piece starts or ends, ascending.
    active, held
        Pieces and tokens in the round that ends at each of the times.
    """

    starts: Sequence[int]
    ends: Sequence[int]
    prompts: Sequence[int]
    times: list[int]
    active: list[int]
    held: list[int]

    def stretches(self) -> Iterator[Stretch]:
        """Yield what is between each of the times and the next."""
        prompts = _sums(self.times, _changes(self.starts, self.ends, self.prompts))
        columns = (self.active[1:], prompts[1:], self.held[1:])
        for (begin, end), *what in zip(pairwise(self.times), *columns, strict=True):
            yield Stretch(begin, end, *what)


def swept(starts: Sequence[int], ends: Sequence[int], prompts: Sequence[int]) -> Sweep:
    """Return what pieces of work hold over time, whether an eviction loses them or not."""
    if len(starts) >= MANY and (found := _in_arrays(starts, ends, prompts)):
        return Sweep(starts, ends, prompts, *found)
    counts = _changes(starts, ends, repeat(1, len(starts)))
    offsets = _changes(starts, ends, map(sub, prompts, starts))
    times = sorted(counts)
    active = _sums(times, counts)
    held = map(add, _sums(times, offsets), map(mul, active, times))
    return Sweep(starts, ends, prompts, times, active, list(held))


def _changes(starts: Iterable[int], ends: Iterable[int], what: Iterable[int]) -> dict[int, int]:
    """Return by how much the sum of something over active pieces changes after each time."""
    changes: dict[int, int] = defaultdict(int)
    for start, end, number in zip(starts, ends, what, strict=True):
        changes[start] += number
        changes[end] -= number
    return changes


def _sums(times: list[int], changes: dict[int, int]) -> list[int]:
    """Return the sums up to each time, without what changes after it."""
    return [*accumulate(map(changes.__getitem__, times), initial=0)][:-1]


def _in_arrays(
    starts: Sequence[int], ends: Sequence[int], prompts: Sequence[int]
) -> tuple[list[int], list[int], list[int]] | None:
    """Return the times and what is active and held, None if 64 bits might not hold the sums."""
    largest = max(map(max, (starts, ends, prompts))) - min(0, *map(min, (starts, ends)))
    if largest * 2 * (len(starts) + 1) > _LARGEST_SUM:
        return None
    import numpy as np  # not before there is so much to count

    begins = np.array(starts)
    moments = np.concatenate((begins, np.array(ends)))
    order = moments.argsort(kind="stable")
    moments = moments[order]
    offsets = np.array(prompts) - begins
    firsts = np.flatnonzero(np.diff(moments, prepend=moments[0] - 1))
    times = moments[firsts]

    def sums(what: np.ndarray) -> np.ndarray:
        return np.append(0, np.concatenate((what, -what))[order].cumsum())[firsts]

    active = sums(np.ones_like(begins))
    return times.tolist(), active.tolist(), (sums(offsets) + active * times).tolist()
