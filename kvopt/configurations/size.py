"""Whether the configuration bound fits: asked before anything large, or compiled, is loaded."""

from __future__ import annotations

from collections import Counter

from kvopt.errors import TooLarge
from kvopt.model.instance import Instance

_MOST_PRICES = 20_000_000
"""Limit of the prices of states at all times, as integers; 160 MB."""
_MOST_CELLS = 60_000_000
"""Limit of the cells in the tables of one dynamic program, as floats; 480 MB."""
_MOST_CHECKED = 3_000_000
"""Limit of the cells of a table of `kvopt verify`, which refuses more."""
_MOST_ROUNDS = 2_000_000
"""Limit of requests times rounds: `kvopt verify` refuses half as many again, a search adds some."""


def check_size(instance: Instance, last: int) -> None:
    """Raise if the states of an instance, at the times up to the last one, take too much memory.

    Raises
    ------
    TooLarge
        With the number that is too large.
    """
    longest: dict[int, int] = {}
    for request in instance:
        longest[request.peak] = max(request.output, longest.get(request.peak, 0))
    states = sum(longest.values())
    if states * last > _MOST_PRICES:
        raise TooLarge(
            f"requests can be in {states:,} states in each of {last:,} rounds, too many to price"
        )
    if last * (len(instance) + 9) > _MOST_ROUNDS:
        raise TooLarge(f"{len(instance):,} requests can start in too many of {last:,} rounds")
    counts = Counter((r.peak, left) for r in instance for left in range(r.output))
    added = sum(min(many, instance.memory // peak) for (peak, _), many in counts.items())
    together, held = 0, 0
    for first in sorted(request.prompt + 1 for request in instance):
        held += first
        together += held <= instance.memory
    least = min((request.prompt + 1 for request in instance), default=1)
    members = min(added, instance.memory // least)
    cells = max(
        added * (together + 1) * (instance.memory + 1) / _MOST_CELLS,
        (members + 1) * (instance.memory + 1) / _MOST_CHECKED,
    )
    if cells > 1:
        raise TooLarge(f"sets of requests in {added:,} states take too much memory")
