"""Smallest volume first, but a request that fits may go before one that does not, for a while."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from kvopt.errors import InvalidInput
from kvopt.policies.base import View
from kvopt.policies.prefix import Key, PrefixPolicy
from kvopt.policies.registry import register
from kvopt.policies.waiting import SortedLine


@register
@dataclass
class Patient(PrefixPolicy):
    """Scan the first in line by believed token-rounds and start those that fit.

    Parameters
    ----------
    window
        How many that do not fit are looked at.
    patience
        How often one may be passed over by others behind; then they wait for it.

    Notes
    -----
    Memory that the first in line cannot use is not left empty, as `svf` leaves it; and those
    that need much are not put off to the end, as they would be without a limit to patience.
    """

    name = "patient"
    source = "kvopt"

    window: int = 32
    patience: int = 16

    def __post_init__(self) -> None:
        for field, least in (("window", 1), ("patience", 0)):
            if getattr(self, field) < least:
                raise InvalidInput(
                    f"must be at least {least}, got {getattr(self, field)}", field=field
                )

    def begin(self, view: View) -> None:
        """Start with no request in line."""
        super().begin(view)
        self._queue: SortedLine[Key] = SortedLine()  # negated: the first in line is the last
        self._passed: dict[int, int] = {}

    def key(self, view: View, i: int) -> Key:
        """Return the volume ``s o + o (o + 1) / 2``."""
        output = view.beliefs.output[i]
        return (view.prompts[i] * output + output * (output + 1) // 2,)

    def arrived(self, view: View, i: int) -> None:
        """Join the line, kept sorted: more than its front is looked at."""
        self._queue.add(tuple(-part for part in (*self.full_key(view, i), i)))

    def learned(self) -> Hashable:
        """Return how often each was passed over: the same requests may be treated otherwise."""
        return frozenset(self._passed.items())

    def admit(self, view: View) -> Iterable[int]:
        """Start requests that fit among the first in line, until one has been patient enough."""
        line, passed = self._queue.items(), self._passed
        place = seen = 0
        while place < len(line) and seen < self.window:
            item = line[-1 - place]
            first, i = -line[-1][-1], -item[-1]
            if place and passed.get(first, 0) >= self.patience:
                return
            prompt, output = view.prompts[i], self.belief(view, i)
            # The look-ahead would say no too, but takes longer.
            no_room = view.next_load + prompt + 1 > view.memory
            if no_room or self._ahead.wait(prompt, output, view.now):
                seen += 1
                place += 1
                continue
            if place:
                passed[first] = passed.get(first, 0) + 1
            self._queue.remove(item)
            self._ahead.add(prompt, output, view.now)
            yield i
