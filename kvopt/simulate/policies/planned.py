"""Policies that plan an order for waiting requests, and plan anew when one arrives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kvopt.simulate.policies.base import View
from kvopt.simulate.policies.in_line import Key, PrefixPolicy
from kvopt.simulate.policies.phase1 import Candidate
from kvopt.simulate.policies.waiting import Waiting


@dataclass
class PlannedPolicy(PrefixPolicy):
    """Serve requests in the order of a plan.

    The papers plan once for one backlog.  With arrivals a plan is made over everything that
    waits, at each round at which something arrives and at no other; what of the plan before
    has not started has no privilege.  What is evicted later returns to its place in the plan.

    A plan is taken part by part, and only when the line is empty and a waiting request could
    start: under load most plans are overtaken by the next arrival before that.
    """

    def begin(self, view: View) -> None:
        """Start with no plan."""
        super().begin(view)
        self._places: dict[int, int] = {}
        self._next_place = 0  # never lower: what an older plan placed comes first
        self._stale = False
        self._plan: Iterator[Sequence[int]] = iter(())
        self._unplaced = 0  # how many the plan has still to place
        self._waiting = Waiting()
        self._smallest = (0, 0)  # no prompt and no output of the unplaced is below these

    @abstractmethod
    def plan(self, view: View, waiting: list[Candidate]) -> Iterator[Sequence[int]]:
        """Yield the waiting requests, given in tie order, part after part as the plan has it."""

    def candidate(self, view: View, i: int) -> Candidate:
        """Return a request as a candidate of phase 1."""
        return Candidate(self.belief(view, i), view.prompts[i], view.arrivals[i], i)

    def key(self, view: View, i: int) -> Key:
        """Return the place in the plan."""
        return (self._places[i],)

    def arrived(self, view: View, i: int) -> None:
        """Wait for the plan of this round."""
        self._waiting.add(self.candidate(view, i))
        self._stale = True

    def rejoin(self, view: View, i: int) -> None:
        """Wait at the place that one has."""
        self._waiting.add(self.candidate(view, i))
        super().arrived(view, i)

    def withdrawn(self, view: View, i: int) -> None:
        """Wait no longer; the plan passes over it."""
        super().withdrawn(view, i)
        self._waiting.remove(self.candidate(view, i))

    def admit(self, view: View) -> Iterable[int]:
        """Start from the front of the line, and extend the plan when none of it remains."""
        self._wake = None
        if self._stale:
            self._begin_plan(view)
        while self._line or self._continue_plan(view):
            for i in super().admit(view):
                self._waiting.remove(self.candidate(view, i))
                yield i
            if self._line:
                return

    def _begin_plan(self, view: View) -> None:
        self._stale = False
        self._line.clear()
        waiting = (
            self._waiting.candidates.items().copy()
        )  # without what is evicted before the plan goes on
        self._unplaced = len(waiting)
        if waiting:
            least = min(view.private[candidate.position] for candidate in waiting)
            self._smallest = least, waiting[0].output
        self._plan = self.plan(view, waiting)

    def _continue_plan(self, view: View) -> bool:
        """Put the next part of the plan in line, unless none of it can start now."""
        if not self._unplaced:
            return False
        if self._must_wait(view, self._ahead.wait(*self._smallest, view.now)):
            return False
        for i in next(self._plan):
            self._places[i] = self._next_place
            self._next_place += 1
            self._unplaced -= 1
            if i not in self._gone:
                super().arrived(view, i)
        return True
