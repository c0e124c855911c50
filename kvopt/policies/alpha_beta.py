"""Alpha-protection that evicts a random part on overflow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from kvopt.errors import InvalidInput
from kvopt.model.instance import Instance
from kvopt.policies.alpha_protect import AlphaProtect
from kvopt.policies.base import View
from kvopt.policies.registry import register


@register
@dataclass
class AlphaBeta(AlphaProtect):
    """As alpha-protect, but each active request is evicted with probability beta on overflow.

    Drawing goes on, in order of arrival, until the next round fits.

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
        """Start with no request in line and the seed's coins."""
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
