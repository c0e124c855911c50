"""Sorted-F on the shortest outputs that are possible, which eviction and running correct."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from kvopt.policies.base import Need, View, shuffled_ranks
from kvopt.policies.registry import register
from kvopt.policies.sorted_f import SortedF


@register
@dataclass
class SortedFAMin(SortedF):
    """Plan batches by the least outputs that are known; evict the smallest of these first.

    The belief of a request starts at the lower end of its interval and is raised in every
    round to the tokens that it has produced.  When the next round would not fit, the smallest
    belief goes first, ties by a drawn place, until it does.  The evicted keep their place in
    the plan and may start again at once; only an arrival makes a new plan.
    """

    name = "sorted-f-a-min"
    source = "wang-2025, Algorithm 5"
    needs = (Need.INTERVALS,)

    def begin(self, view: View) -> None:
        """Start from the lower ends and draw the places that break ties."""
        super().begin(view)
        self._least = list(view.beliefs.lower)  # of active requests: as of their start
        self._lessons = 0
        self._rank = shuffled_ranks(len(view.prompts), self.seed)

    def belief(self, view: View, i: int) -> int:
        """Return the least output that was known when the request last started."""
        return self._least[i]

    def evict(self, view: View) -> Iterable[int]:
        """Give up the smallest beliefs until the next round fits."""
        if view.next_load <= view.memory:
            return
        for i in sorted(view.active, key=lambda i: (self._raised(view, i), self._rank[i])):
            yield i
            if view.next_load <= view.memory:
                return

    def _raised(self, view: View, i: int) -> int:
        return max(self._least[i], view.generated(i))

    def evicted(self, view: View, i: int, start: int) -> None:
        """Keep what its tokens taught, and return to its place."""
        self.finished(view, i, start)
        if view.now - start > self._least[i]:
            self._least[i] = view.now - start
            self._lessons += 1
        self.rejoin(view, i)

    def learned(self) -> Hashable:
        """Return how often it learned: beliefs only rise, so this tells states apart."""
        return self._lessons
