"""Mean starts of the LP relaxation, in ascending order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvopt.policies.base import Need, View
from kvopt.policies.lp_order import LpOrderPolicy
from kvopt.policies.phase1 import Candidate
from kvopt.policies.registry import register


@register
@dataclass
class SortedLp(LpOrderPolicy):
    """Scan requests by mean start in the LP relaxation and stop at the first that does not fit.

    Parameters
    ----------
    hindsight
        Plan once, over everything that will ever arrive.  A request that has not arrived does not
        hold up those behind.
    """

    name = "sorted-lp"
    source = "wang-2025, Algorithm 6"

    hindsight: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hindsight:
            vars(self)["needs"] = (*type(self).needs, Need.ARRIVALS)

    def begin(self, view: View) -> None:
        """Start with no plan, or with the only one."""
        super().begin(view)
        if self.hindsight:
            requests = [self.candidate(view, i) for i in range(len(view.prompts))]
            order = self.by_mean_start(view, requests, arrivals=True)
            self._places = {c.position: place for place, c in enumerate(order)}

    def arrived(self, view: View, i: int) -> None:
        """Take one's place in the only plan, or wait for the plan of this round."""
        if self.hindsight:
            self.rejoin(view, i)
        else:
            super().arrived(view, i)

    def plan(self, view: View, waiting: list[Candidate]) -> Iterator[Sequence[int]]:
        """Yield all requests, by mean start."""
        yield [candidate.position for candidate in self.by_mean_start(view, waiting)]
