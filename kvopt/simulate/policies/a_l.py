"""Requests not finished after the short length go to the end, or a-min where that is better."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from kvopt.simulate.policies.a_min import AMin
from kvopt.simulate.policies.base import Need, Policy, View
from kvopt.simulate.policies.in_line import Key, PrefixPolicy
from kvopt.simulate.policies.registry import register


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
        """Believe the lower ends; no request was removed yet."""
        super().begin(view)
        self._belief: dict[int, int] = {}
        self._joined = 0
        self._place: dict[int, int] = {}
        self._removed: set[int] = set()
        self._first_tries: list[tuple[int, int, int, int]] = []  # removal, place, request, start

    def belief(self, view: View, i: int) -> int:
        """Return the lower end before the removal, the upper end after it."""
        return self._belief[i]

    def key(self, view: View, i: int) -> Key:
        """Return the place in the queue."""
        return (self._place[i],)

    def arrived(self, view: View, i: int) -> None:
        """Join the end of the queue, or the place that is still one's own."""
        self._belief.setdefault(i, view.beliefs.lower[i])
        if i not in self._place:
            self._place[i] = self._joined
            self._joined += 1
        super().arrived(view, i)

    def admit(self, view: View) -> Iterable[int]:
        """Start from the front, and remember when first tries end."""
        for i in super().admit(view):
            if i not in self._removed:
                removal = view.now + self._belief[i]
                heapq.heappush(self._first_tries, (removal, self._place[i], i, view.now))
            yield i

    def evict(self, view: View) -> Iterable[int]:
        """Remove first tries that reached the lower end; everything if that is not enough."""
        while self._first_tries and self._first_tries[0][0] <= view.now:
            _, _, i, start = heapq.heappop(self._first_tries)
            if view.active.get(i) == start:
                yield i
        yield from super().evict(view)

    def evicted(self, view: View, i: int, start: int) -> None:
        """After a full first try believe the upper end and go to the end of the queue."""
        self.finished(view, i, start)
        if i not in self._removed and view.now - start >= self._belief[i]:
            self._belief[i] = view.beliefs.upper[i]
            self._removed.add(i)
            del self._place[i]
        self.arrived(view, i)

    def wake(self, view: View) -> int | None:
        """Ask again when a first try ends, or the first in line may fit."""
        rounds = [self._first_tries[0][0]] if self._first_tries else []
        waking = super().wake(view)
        return min(rounds + ([waking] if waking is not None else []), default=None)

    def learned(self) -> Hashable:
        """Return how many were removed: each is, once, and that alone changes the queue."""
        return len(self._removed)


@register
@dataclass
class ASwitch(Policy):
    """Use a-l where ``l / u`` is below ``(3 - sqrt 5) / 2``, else a-min.

    With ``x = l / u`` that is where ``x^2 - 3 x + 1 > 0``, which integers decide exactly.  The
    smallest lower end and the largest upper end of all intervals count.
    """

    name = "a-switch"
    source = "chen-2025, section 5.1"
    needs = (Need.INTERVALS, Need.RANGE)

    def begin(self, view: View) -> None:
        """Choose, and let the chosen one answer from now on."""
        low, high = view.range
        short = low * low - 3 * low * high + high * high > 0
        self._chosen: AL | AMin = AL(seed=self.seed) if short else AMin(seed=self.seed)
        self._chosen.begin(view)
        for method in ("arrived", "finished", "evict", "evicted", "withdrawn", "wake", "learned"):
            setattr(self, method, getattr(self._chosen, method))

    def admit(self, view: View) -> Iterable[int]:
        """Ask the chosen one."""
        return self._chosen.admit(view)

    def note(self) -> str:
        """Say which one was chosen."""
        return f"chose {self._chosen.name}"
