"""Memory-constrained shortest first, by output alone or with prompts in the order."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from kvopt.simulate.policies.base import View, fraction_below_one
from kvopt.simulate.policies.in_line import Key, PrefixPolicy
from kvopt.simulate.policies.registry import register


@register
@dataclass
class McSf(PrefixPolicy):
    """Scan requests by believed output and stop at the first that does not fit (MC-SF).

    Parameters
    ----------
    alpha
        Share of the memory kept free when outputs are predicted (section 5.2.2): promises
        stay within ``(1 - alpha) M``.

    Notes
    -----
    With predictions it may loop.  Evictions let those finish whose belief was right and leave the
    others in front of the line, in the order of their beliefs.  Once memory overflows before
    one of those in front ends, the same happens again for ever: long backlogs get there
    in spite of a margin.
    """

    name = "mc-sf"
    source = "jaillet-2025-v2, Algorithm 1 and section 5.2.2"

    alpha: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        fraction_below_one(self.alpha, "alpha")

    def capacity(self, view: View) -> int:
        """Return the memory without the margin."""
        return int((1 - self.alpha) * view.memory)

    def key(self, view: View, i: int) -> Key:
        """Return the believed output."""
        return (view.beliefs.output[i],)


@register
@dataclass
class McSfTotal(PrefixPolicy):
    """Scan requests by prompt plus believed output and stop at the first that does not fit."""

    name = "mc-sf-total"
    source = "wang-2025, Theorem 8.2"

    def key(self, view: View, i: int) -> Key:
        """Return the believed peak."""
        return (view.prompts[i] + view.beliefs.output[i],)
