"""A good schedule beside the bound: what takes the least of the machine goes first."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kvopt.bounds.seconds_evaluation import shares
from kvopt.model.batch_time import BatchTime
from kvopt.model.instance import Instance
from kvopt.policies.base import View
from kvopt.policies.prefix import Key, PrefixPolicy


@dataclass
class LeastShare(PrefixPolicy):
    """Look at the first in line by what they take of the machine, and start those that fit.

    What does not fit is passed over, up to ``patience`` times; then none passes.  It knows all
    outputs, as the bound does, and is asked for by no name: it looks for a schedule that a
    certificate can hold as its upper side.

    Parameters
    ----------
    takes
        What each request takes.
    window
        How many of the line are looked at.
    patience
        How often one of them may be passed over.
    """

    name = "least-share"
    source = "the order in which the fluid of the bound serves requests"
    takes: Sequence[int] = field(default=(), kw_only=True)
    window: int = field(default=1, kw_only=True)
    patience: int = field(default=0, kw_only=True)

    @classmethod
    def of(
        cls,
        instance: Instance,
        model: BatchTime,
        lines: Sequence[int],
        window: int = 1,
        patience: int = 0,
    ) -> LeastShare:
        """Return the policy for an instance and some lines of a model."""
        part = shares(instance, model, [model.lines[i] for i in lines], object)
        return cls(takes=part.takes.tolist(), window=window, patience=patience)

    def begin(self, view: View) -> None:
        """Start with no request in line and none passed over."""
        super().begin(view)
        self._passed = [0] * len(view.prompts)

    def key(self, view: View, i: int) -> Key:
        """Return what the request takes."""
        return (self.takes[i],)

    def arrived(self, view: View, i: int) -> None:
        """Join the line, which stays sorted."""
        insort(self._line, (self.full_key(view, i), i))

    def admit(self, view: View) -> Iterable[int]:
        """Start requests that fit, in the order of the line."""
        line, now, place = self._line, view.now, 0
        waits: list[int] = []
        while place < min(len(line), self.window):
            i = line[place][1]
            prompt, output = view.prompts[i], self.belief(view, i)
            if wait := self._ahead.wait(prompt, output, now):
                waits.append(wait)
                place += 1
                if self._passed[i] >= self.patience:
                    break
                continue
            for _, waiting in line[:place]:
                self._passed[waiting] += 1
            line.pop(place)
            self._ahead.add(prompt, output, now)
            yield i
        # Alone every request fits: with nothing active none waits.
        self._wake = now + min(waits) if waits else None
