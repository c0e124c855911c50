"""Policies that know an interval for each output, and believe an end, or both."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from kvopt.simulate.policies.by_name import register
from kvopt.simulate.policies.in_line import Key, PrefixPolicy, ShuffledPolicy
from kvopt.simulate.policies.interface import Need, Policy, View


@register
@dataclass
class AMax(ShuffledPolicy):
    """Admit as many as fit when every output is the upper end of its interval.

    The paper samples the requests to admit at random; here ties of the upper ends are
    broken by ``seed``, and among unequal upper ends the smaller go first.
    """

    name = "a-max"
    source = "chen-2025, Algorithm 1"
    needs = (Need.INTERVALS,)

    def belief(self, view: View, i: int) -> int:
        """Return the upper end."""
        return view.beliefs.upper[i]

    def key(self, view: View, i: int) -> Key:
        """Return the upper end and the drawn place."""
        return view.beliefs.upper[i], self._rank[i]


@dataclass
class LeastBelief(ShuffledPolicy):
    """Believe the least possible output, and evict the smallest belief first.

    It is the lower end of the interval, or after an eviction the produced tokens if these are
    more.  Ties are broken by a drawn place.
    """

    needs = (Need.INTERVALS,)

    def begin(self, view: View) -> None:
        """Start from the lower ends."""
        super().begin(view)
        self._lower: dict[int, int] = {}
        self._lessons = 0

    def arrived(self, view: View, i: int) -> None:
        """Believe the lower end until more is known."""
        self._lower.setdefault(i, view.beliefs.lower[i])
        super().arrived(view, i)

    def belief(self, view: View, i: int) -> int:
        """Return the least possible output at the last start of the request."""
        return self._lower[i]

    def active_belief(self, view: View, i: int) -> int:
        """Return the key by which active requests are evicted."""
        return self._lower[i]

    def evict(self, view: View) -> Iterable[int]:
        """Evict the smallest beliefs until the next round fits."""
        if view.next_load <= view.memory:
            return
        for i in sorted(view.active, key=lambda i: (self.active_belief(view, i), self._rank[i])):
            yield i
            if view.next_load <= view.memory:
                return

    def evicted(self, view: View, i: int, start: int) -> None:
        """Learn from the tokens that were lost, and join the line again."""
        self.finished(view, i, start)
        if view.now - start > self._lower[i]:
            self._lower[i] = view.now - start
            self._lessons += 1
        self.rejoin(view, i)

    def learned(self) -> Hashable:
        """Return how often it learned: beliefs only rise, so this identifies states."""
        return self._lessons


@register
@dataclass
class AMin(LeastBelief):
    """Believe the lower end; evict the smallest belief first, and learn from lost work.

    The belief of an evicted request rises to the tokens that it had produced: its output is
    at least that.  Nothing else changes beliefs, so an active request that outlives its own
    is expected to need one round more.  Intervals may differ (Algorithm 5).
    """

    name = "a-min"
    source = "chen-2025, Algorithms 2 and 5"

    def key(self, view: View, i: int) -> Key:
        """Return the least possible output and the drawn place."""
        return self._lower[i], self._rank[i]


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
        """Join the end of the queue, or return to the old place."""
        self._belief.setdefault(i, view.beliefs.lower[i])
        if i not in self._place:
            self._place[i] = self._joined
            self._joined += 1
        super().arrived(view, i)

    def admit(self, view: View) -> Iterable[int]:
        """Start from the front, and store the ends of first tries."""
        for i in super().admit(view):
            if i not in self._removed:
                removal = view.now + self._belief[i]
                heapq.heappush(self._first_tries, (removal, self._place[i], i, view.now))
            yield i

    def evict(self, view: View) -> Iterable[int]:
        """Remove first tries at the lower end; all active requests if this is not enough."""
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
        """Return how many were removed: each is removed once, and only this changes the queue."""
        return len(self._removed)


@register
@dataclass
class ASwitch(Policy):
    """Use a-l if ``l / u`` is below ``(3 - sqrt 5) / 2``, else a-min.

    With ``x = l / u`` this means ``x^2 - 3 x + 1 > 0``, which integers decide exactly.  The
    smallest lower end and the largest upper end of all intervals count.
    """

    name = "a-switch"
    source = "chen-2025, section 5.1"
    needs = (Need.INTERVALS, Need.RANGE)

    def begin(self, view: View) -> None:
        """Choose a policy, which decides from now on."""
        low, high = view.range
        short = low * low - 3 * low * high + high * high > 0
        self._chosen: AL | AMin = AL(seed=self.seed) if short else AMin(seed=self.seed)
        self._chosen.begin(view)
        for method in ("arrived", "finished", "evict", "evicted", "withdrawn", "wake", "learned"):
            setattr(self, method, getattr(self._chosen, method))

    def admit(self, view: View) -> Iterable[int]:
        """Return the decision of the chosen policy."""
        return self._chosen.admit(view)

    def note(self) -> str:
        """Return the name of the chosen policy."""
        return f"chose {self._chosen.name}"
