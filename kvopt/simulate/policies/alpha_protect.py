"""Greedy admission without predictions, which keeps a share of the memory free."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from kvopt.errors import InvalidInput
from kvopt.problem.instance import Instance
from kvopt.simulate.policies.by_name import register
from kvopt.simulate.policies.in_line import Key, LinePolicy
from kvopt.simulate.policies.interface import View, fraction_below_one


@register
@dataclass
class AlphaProtect(LinePolicy):
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
        """Start with an empty line."""
        super().begin(view)
        self._limit = int((1 - self.alpha) * view.memory)

    def key(self, view: View, i: int) -> Key:
        """Return the arrival: ties are broken by position alone."""
        return (view.arrivals[i],)

    full_key = key

    def evicted(self, view: View, i: int, start: int) -> None:
        """Join the line again."""
        self.arrived(view, i)

    def admit(self, view: View) -> Iterable[int]:
        """Start from the front of the line while the limit allows."""
        while line := self._line.items():
            i = line[-1][-1]
            if view.next_load + view.prompts[i] - view.matched(i) + 1 > self._limit:
                return
            line.pop()
            yield i


@register
@dataclass
class AlphaBeta(AlphaProtect):
    """As alpha-protect, but on overflow each active request is evicted with probability beta.

    Draws are repeated, in order of arrival, until the next round fits.

    Parameters
    ----------
    beta
        Probability of each eviction.
    rounds
        Round after which a run counts as endless; by default ten times what serving one
        request after another would take.
    """

    name = "alpha-beta"
    source = "jaillet-2025-v2, section 5.2"
    draws = True

    beta: Fraction
    rounds: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.beta <= 1:
            raise InvalidInput(f"must be above 0 and at most 1, got {self.beta}", field="beta")

    def begin(self, view: View) -> None:
        """Start with an empty line and the seed's coins."""
        super().begin(view)
        self._random = Random(self.seed)

    def evict(self, view: View) -> Iterable[int]:
        """Toss a coin for every active request until the next round fits."""
        beta = float(self.beta)
        while view.next_load > view.memory:
            for i in sorted(view.active, key=lambda i: (view.arrivals[i], i)):
                if self._random.random() < beta:
                    yield i

    def round_limit(self, instance: Instance) -> int:
        """Return the round after which a run counts as endless."""
        if self.rounds is not None:
            return self.rounds
        return instance.last_arrival + 10 * instance.total_output
