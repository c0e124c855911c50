"""Whoever is not finished after the short length goes to the end of the queue."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from kvopt.policies.base import Need, View
from kvopt.policies.prefix import Key, PrefixPolicy
from kvopt.policies.registry import register


@register
@dataclass
class AL(PrefixPolicy):
    """Serve a queue, believing the lower end; unfinished by then means the upper end.

    Made for outputs that are either ``l`` or ``u``.  A request that has produced ``l``
    tokens and is not finished is removed, once, is believed to need ``u`` from then on and
    goes to the end of the queue.
    """

    name = "a-l"
    source = "chen-2025, Algorithm 6"
    needs = (Need.INTERVALS,)

    def begin(self, view: View) -> None:
        """Believe the lower ends; nobody was removed yet."""
        super().begin(view)
        self._belief = list(view.beliefs.lower)
        self._joined = self._removals = self._removals_seen = 0
        self._place: dict[int, int] = {}
        self._first_tries: list[tuple[int, int, int]] = []  # (round of removal, request, start)

    def belief(self, view: View, i: int) -> int:
        """Return the lower end before the removal, the upper end after it."""
        return self._belief[i]

    def key(self, view: View, i: int) -> Key:
        """Return the place in the queue."""
        return (self._place[i],)

    def arrived(self, view: View, i: int) -> None:
        """Join the end of the queue."""
        self._place[i] = self._joined
        self._joined += 1
        super().arrived(view, i)

    def admit(self, view: View) -> Iterable[int]:
        """Start from the front, and remember when first tries end."""
        for i in super().admit(view):
            if self._belief[i] < view.beliefs.upper[i]:
                removal = view.now + self._belief[i]
                heapq.heappush(self._first_tries, (removal, i, view.now))
            yield i

    def evict(self, view: View) -> Iterable[int]:
        """Remove first tries that reached the lower end; everything if that is not enough."""
        while self._first_tries and self._first_tries[0][0] <= view.now:
            _, i, start = heapq.heappop(self._first_tries)
            if view.active.get(i) == start:
                yield i
        yield from super().evict(view)

    def evicted(self, view: View, i: int, start: int) -> None:
        """Believe the upper end after a full first try, and go to the end of the queue."""
        self.finished(view, i, start)
        if view.now - start >= self._belief[i]:
            self._belief[i] = view.beliefs.upper[i]
            self._removals += 1
        self.arrived(view, i)

    def wake(self, view: View) -> int | None:
        """Ask again when a first try ends, or the first in line may fit."""
        rounds = [self._first_tries[0][0]] if self._first_tries else []
        waking = super().wake(view)
        return min(rounds + ([waking] if waking is not None else []), default=None)

    def learned(self) -> Hashable:
        """Return what it believes and the order of the queue.

        Each request is removed once, so the number of removals stands for the beliefs, and
        right after a removal the state is new whatever the order is.
        """
        new, self._removals_seen = self._removals > self._removals_seen, self._removals
        return self._removals, None if new else tuple(i for _, i in sorted(self._line))
