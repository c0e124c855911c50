"""Batches that begin with the order of the LP relaxation and are swapped towards a least F."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvopt.policies.base import View
from kvopt.policies.lp_order import LpOrderPolicy
from kvopt.policies.phase1 import Candidate, batches
from kvopt.policies.phase1.swap import swapped
from kvopt.policies.registry import register


@register
@dataclass
class LpSwap(LpOrderPolicy):
    """Fill batches by mean start in the LP relaxation, swap locally while that lowers F.

    The mean starts are those of one LP for a whole plan.  Swaps are tried in their order, and
    batches keep to the sufficient condition that all peaks fit together.
    """

    name = "lp-swap"
    source = "wang-2025, Algorithm 7"

    def plan(self, view: View, waiting: list[Candidate]) -> Iterator[Sequence[int]]:
        """Yield batch after batch, each by believed output."""
        ordered = self.by_mean_start(view, waiting)
        places = {candidate.position: place for place, candidate in enumerate(ordered)}

        def solve(left: Sequence[Candidate], memory: int) -> list[Candidate]:
            return swapped(sorted(left, key=lambda c: places[c.position]), memory)

        for batch in batches(waiting, view.memory, solve):
            yield [candidate.position for candidate in batch]
