"""Relaxations: wider problems, whose lower bounds hold for the problem at hand.

A bound may leave out whatever only narrows schedules.  Each relaxation is a function from problem
to problem with the sentence that proves it, and `chain` names those that lead to a problem for
which there are bounds.  ``kvopt verify`` repeats them from their names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from kvopt.bounds.prefix_shares import shared_out
from kvopt.problem.problem import Problem

_KEPT = {
    "rounds": (),
    "seconds": ("shares", "limit", "weights"),
    "volume": ("limit",),
    "prices": ("tokens", "weights"),
    "ceiling": ("weights",),
}
"""Relaxations that each kind of bounds does without; all of them know several machines."""


class Relaxation(NamedTuple):
    """A step from a problem to a wider one.

    Parameters
    ----------
    sentence
        Why bounds carry over.
    is_used
        Whether it changes a problem.
    relaxed
        The wider problem.
    more
        What its total latency may be less by, at the least.
    """

    sentence: str
    is_used: Callable[[Problem], bool]
    relaxed: Callable[[Problem], Problem]
    more: Callable[[Problem], int] = lambda _: 0


def _unshared(problem: Problem) -> Problem:
    plain = shared_out(problem.instance)
    return replace(problem, instance=plain, scope=problem.scope.without_sharing)


def _unweighted(problem: Problem) -> Problem:
    requests = tuple(replace(request, weight=1) for request in problem.instance)
    return replace(problem, instance=replace(problem.instance, requests=requests))


RELAXATIONS = {
    "tokens": Relaxation(
        "blocks as tokens: h tokens take no less in whole blocks, so what fits in blocks fits "
        "in their tokens",
        lambda problem: problem.in_blocks,
        lambda problem: replace(problem, instance=problem.instance.in_tokens()),
    ),
    "shares": Relaxation(
        "prefixes as shares: if at most K users of a block are active together, each holds at "
        "least one K-th of it in addition to its private tokens",
        lambda problem: "prefix" in problem.instance.extras,
        _unshared,
    ),
    "limit": Relaxation(
        "without the limit of active requests, which only forbids schedules",
        lambda problem: "max_active" in problem.instance.extras,
        lambda problem: replace(problem, instance=replace(problem.instance, max_active=None)),
    ),
    "weights": Relaxation(
        "each request once: no latency is below its output, so a weight w adds w - 1 outputs "
        "at least",
        lambda problem: "weight" in problem.instance.extras,
        _unweighted,
        lambda problem: sum((r.weight - 1) * r.output for r in problem.instance),
    ),
}
"""All relaxations by name, in the order in which they are applied."""


def relaxed_by(problem: Problem, names: Iterable[str]) -> tuple[Problem, int]:
    """Return a wider problem, and what is added to each of its bounds."""
    more = 0
    for name in names:
        step = RELAXATIONS[name]
        more += step.more(problem)
        problem = step.relaxed(problem)
    return problem, more


def chain(problem: Problem, bounds: str = "") -> tuple[str, ...]:
    """Return the relaxations, in order, that lead to a problem with bounds of a kind.

    The kind is by default that of the clock.  Prices of blocks know no shares of prefixes.
    """
    kept = _KEPT[bounds or ("seconds" if problem.in_seconds else "rounds")]
    used = [name for name, step in RELAXATIONS.items() if step.is_used(problem)]
    if bounds == "prices" and "shares" in used:
        kept = ("weights",)
    return tuple(name for name in used if name not in kept)
