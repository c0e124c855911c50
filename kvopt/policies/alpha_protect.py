"""Greedy admission that keeps a share of the memory free, without any prediction."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from kvopt.policies.base import Policy, View, fraction_below_one
from kvopt.policies.registry import register


@register
@dataclass
class AlphaProtect(Policy):
    """Admit by arrival while memory now stays within ``(1 - alpha) M``; clear on overflow.

    Memory now counts one further token for each active request and ``s + 1`` for each
    newcomer.  When active requests alone would pass M, all are evicted before any request is
    admitted.  With a small alpha the same requests can be admitted and evicted for ever.
    """

    name = "alpha-protect"
    source = "jaillet-2025-v2, section 5.2"
    needs = ()

    alpha: Fraction

    def __post_init__(self) -> None:
        fraction_below_one(self.alpha, "alpha")

    def begin(self, view: View) -> None:
        """Start with no request in line."""
        self._line: list[tuple[int, int]] = []
        self._limit = int((1 - self.alpha) * view.memory)

    def arrived(self, view: View, i: int) -> None:
        """Join the line."""
        heapq.heappush(self._line, (view.arrivals[i], i))

    def evicted(self, view: View, i: int, start: int) -> None:
        """Join the line again."""
        self.arrived(view, i)

    def admit(self, view: View) -> Iterable[int]:
        """Start from the front of the line while the limit allows."""
        line = self._line
        while line and view.next_load + view.prompts[line[0][1]] + 1 <= self._limit:
            yield heapq.heappop(line)[1]
