"""The axes of a problem: what each of them does to schedules, and how lower bounds carry over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope


class Effect(StrEnum):
    """What an axis does."""

    NARROWS = "narrows"
    """It forbids schedules: bounds that do not know it hold."""
    WIDENS = "widens"
    """It allows more schedules: a bound must cover them."""
    COUNTS = "counts"
    """It counts otherwise: a bound is made for it, or a relation carries one over."""


@dataclass(frozen=True)
class Axis:
    """A way in which a problem may differ from that of the papers.

    Parameters
    ----------
    name
        Its name in tables and messages.
    spelled
        How it is asked for: a field of the instance, or an option.
    effect
        What it does.
    sentence
        How bounds carry over, with the reason.
    is_used
        Whether a problem has it.
    """

    name: str
    spelled: str
    effect: Effect
    sentence: str
    is_used: Callable[[Problem], bool]


def _covers(scope: Scope) -> Callable[[Problem], bool]:
    return lambda problem: problem.scope.covers(scope)


def _has(field: str) -> Callable[[Problem], bool]:
    return lambda problem: field in problem.instance.extras


AXES = (
    Axis("seconds", "--seconds", Effect.COUNTS,
         "rounds last as long as their batches, so a bound is of machine time",
         lambda problem: problem.in_seconds),
    Axis("workers", "workers", Effect.WIDENS,
         "all machines together hold m M tokens, and work for m seconds in a second",
         lambda problem: problem.is_fleet),
    Axis("pauses", "--scope pauses", Effect.WIDENS,
         "a request may be active at any times; prices and volumes of memory cover that",
         _covers(Scope.PAUSES)),
    Axis("chunks", "--scope chunks", Effect.WIDENS,
         "a prompt may be processed in pieces, which changes nothing in rounds; in seconds bounds "
         "by one line cover it",
         _covers(Scope.CHUNKS)),
    Axis("sharing", "prefix", Effect.WIDENS,
         "a block that K requests use at a time is held once: each holds a K-th of it",
         _has("prefix")),
    Axis("blocks", "block_size", Effect.NARROWS,
         "what fits in whole blocks fits in their tokens",
         lambda problem: problem.in_blocks),
    Axis("limit", "max_active", Effect.NARROWS,
         "fewer active requests only forbid schedules; volumes, and in seconds machine time, count "
         "the limit",
         _has("max_active")),
    Axis("weights", "weight", Effect.COUNTS,
         "shares of a request sum to its weight; or w - 1 outputs are added, as no latency is less",
         _has("weight")),
    Axis("slo", "--slo", Effect.COUNTS,
         "attaining costs tokens or machine time until the tokens are due",
         lambda problem: problem.slo is not None),
)  # fmt: skip
"""All axes.  A problem without any of them is that of the papers."""
