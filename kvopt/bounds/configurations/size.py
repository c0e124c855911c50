"""Test whether the configuration bound fits before anything large or compiled is loaded."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from kvopt.errors import TooLarge
from kvopt.problem.instance import Instance

_MAX_PRICES = 20_000_000
"""Limit of the prices of states at all times, as integers; 160 MB."""
_MAX_CELLS = 60_000_000
"""Limit of the cells in the tables of one dynamic program, as floats; 480 MB."""
_MAX_QUICK = 5_000_000
"""The same if many programs are solved many times, some 10 ms each."""
_MAX_CHECKED = 3_000_000
"""Limit of the cells of a table of `kvopt verify`, well below its own limit."""
_MAX_ROUNDS = 2_000_000
"""Limit of requests times rounds: `kvopt verify` allows 1.5 times as many; a search adds some."""
_MAX_KEPT = 20_000_000
"""Limit of the floats that a dynamic program stores for its backward pass; some 0.05 s."""
_MAX_LARGE_STARTS = 60_000_000
"""Limit of requests times rounds where no start is removed: a byte each."""
_MAX_LARGE_STATES = 70_000_000
"""Limit of states times rounds there: `kvopt verify` takes 8 steps for each."""


def check_large(instance: Instance, last: int) -> None:
    """Raise `TooLarge` if prices at few knots, with all starts, are too many to hold or check."""
    longest, peaks = longest_of_peaks(instance), Counter(request.peak for request in instance)
    states = sum(longest.values())
    if states * last > _MAX_LARGE_STATES or last * len(instance) > _MAX_LARGE_STARTS:
        raise TooLarge(f"{len(instance):,} requests and {last:,} rounds are too many to check")
    together = most_together(instance)
    kept = 0
    for peak, rounds in longest.items():
        copies = min(peaks[peak], instance.memory // peak)
        for left in range(rounds):
            # A number for each copy as m-th member, m = 1 .. members, and for each h of tokens of
            # those before it.  All m grow until it completes: h + m left <= free.  Requests in one
            # state complete together, each with its peak: at most M // peak of them fit.
            free = instance.memory - peak + left
            members = min(together, free // left) if left else together
            kept += copies * (members * (free + 1) - left * (members * (members + 1) // 2))
    if kept > _MAX_KEPT:
        raise TooLarge(f"sets of requests in {states:,} states take too much memory")


def longest_of_peaks(instance: Instance) -> dict[int, int]:
    """Return for each peak the most rounds that a request with it takes."""
    longest: dict[int, int] = {}
    for request in instance:
        longest[request.peak] = max(request.output, longest.get(request.peak, 0))
    return longest


def most_together(instance: Instance) -> int:
    """Return how many requests fit at most, each with one token."""
    held = accumulate(sorted(request.prompt + 1 for request in instance))
    return sum(tokens <= instance.memory for tokens in held)


def check_starts(instance: Instance, last: int, max_prices: int = _MAX_PRICES) -> None:
    """Raise `TooLarge` if states, or starts, at the times up to the last one are too many."""
    states = sum(longest_of_peaks(instance).values())
    if states * last > max_prices:
        raise TooLarge(
            f"requests can be in {states:,} states in each of {last:,} rounds, too many to price"
        )
    if last * (len(instance) + 9) > _MAX_ROUNDS:
        raise TooLarge(f"{len(instance):,} requests can start in too many of {last:,} rounds")


def check_size(instance: Instance, last: int) -> None:
    """Raise `TooLarge` if these, or sets of requests in such states, take too much memory."""
    _refuse_cells(instance, last, _MAX_CELLS)


def is_quick(instance: Instance, last: int) -> bool:
    """Whether prices of states fit, and can be evaluated many times quickly."""
    try:
        _refuse_cells(instance, last, _MAX_QUICK)
    except TooLarge:
        return False
    return True


def _refuse_cells(instance: Instance, last: int, limit: int) -> None:
    """Raise `TooLarge` if the tables of one dynamic program have too many cells."""
    check_starts(instance, last)
    counts = Counter((r.peak, left) for r in instance for left in range(r.output))
    # A dynamic program adds so many requests at most, in all states of one time.
    added = sum(min(many, instance.memory // peak) for (peak, _), many in counts.items())
    smallest = min((request.prompt + 1 for request in instance), default=1)
    checked = (min(added, instance.memory // smallest) + 1) * (instance.memory + 1)
    cells = added * (most_together(instance) + 1) * (instance.memory + 1)
    if cells > limit or checked > _MAX_CHECKED:
        raise TooLarge(f"sets of requests in {added:,} states take too much memory")
