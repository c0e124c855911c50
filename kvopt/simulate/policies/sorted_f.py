"""Batches of least F, one after the other: by believed outputs, or by the least possible ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvopt.simulate.policies.base import View
from kvopt.simulate.policies.intervals import LeastBelief
from kvopt.simulate.policies.phase1 import Auto, Candidate, Phase1, batches, solver
from kvopt.simulate.policies.planned import PlannedPolicy
from kvopt.simulate.policies.registry import register


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
        return max(self._least[i], view.generated(i))
