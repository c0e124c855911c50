"""Every output is taken for the shortest that it can be, and evictions teach better."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from kvopt.simulate.policies.base import Need, View, shuffled_ranks
from kvopt.simulate.policies.in_line import Key, PrefixPolicy
from kvopt.simulate.policies.registry import register


@dataclass
class LeastBelief(PrefixPolicy):
    """Believe the least output that is known, and evict the smallest belief first.

    That is the lower end of the interval, and after an eviction the tokens that had been
    produced, if these are more.  Ties are broken by a drawn place.
    """

    needs = (Need.INTERVALS,)

    def begin(self, view: View) -> None:
        """Start from the lower ends and draw the places that break ties."""
        super().begin(view)
        self._least: dict[int, int] = {}
        self._lessons = 0
        self._rank = shuffled_ranks(len(view.prompts), self.seed)

    def arrived(self, view: View, i: int) -> None:
        """Believe the lower end until more is known."""
        self._least.setdefault(i, view.beliefs.lower[i])
        super().arrived(view, i)

    def belief(self, view: View, i: int) -> int:
        """Return the least output that was known when the request last started."""
        return self._least[i]

    def active_belief(self, view: View, i: int) -> int:
        """Return what evictions of active requests go by."""
        return self._least[i]

    def evict(self, view: View) -> Iterable[int]:
        """Give up the smallest beliefs until the next round fits."""
        if view.next_load <= view.memory:
            return
        for i in sorted(view.active, key=lambda i: (self.active_belief(view, i), self._rank[i])):
            yield i
            if view.next_load <= view.memory:
                return

    def evicted(self, view: View, i: int, start: int) -> None:
        """Learn from the tokens that were lost, and join the line again."""
        self.finished(view, i, start)
        if view.now - start > self._least[i]:
            self._least[i] = view.now - start
            self._lessons += 1
        self.rejoin(view, i)

    def learned(self) -> Hashable:
        """Return how often it learned: beliefs only rise, so this tells states apart."""
        return self._lessons


@register
@dataclass
class AMin(LeastBelief):
    """Believe the lower end; evict the smallest belief first, and learn from what it lost.

    The belief of an evicted request rises to the tokens that it had produced: its output is
    at least that.  Nothing else changes beliefs, so an active request that outlives its own
    is expected to need one round more.  Intervals may differ (Algorithm 5).
    """

    name = "a-min"
    source = "chen-2025, Algorithms 2 and 5"

    def key(self, view: View, i: int) -> Key:
        """Return the least output that is known and the drawn place."""
        return self._least[i], self._rank[i]
