"""Policies that plan an order for waiting requests, and plan again when one arrives.

The order of Sorted-F are batches of least F, one after the other: by believed outputs, or by the
least possible ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kvopt.simulate.policies.by_name import register
from kvopt.simulate.policies.in_line import Key, PrefixPolicy, SortedLine
from kvopt.simulate.policies.interface import View
from kvopt.simulate.policies.output_intervals import LeastBelief
from kvopt.simulate.policies.phase1 import Auto, Candidate, Phase1, batches, solver


@dataclass
class PlannedPolicy(PrefixPolicy):
    """Serve requests in the order of a plan.

    The papers plan once for one backlog.  With arrivals a plan is made for all waiting requests
    at each round with an arrival, and at no other; requests of the last plan that have not
    started have no privilege.  An evicted request returns to its place in the plan.

    A plan is taken part by part, and only when the line is empty and a waiting request could
    start: under load the next arrival replaces most plans before that.
    """

    def begin(self, view: View) -> None:
        """Start with no plan."""
        super().begin(view)
        self._places: dict[int, int] = {}
        self._next_place = 0  # it never falls: requests of an older plan come first
        self._stale = False
        self._plan: Iterator[Sequence[int]] = iter(())
        self._unplaced = 0  # number of requests that the plan has yet to place
        self._waiting: SortedLine[Candidate] = SortedLine()
        self._gone: set[int] = set()  # waiting requests that another worker has started
        self._smallest = (0, 0)  # lower bounds on prompts and outputs of unplaced requests

    @abstractmethod
    def plan(self, view: View, waiting: list[Candidate]) -> Iterator[Sequence[int]]:
        """Yield the waiting requests, given in tie order, in the parts of the plan."""

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
        """Wait at the old place."""
        self._waiting.add(self.candidate(view, i))
        super().arrived(view, i)

    def withdrawn(self, view: View, i: int) -> None:
        """Leave the waiting requests; the plan skips it."""
        if i in self._places and self.item(view, i) in self._line.items():
            super().withdrawn(view, i)
        self._gone.add(i)
        self._waiting.remove(self.candidate(view, i))

    def admit(self, view: View) -> Iterable[int]:
        """Start from the front of the line, and extend the plan when none of it remains."""
        self._wake = None
        if self._stale:
            self._begin_plan(view)
        while len(self._line) or self._continue_plan(view):
            for i in super().admit(view):
                self._waiting.remove(self.candidate(view, i))
                yield i
            if len(self._line):
                return

    def _begin_plan(self, view: View) -> None:
        self._stale, self._line = False, SortedLine()
        # Requests that are evicted before the plan continues are not in it.
        waiting = self._waiting.items()[::-1]
        self._unplaced = len(waiting)
        if waiting:
            shortest = min(view._private[candidate.position] for candidate in waiting)
            self._smallest = shortest, waiting[0].output
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


@register
@dataclass
class SortedF(PlannedPolicy):
    """Plan batches of least sum(o) / |X|^2, each by believed output, and admit a prefix.

    Phase 1 uses the whole memory, also while requests run.

    Parameters
    ----------
    phase1
        Solver of batches: ``exact``, ``dp`` (the paper's program), ``swap``, ``quantile``
        or ``auto`` (by the number of requests that wait), see `kvopt.simulate.policies.phase1`.
    """

    name = "sorted-f"
    source = "wang-2025, Algorithms 1 to 4"

    phase1: Phase1 = "auto"

    def __post_init__(self) -> None:
        solver(self.phase1)

    def begin(self, view: View) -> None:
        """Start with no plan."""
        super().begin(view)
        self._solve = solver(self.phase1, self.seed)

    def plan(self, view: View, waiting: list[Candidate]) -> Iterator[Sequence[int]]:
        """Yield batch after batch."""
        for batch in batches(waiting, view.memory, self._solve):
            yield [candidate.position for candidate in batch]

    def note(self) -> str | None:
        """Return the solvers that were chosen, if the policy chose."""
        if not isinstance(self._solve, Auto) or not self._solve.used:
            return None
        used = ", ".join(f"{count} {name}" for name, count in sorted(self._solve.used.items()))
        return f"batches: {used}"


@register
@dataclass
class SortedFAMin(LeastBelief, SortedF):
    """Plan batches by the least possible outputs; evict the smallest of these first.

    The belief of a request starts at the lower end of its interval and is raised in every
    round to the tokens that it has produced.  When the next round would not fit, the smallest
    belief goes first, ties by a drawn place, until it does.  Evicted requests keep their place
    in the plan and may start again at once; only an arrival makes a new plan.
    """

    name = "sorted-f-a-min"
    source = "wang-2025, Algorithm 5"

    def active_belief(self, view: View, i: int) -> int:
        """Return the belief, raised to the tokens produced so far."""
        return max(self._lower[i], view.generated(i))
