"""A-min or a-l, whichever promises the smaller ratio."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from kvopt.policies.a_l import AL
from kvopt.policies.a_min import AMin
from kvopt.policies.base import Need, Policy, View
from kvopt.policies.registry import register


@register
@dataclass
class ASwitch(Policy):
    """Use a-l where ``l / u`` is below ``(3 - sqrt 5) / 2``, else a-min.

    With ``x = l / u`` that is where ``x^2 - 3 x + 1 > 0``, which integers decide exactly.  The
    smallest lower end and the largest upper end of all intervals count.
    """

    name = "a-switch"
    source = "chen-2025, section 5.1"
    needs = (Need.INTERVALS,)

    def begin(self, view: View) -> None:
        """Choose, and let the chosen one begin."""
        low, high = min(view.beliefs.lower, default=1), max(view.beliefs.upper, default=1)
        short = low * low - 3 * low * high + high * high > 0
        self._chosen: AL | AMin = AL(seed=self.seed) if short else AMin(seed=self.seed)
        self._chosen.begin(view)

    def note(self) -> str:
        """Say which one was chosen."""
        return f"chose {self._chosen.name}"

    def arrived(self, view: View, i: int) -> None:
        """Pass it on."""
        self._chosen.arrived(view, i)

    def finished(self, view: View, i: int, start: int) -> None:
        """Pass it on."""
        self._chosen.finished(view, i, start)

    def evict(self, view: View) -> Iterable[int]:
        """Ask the chosen one."""
        return self._chosen.evict(view)

    def evicted(self, view: View, i: int, start: int) -> None:
        """Pass it on."""
        self._chosen.evicted(view, i, start)

    def admit(self, view: View) -> Iterable[int]:
        """Ask the chosen one."""
        return self._chosen.admit(view)

    def wake(self, view: View) -> int | None:
        """Ask the chosen one."""
        return self._chosen.wake(view)

    def learned(self) -> Hashable:
        """Ask the chosen one."""
        return self._chosen.learned()
