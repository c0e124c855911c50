"""Policies in which a request that fits may pass one that does not, a limited number of times.

Beams have the rule of `patient` in compiled loops (`kvopt.heuristics.dispatch`), which take a
fiftieth of the time: 0.015 s for 10,000 requests.  But loading them takes 0.7 s, as long as that
run here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from kvopt.problem.requests import checked_integer
from kvopt.simulate.policies.by_name import register
from kvopt.simulate.policies.in_line import Key
from kvopt.simulate.policies.interface import View
from kvopt.simulate.policies.orders import Svf


@register
@dataclass
class Patient(Svf):
    """Scan the first in line by believed token-rounds and start those that fit.

    Parameters
    ----------
    window
        Limit of the requests that do not fit.
    patience
        How often later requests may pass one; then they wait for it.

    Notes
    -----
    Memory that the first in line cannot use is not wasted, as in `svf`; and large requests are
    not postponed to the end, as without a limit to patience.
    """

    name = "patient"
    source = "kvopt"

    window: int = 32
    patience: int = 16

    def __post_init__(self) -> None:
        checked_integer(self.window, "window", 1)
        checked_integer(self.patience, "patience", 0)

    def begin(self, view: View) -> None:
        """Start with an empty line."""
        super().begin(view)
        self._passed: Counter[int] = Counter()

    def learned(self) -> Hashable:
        """Return how often each was passed over, on which decisions depend."""
        return frozenset(self._passed.items())

    def admit(self, view: View) -> Iterable[int]:
        """Start requests that fit among the first in line, until one was passed over too often."""
        line, passed, place = self._line.items(), self._passed, 0
        while place < min(len(line), self.window):
            first, i = line[-1][-1], line[-1 - place][-1]
            if place and passed[first] >= self.patience:
                return
            # The look-ahead would refuse it too, but takes longer.
            no_room = view.next_load + view.prompts[i] - view.matched(i) + 1 > view.memory
            if no_room or self.waits(view, i):
                place += 1
                continue
            if place:
                passed[first] += 1
            del line[-1 - place]
            self.promise(view, i)
            yield i


@dataclass
class LeastShare(Patient):
    """Scan the first in line by their share of the machine, and start those that fit.

    Every request that is passed over counts, not only the first in line, and one that was passed
    over too often ends the round.  It knows all outputs, like the bound, and has no name for
    commands: it searches for schedules, not for an online policy.

    Parameters
    ----------
    takes
        Machine time of each request.
    """

    name = "least-share"
    source = "the order in which the fluid of the bound serves requests"
    takes: Sequence[int] = field(default=(), kw_only=True)

    def key(self, view: View, i: int) -> Key:
        """Return the share of the request."""
        return (self.takes[i],)

    def admit(self, view: View) -> Iterable[int]:
        """Start requests that fit, in the order of the line."""
        line, place, waits = self._line.items(), 0, list[int]()
        while place < min(len(line), self.window):
            i = line[-1 - place][-1]
            if wait := self.waits(view, i):
                waits.append(wait)
                place += 1
                if self._passed[i] >= self.patience:
                    break
                continue
            self._passed.update(before[-1] for before in line[len(line) - place :])
            del line[-1 - place]
            self.promise(view, i)
            yield i
        # Alone every request fits: with nothing active none has to wait.
        self._wake = view.now + min(waits) if waits else None
