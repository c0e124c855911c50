"""Relaxations: wider problems, whose lower bounds hold for the problem at hand.

A bound may leave out whatever only narrows schedules.  Each relaxation is a function from problem
to problem with the sentence that proves it.  `chains` names those that lead to a problem for which
there are bounds; where several chains do, the strongest bound counts.  ``kvopt verify`` repeats
them from their names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kvopt.bounds.prefix_shares import shared_out
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Problem


@dataclass(frozen=True)
class Relaxation:
    """A step from a problem to a wider one.

    Parameters
    ----------
    name
        Its name in results and certificates.
    sentence
        Why bounds carry over.
    is_used
        Whether it changes a problem.
    relaxed
        The wider problem.
    more
        What its total latency may be less by, at the least.
    """

    name: str
    sentence: str
    is_used: Callable[[Problem], bool]
    relaxed: Callable[[Problem], Problem]
    more: Callable[[Problem], int] = lambda _: 0


def _has(field: str) -> Callable[[Problem], bool]:
    return lambda problem: field in problem.instance.extras


def _with(problem: Problem, instance: Instance) -> Problem:
    return replace(problem, instance=instance)


def _unshared(problem: Problem) -> Problem:
    plain = shared_out(problem.instance)
    return replace(problem, instance=plain, scope=problem.scope.without_sharing)


def _unweighted(problem: Problem) -> Problem:
    requests = tuple(replace(request, weight=1) for request in problem.instance)
    return _with(problem, replace(problem.instance, requests=requests))


def _outputs_of_weights(problem: Problem) -> int:
    return sum((request.weight - 1) * request.output for request in problem.instance)


RELAXATIONS = {
    each.name: each
    for each in (
        Relaxation(
            "tokens",
            "blocks as tokens: h tokens take no less in whole blocks, so what fits in blocks fits "
            "in their tokens",
            lambda problem: problem.in_blocks,
            lambda problem: _with(problem, problem.instance.in_tokens()),
        ),
        Relaxation(
            "shares",
            "prefixes as shares: if at most K users of a block are active together, each holds at "
            "least one K-th of it in addition to its private tokens",
            _has("prefix"),
            _unshared,
        ),
        Relaxation(
            "limit",
            "without the limit of active requests, which only forbids schedules",
            _has("max_active"),
            lambda problem: _with(problem, replace(problem.instance, max_active=None)),
        ),
        Relaxation(
            "weights",
            "each request once: no latency is below its output, so a weight w adds w - 1 outputs "
            "at least",
            _has("weight"),
            _unweighted,
            _outputs_of_weights,
        ),
    )
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


def ceiling_chain(problem: Problem) -> tuple[str, ...]:
    """Return the relaxations of a ceiling on the requests that attain a service level."""
    names = ("tokens", "shares", "limit")
    return tuple(name for name in names if RELAXATIONS[name].is_used(problem))


def chains(problem: Problem) -> list[tuple[str, ...]]:
    """Return the relaxations, in order, that lead to problems with bounds; an empty chain is none.

    In seconds bounds know weights, prefixes and a limit of active requests.  In rounds all of them
    know several machines, and those with pauses these; prices of tokens alone know weights
    and blocks too.
    """
    used = [name for name, step in RELAXATIONS.items() if step.is_used(problem)]
    if problem.in_seconds:
        return [tuple(name for name in used if name == "tokens")]
    return [tuple(used)]


def volume_chain(problem: Problem) -> tuple[str, ...]:
    """Return the relaxations, in order, that lead to a problem in rounds with volumes."""
    return tuple(n for n, step in RELAXATIONS.items() if n != "limit" and step.is_used(problem))


def price_chain(problem: Problem) -> tuple[str, ...]:
    """Return the relaxations, in order, that lead to a problem in rounds with prices of tokens."""
    used = [name for name, step in RELAXATIONS.items() if step.is_used(problem)]
    left_out = {"weights"} if "shares" in used else {"weights", "tokens"}
    return tuple(name for name in used if name not in left_out)
