"""First come, first served with look-ahead: as soon as it fits, or with a pause after a start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvopt.errors import InvalidInput
from kvopt.simulate.policies.base import View
from kvopt.simulate.policies.in_line import Key, PrefixPolicy
from kvopt.simulate.policies.registry import register


@register
@dataclass
class Fcfs(PrefixPolicy):
    """Scan by arrival and stop at the first without room ahead (MC-Benchmark, no server's FCFS).

    A server's first come, first served knows no output before its end.  This one looks ahead with
    the believed outputs, which are the true ones unless ``pred`` says otherwise: then nothing that
    it starts is ever evicted.
    """

    name = "fcfs"
    source = "jaillet-2025-v2, Algorithm 2"

    def key(self, view: View, i: int) -> Key:
        """Return the arrival: ties are broken by position alone."""
        return (view.arrivals[i],)

    full_key = key


@register
@dataclass
class Paced(Fcfs):
    """Scan requests by arrival with look-ahead, and start at most one every ``gap`` rounds.

    Requests that start together end together, and the cache is full only then.  Where they start
    one after another some are young while others are old, and more of them share the cache.

    Parameters
    ----------
    gap
        Rounds from one start to the next, at least.
    """

    name = "paced"
    source = "kvopt, docs/findings/theory.md"

    gap: int = 1

    def __post_init__(self) -> None:
        if self.gap < 1:
            raise InvalidInput(f"must be at least 1, got {self.gap}", field="gap")

    def begin(self, view: View) -> None:
        """Nothing was started yet."""
        super().begin(view)
        self._next = 0

    def admit(self, view: View) -> Iterable[int]:
        """Start the first in line if it fits and the pause is over."""
        self._wake = None
        if view.now >= self._next:
            for i in super().admit(view):
                self._next = view.now + self.gap
                yield i
                break
        if self._line and view.now < self._next:
            self._wake = self._next
