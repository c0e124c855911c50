"""Every output is taken for the longest that it can be."""

from __future__ import annotations

from dataclasses import dataclass

from kvopt.policies.base import Need, View, shuffled_ranks
from kvopt.policies.prefix import Key, PrefixPolicy
from kvopt.policies.registry import register


@register
@dataclass
class AMax(PrefixPolicy):
    """Admit as many as fit when every output is the upper end of its interval.

    The paper samples the requests to admit at random; here ties of the upper ends are
    broken by ``seed``, and among unequal upper ends the smaller go first.
    """

    name = "a-max"
    source = "chen-2025, Algorithm 1"
    needs = (Need.INTERVALS,)

    def begin(self, view: View) -> None:
        """Draw the places that break ties."""
        super().begin(view)
        self._rank = shuffled_ranks(len(view.prompts), self.seed)

    def belief(self, view: View, i: int) -> int:
        """Return the upper end."""
        return view.beliefs.upper[i]

    def key(self, view: View, i: int) -> Key:
        """Return the upper end and the drawn place."""
        return view.beliefs.upper[i], self._rank[i]
