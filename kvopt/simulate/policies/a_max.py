"""A random order among those believed alike: outputs at their longest, or known."""

from __future__ import annotations

from dataclasses import dataclass

from kvopt.errors import InvalidInput
from kvopt.simulate.policies.base import Need, View, shuffled_ranks
from kvopt.simulate.policies.in_line import Key, PrefixPolicy
from kvopt.simulate.policies.registry import register


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


@register
@dataclass
class ARandom(PrefixPolicy):
    """Admit in the order of one random permutation and stop at the first that does not fit.

    Parameters
    ----------
    memory
        Tokens it may use, when that is less than M: the paper couples it on ``alpha M``.
    """

    name = "a-random"
    source = "chen-2025, Algorithm 4"

    memory: int | None = None

    def __post_init__(self) -> None:
        if self.memory is not None and self.memory < 1:
            raise InvalidInput(f"must be at least 1, got {self.memory}", field="memory")

    def begin(self, view: View) -> None:
        """Draw the permutation."""
        super().begin(view)
        self._rank = shuffled_ranks(len(view.prompts), self.seed)

    def capacity(self, view: View) -> int:
        """Return M, or the smaller memory that was asked for."""
        return view.memory if self.memory is None else min(self.memory, view.memory)

    def key(self, view: View, i: int) -> Key:
        """Return the place in the permutation."""
        return (self._rank[i],)
