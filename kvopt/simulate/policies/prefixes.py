"""Orders by shared prefixes: the longest match with the cache, and private tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kvopt.problem.requests import LARGEST_INTEGER, checked_integer, volume_of
from kvopt.simulate.policies.base import Need, View
from kvopt.simulate.policies.in_line import AheadPolicy, Key, PrefixPolicy
from kvopt.simulate.policies.registry import register


@register
@dataclass
class SvfPrivate(PrefixPolicy):
    """Scan requests by believed token-rounds of their private tokens, with later sharers known."""

    name = "svf-private"
    source = "kvopt"
    needs = (Need.OUTPUTS, Need.PREFIXES)

    def key(self, view: View, i: int) -> Key:
        """Return the volume, of private tokens and output."""
        return (volume_of(view.private[i], view.beliefs.output[i]),)


@register
@dataclass
class KLpm(AheadPolicy):
    """Start the oldest request, then k - 1 times the one with the longest held prefix.

    It stops at the first that does not fit.  Of equal matches the older request goes first.

    Parameters
    ----------
    k
        Every k-th start is the oldest; 1 is first come, first served.
    """

    name = "k-lpm"
    source = "arXiv 2502.04677, k-LPM"

    k: int

    def __post_init__(self) -> None:
        checked_integer(self.k, "k", 1)

    def begin(self, view: View) -> None:
        """Start with an empty line."""
        super().begin(view)
        self._line: set[int] = set()
        self._started = 0

    def arrived(self, view: View, i: int) -> None:
        """Join the line."""
        self._line.add(i)

    def withdrawn(self, view: View, i: int) -> None:
        """Leave the line."""
        self._line.remove(i)

    def learned(self) -> int:
        """Return the number of starts since the last turn of the oldest."""
        return self._started % self.k

    def _next(self, view: View) -> int:
        """Return the request whose turn it is."""
        is_matched = self._started % self.k > 0
        return min(self._line, key=lambda i: (is_matched and -view.cached(i), view.arrivals[i], i))

    def admit(self, view: View) -> Iterable[int]:
        """Start one after the other until one does not fit."""
        while self._line:
            i = self._next(view)
            if self._must_wait(view, self.waits(view, i)):
                return
            self._line.remove(i)
            self._started += 1
            self.promise(view, i)
            yield i
        self._wake = None


@register
@dataclass
class Lpm(KLpm):
    """Start the request with the longest held prefix (longest prefix match), then the next one.

    It stops at the first that does not fit.  Of equal matches the older request goes first.
    """

    name = "lpm"
    source = "SGLang (arXiv 2312.07104)"

    k: int = field(default=LARGEST_INTEGER, init=False)

    def begin(self, view: View) -> None:
        """Start with an empty line, and no turn of the oldest."""
        super().begin(view)
        self._started = 1

    def learned(self) -> int:
        """Return nothing that changes: the oldest never has a turn."""
        return 0
