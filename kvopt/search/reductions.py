"""Reductions: problems that are solved as others, without any loss.

A reduction leads to problems whose schedules, bounds and proofs are those of the problem at hand,
once they are lifted.  `REDUCTIONS` lists all of them; `kvopt.search.plan.Driver` applies the first
one that fits, and again to what it leads to.  A relaxation loses schedules or bounds; see
`kvopt.bounds.relaxations`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from kvopt.bounds.relaxations import chain
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import Proof
from kvopt.kernels.budget import Budget
from kvopt.problem.instance import Instance
from kvopt.problem.parts import split
from kvopt.search.parts import Divided

Work = Callable[[Search, Budget], object]
"""Work on a search within a budget."""


class Reduced(Protocol):
    """A search by way of other problems, which lifts their results."""

    def work(self, stage: Work, budget: Budget | None = None) -> None:
        """Let a stage work on the other problems, and take its results."""


@dataclass(frozen=True)
class Reduction:
    """A way to solve a problem as others.

    Parameters
    ----------
    name
        Its name in lists of stages.
    sentence
        Why nothing is lost.
    applies
        Whether it leads a search to other problems, perhaps of its bounds alone.
    reduced
        The search by way of them; a proof may have first prices.
    inner
        A search with the rows of the plan that work on them.
    has_whole_start
        Whether the first rows of the plan work on the problem itself.
    """

    name: str
    sentence: str
    applies: Callable[[Search, bool], bool]
    reduced: Callable[[Search, Proof | None], Reduced]
    inner: Callable[[Search], Search]
    has_whole_start: bool = False


class _OtherInstance:
    """A search of another instance, whose schedules, bounds and claims are those of this one."""

    def __init__(self, search: Search, instance: Instance, relaxations: tuple[str, ...]) -> None:
        self._search, self._instance, self._relaxations = search, instance, relaxations

    def work(self, stage: Work, budget: Budget | None = None) -> None:
        """Let a stage work on the other instance."""
        self._search.work_inside(
            self._instance,
            lambda inner: stage(inner, inner.budget),
            budget,
            takes=("schedules", "bounds", "claims"),
            known=True,
            relaxations=self._relaxations,
        )


def _to_instance(
    name: str,
    sentence: str,
    applies: Callable[[Search, bool], bool],
    changed: Callable[[Instance], Instance],
    relaxations: tuple[str, ...] = (),
) -> Reduction:
    """Return the reduction to another instance; proofs name the relaxations that lead there."""
    return Reduction(
        name,
        sentence,
        applies,
        lambda search, _: _OtherInstance(search, changed(search.instance), relaxations),
        lambda search: search.inside(changed(search.instance)),
    )


def _has_idle_workers(search: Search, _: bool) -> bool:
    """Whether some workers serve no request."""
    return search.instance.workers > search.instance.used_workers


def _is_behind_a_prefix(search: Search, _: bool) -> bool:
    """Whether a common prefix is the only field beyond a problem that searches know."""
    plain = search.instance.without_common_prefix()
    problem = search.problem
    return problem.is_restricted and not replace(problem, instance=plain).is_restricted


def _has_idle_gaps(search: Search, only_bounds: bool) -> bool:
    """Whether idle gaps cut it, and the results of parts can be added.

    Schedules of parts are starts of tokens; their bounds may cover pauses, too.
    """
    problem = search.problem
    if problem.in_seconds or problem.in_blocks or not len(search.instance):
        return False
    can_add = chain(problem) == () if only_bounds else problem.is_starts
    if not can_add:
        return False
    parts = split(search.instance)
    return len(parts) > 1 or parts[0].begin > 0


REDUCTIONS = (
    _to_instance(
        "without idle workers",
        "of more workers than requests some serve none, and proofs count as many as requests",
        _has_idle_workers,
        lambda instance: replace(instance, workers=instance.used_workers),
    ),
    _to_instance(
        "without the common prefix",
        "a prefix of all is held once while anything is active, so memory and prompts are less",
        _is_behind_a_prefix,
        Instance.without_common_prefix,
        ("shares",),
    ),
    Reduction(
        "parts between idle gaps",
        "some optimum completes a part before the next arrival, so optima of parts add up",
        _has_idle_gaps,
        Divided,
        lambda search: search,
        has_whole_start=True,
    ),
)
"""All reductions, in the order in which they are tried."""


def reduction_of(search: Search, *, only_bounds: bool = False) -> Reduction | None:
    """Return the first reduction that applies."""
    return next(
        (reduction for reduction in REDUCTIONS if reduction.applies(search, only_bounds)), None
    )
