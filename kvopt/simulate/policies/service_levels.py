"""A policy for service levels: first tokens by due time, and an admission that keeps the pace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from kvopt.errors import InvalidInput
from kvopt.simulate.policies.by_name import register
from kvopt.simulate.policies.in_line import AheadPolicy, SortedLine
from kvopt.simulate.policies.interface import View

_WINDOW = 8
"""Limit of the requests that are passed over in a round."""


@register
@dataclass
class ServiceLevels(AheadPolicy):
    """Start what can still attain its service level by due time, and no more than keeps the pace.

    Parameters
    ----------
    care
        How many times as long as now later rounds are expected to last.

    Notes
    -----
    A request waits as long as a larger batch would be too slow for its tokens, or would make an
    active one late.  Requests that cannot attain any more come last, by arrival.  Without a service
    level all are due never, and so in order of arrival.
    """

    name = "slo"
    source = "kvopt"

    care: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.care < 1:
            raise InvalidInput(f"must be at least 1, got {self.care}", field="care")

    def begin(self, view: View) -> None:
        """Start with empty lines."""
        super().begin(view)
        self._hopeful: SortedLine[tuple[float, int]] = SortedLine()
        self._late: SortedLine[tuple[float, int]] = SortedLine()
        self._key: dict[int, tuple[float, int]] = {}
        self._ends: dict[int, float] = {}
        """When each active request that can attain has to complete."""
        # Of the round that begins now: its number, end, prompt tokens, and hopeful starts.
        self._round, self._round_end, self._prompts = -1, 0, 0
        self._begun: list[int] = []

    def arrived(self, view: View, i: int) -> None:
        """Join the line, by the time at which the first token is due."""
        due = view.due[i]
        held = view.prompts[i] + 2
        rest = view.clock.batch_time.stretch_ns(1, held, self.belief(view, i) - 1)
        self._key[i] = min(due.first, due.end - rest), i
        self._hopeful.add(self._key[i])

    def rejoin(self, view: View, i: int) -> None:
        """Join the line again after an eviction."""
        self._hopeful.add(self._key[i])

    def withdrawn(self, view: View, i: int) -> None:
        """Leave the line."""
        line = self._hopeful if self._key[i] in self._hopeful.items() else self._late
        line.remove(self._key[i])

    def finished(self, view: View, i: int, start: int) -> None:
        """Release the promised memory."""
        super().finished(view, i, start)
        self._ends.pop(i, None)

    def admit(self, view: View) -> Iterable[int]:
        """Start requests that can attain, by due time, and others if none of these waits."""
        if self._round != view.now:
            for i in self._begun:
                if i in view.active:
                    self._ends[i] = self._last(view, i, self._round_end)
            self._round, self._prompts, self._begun = view.now, 0, []
        yield from self._started(view, self._hopeful)
        if not len(self._hopeful):
            yield from self._started(view, self._late)
        self._wake = view.now + 1 if len(self._hopeful) + len(self._late) else None

    def _started(self, view: View, line: SortedLine[tuple[float, int]]) -> Iterable[int]:
        """Start requests of a line that fit and make none late, past a few that wait."""
        place, is_hopeful = 0, line is self._hopeful
        while place < min(len(line), _WINDOW):
            key = line.items()[-1 - place]
            i = key[1]
            if is_hopeful and self._is_late(view, i):
                line.remove(key)
                self._late.add((view.arrivals[i], i))
                self._key[i] = view.arrivals[i], i
            elif self._is_slow(view, i, is_hopeful) or self.waits(view, i):
                place += 1
            else:
                line.remove(key)
                self.promise(view, i)
                self._round_end = view.time + self._rounds(view, i)[0]
                self._prompts += view.prompts[i] - view.cached(i)
                self._begun += [i] * is_hopeful
                yield i

    def _rounds(self, view: View, i: int) -> tuple[int, int]:
        """Return how long the next round and later ones last if a request starts now."""
        model, active = view.clock.batch_time, len(view.active) + 1
        new = view.prompts[i] - view.cached(i)
        held = view.next_held + view.prompts[i] - view.matched(i) + 1
        first = model.round_ns(active, self._prompts + new, held)
        return first, model.round_ns(active, 0, held + active)

    @staticmethod
    def _last(view: View, i: int, first: int) -> float:
        """Return when a request has to complete whose first token is there at a time."""
        return min(view.due[i].end, first + view.due[i].rest)

    def _is_late(self, view: View, i: int) -> bool:
        """Whether a request that starts now cannot attain."""
        (first, later), due = self._rounds(view, i), view.due[i]
        begun = view.time + first
        return begun > due.first or begun + later * (self.belief(view, i) - 1) > due.end

    def _is_slow(self, view: View, i: int, is_hopeful: bool) -> bool:
        """Whether its tokens would be too slow in this batch, or an active request late by it."""
        if not view.active:
            return False
        first, later = self._rounds(view, i)
        end, later = view.time + first, int(later * self.care)
        if is_hopeful and later * (self.belief(view, i) - 1) > view.due[i].rest:
            return True
        if any(
            end > view.due[j].first
            or later * (self.belief(view, j) - 1) > self._last(view, j, end) - end
            for j in self._begun
        ):
            return True
        alone = view.clock.batch_time.round_ns(len(view.active), self._prompts, view.next_held)
        for j, last in self._ends.items():
            left = self.belief(view, j) - view.generated(j) - 1
            if end + later * left > last >= view.time + alone * (left + 1):
                return True
        return False
