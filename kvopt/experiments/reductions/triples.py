"""3-Partition by direct search: an exact cover of a multiset by triples of one sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from kvopt.simulation.simulator import Stopped

Triple = tuple[int, int, int]

_MOST_REMEMBERED = 1_000_000
"""Multisets known to have no cover that are kept; forgetting one only costs time."""


def cover(
    numbers: Sequence[int], target: int, should_stop: Callable[[], bool] = lambda: False
) -> list[Triple] | None:
    """Split a multiset into triples that sum to ``target``, or return None if none exist.

    The largest number left is in some triple, so its triples are all that a step has to try.
    Equal numbers are interchangeable, so a multiset that failed once fails again.

    Raises
    ------
    Stopped
        When it is asked to stop before it knows.

    Examples
    --------
    >>> cover([6, 6, 7, 7, 6, 8], 20)
    [(8, 6, 6), (7, 7, 6)]
    >>> cover([6, 6, 6, 6, 9, 7], 20) is None
    True
    """
    left = Counter(numbers)
    chosen: list[Triple] = []
    failed: set[tuple[int, ...]] = set()
    levels = [_triples(left, target)]
    while sum(left.values()):
        if should_stop():
            raise Stopped
        triple = next(levels[-1], None)
        if triple is None:
            if len(failed) < _MOST_REMEMBERED:
                failed.add(_state(left))
            levels.pop()
            if not chosen:
                return None
            left.update(chosen.pop())
            continue
        left.subtract(triple)
        if _state(left) in failed:
            left.update(triple)
            continue
        chosen.append(triple)
        levels.append(_triples(left, target))
    return chosen


def _triples(left: Counter[int], target: int) -> Iterator[Triple]:
    """Yield the triples of the largest number that is left, the others in falling order."""
    values = sorted((value for value, count in left.items() if count), reverse=True)
    if not values:
        return
    largest = values[0]
    for second in values:
        third = target - largest - second
        needed = Counter((largest, second, third))
        if third <= second and all(left[value] >= count for value, count in needed.items()):
            yield largest, second, third


def _state(left: Counter[int]) -> tuple[int, ...]:
    return tuple(sorted(left.elements()))
