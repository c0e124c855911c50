"""The grid of the papers: how small a protected share may be before evictions never end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from kvopt.model.batch_time import BatchTime
from kvopt.model.instance import Instance
from kvopt.simulation.runs import Outcome, PolicyRun
from kvopt.simulation.seconds import simulate_seconds
from kvopt.simulation.seconds_run import SecondsRun

Alpha = TypeVar("Alpha", Fraction, Decimal)

HUNDREDTHS = tuple(Fraction(k, 100) for k in range(31))
"""0, 0.01, ..., 0.30: the step of jaillet-2025-v2."""


def alpha_grid(
    instance: Instance, batch_time: BatchTime, alphas: Iterable[Fraction] = HUNDREDTHS
) -> list[tuple[Fraction, SecondsRun]]:
    """Run alpha-protect for each alpha."""
    return [
        (alpha, simulate_seconds(instance, f"alpha-protect:alpha={alpha}", batch_time))
        for alpha in alphas
    ]


def smallest_safe_alpha(grid: Sequence[tuple[Alpha, SecondsRun | PolicyRun]]) -> Alpha | None:
    """Return the alpha from which on every run of a grid completes, None if the last does not.

    A smaller alpha may complete by luck while a larger one loops: evictions that change the
    order at one moment can help or harm at the next.
    """
    safe = None
    for alpha, run in sorted(grid, key=lambda entry: entry[0], reverse=True):
        if run.outcome is Outcome.LIVELOCK:
            break
        safe = alpha
    return safe
