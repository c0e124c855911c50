"""Policies that order requests by their mean starts in the LP relaxation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from kvopt.bounds.mean_starts import lagrangian_mean_starts, lp_mean_starts, lp_nonzeros
from kvopt.errors import InvalidInput, TooLarge
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.simulate.policies.by_name import register
from kvopt.simulate.policies.interface import Need, View
from kvopt.simulate.policies.phase1 import Candidate, batches, swapped
from kvopt.simulate.policies.planned import PlannedPolicy

_LP = "a vertex of the LP"
_AVERAGES = "Lagrangian averages, not the LP"
_DIGITS = 6
"""Significant decimals of a mean start: further ones are noise of the LP solver."""


@dataclass
class LpOrderPolicy(PlannedPolicy):
    """Plan by the mean starts of the LP relaxation of all waiting requests.

    Parameters
    ----------
    means
        ``lp``, ``lagrangian`` (averaged minimisers of the Lagrangian, which need no LP) or
        ``auto``: the LP as long as all LPs of the run together stay within ``nonzeros``.  The
        note of the run names the choice.
    nonzeros
        Limit for ``auto``.  An LP as large as the default takes some seconds.
    """

    needs = (Need.OUTPUTS, Need.LP)

    means: Literal["auto", "lp", "lagrangian"] = "auto"
    nonzeros: int = 4_000_000

    def __post_init__(self) -> None:
        if self.means not in ("auto", "lp", "lagrangian"):
            raise InvalidInput(f"must be auto, lp or lagrangian, got {self.means}", field="means")

    def begin(self, view: View) -> None:
        """Start with no plan."""
        super().begin(view)
        self._nonzeros_left = self.nonzeros
        self._plans: Counter[str] = Counter()

    def by_mean_start(
        self, view: View, candidates: Sequence[Candidate], *, arrivals: bool = False
    ) -> list[Candidate]:
        """Return candidates by mean start, ties by prompt, arrival and position.

        By default all of them may start at once; with ``arrivals`` from their arrivals on.
        """
        candidates = sorted(candidates, key=lambda c: c.position)  # the LP has them in this order
        instance = Instance(
            view.memory,
            [
                Request(c.arrival if arrivals else 0, c.prompt, c.output, f"r{place}")
                for place, c in enumerate(candidates)
            ],
        )
        means = dict(zip(candidates, self._mean_starts(instance), strict=True))
        return sorted(candidates, key=lambda c: (round(means[c], _DIGITS), *c[1:]))

    def _mean_starts(self, instance: Instance) -> list[float]:
        """Return the mean start of each request, by the LP if it is affordable."""
        if self._affords_lp(instance):
            try:
                means = lp_mean_starts(instance)
            except TooLarge:
                if self.means == "lp":
                    raise
            else:
                self._plans[_LP] += 1
                return means
        self._plans[_AVERAGES] += 1
        return lagrangian_mean_starts(instance)

    def _affords_lp(self, instance: Instance) -> bool:
        if self.means != "auto":
            return self.means == "lp"
        size = lp_nonzeros(instance)
        if size > self._nonzeros_left:
            return False
        self._nonzeros_left -= size
        return True

    def note(self) -> str | None:
        """Return the source of the mean starts."""
        sources = "; ".join(f"{count} by {name}" for name, count in sorted(self._plans.items()))
        return f"plans by mean starts: {sources}" if sources else None


@register
@dataclass
class SortedLp(LpOrderPolicy):
    """Scan requests by mean start in the LP relaxation and stop at the first that does not fit.

    Parameters
    ----------
    hindsight
        Plan once, for all requests, also later arrivals.  A request that has not arrived does not
        block later ones in the order.
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
        """Take the place in the only plan, or wait for the plan of this round."""
        if self.hindsight:
            self.rejoin(view, i)
        else:
            super().arrived(view, i)

    def plan(self, view: View, waiting: list[Candidate]) -> Iterator[Sequence[int]]:
        """Yield all requests, by mean start."""
        yield [candidate.position for candidate in self.by_mean_start(view, waiting)]


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
