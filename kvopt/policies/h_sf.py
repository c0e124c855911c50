"""Hindsight shortest first: as many as possible at every round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvopt.lookahead import LookAhead
from kvopt.policies.base import Policy, View
from kvopt.policies.largest_set import Candidate, Running, largest_set
from kvopt.policies.registry import register


@register
@dataclass
class HSf(Policy):
    """Start the largest set of waiting requests that fits beside what is running.

    Among largest sets the least sum of outputs wins, then the one that is earlier by
    (output, prompt, arrival, position).  Shortest first finds such a set only where prompts
    are equal, so it is searched for (`kvopt.policies.largest_set`): exact, and slow for
    backlogs of many thousands.
    """

    name = "h-sf"
    source = "chen-2025, Algorithm 3"

    def begin(self, view: View) -> None:
        """Start with nobody waiting."""
        self._ahead = LookAhead(view.memory)
        self._waiting: set[int] = set()
        self._wake: int | None = None

    def arrived(self, view: View, i: int) -> None:
        """Wait."""
        self._waiting.add(i)

    def finished(self, view: View, i: int, start: int) -> None:
        """Give back what was promised."""
        self._ahead.remove(view.prompts[i], view.beliefs.output[i], start)

    def evicted(self, view: View, i: int, start: int) -> None:
        """Give back what was promised and wait again."""
        self.finished(view, i, start)
        self._waiting.add(i)

    def admit(self, view: View) -> Iterable[int]:
        """Start a largest set; when nobody fits, remember when somebody may."""
        waits = [self._ahead.wait(s, o, view.now) for s, o in self._smallest(view)]
        self._wake = view.now + min(waits) if waits and len(self._ahead) else None
        if not waits or min(waits) > 0:
            return
        chosen = self._chosen(view)
        self._waiting.difference_update(chosen)
        for i in chosen:
            self._ahead.add(view.prompts[i], view.beliefs.output[i], view.now)
            yield i
        self._wake = view.now + 1

    def wake(self, view: View) -> int | None:
        """Ask again when somebody may fit."""
        return self._wake if self._waiting else None

    def _smallest(self, view: View) -> list[tuple[int, int]]:
        """Return waiting shapes that no other is smaller than: who else fits, these do."""
        shapes = sorted({(view.prompts[i], view.beliefs.output[i]) for i in self._waiting})
        smallest: list[tuple[int, int]] = []
        for shape in shapes:
            if not smallest or shape[1] < smallest[-1][1]:
                smallest.append(shape)
        return smallest

    def _chosen(self, view: View) -> list[int]:
        outputs = view.beliefs.output
        order = sorted(
            self._waiting, key=lambda i: (outputs[i], view.prompts[i], view.arrivals[i], i)
        )
        running = [
            Running(view.prompts[i] + view.generated(i), max(outputs[i] - view.generated(i), 1))
            for i in view.active
        ]
        candidates = [Candidate(view.prompts[i], outputs[i]) for i in order]
        return [order[place] for place in largest_set(candidates, running, view.memory)]
