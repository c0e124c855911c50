"""Whether a difference between our draws and printed counts can be chance."""

from __future__ import annotations

from fractions import Fraction
from math import comb, sqrt

UNLIKELY = Fraction(1, 1000)
"""Probability below which a difference is not put down to chance."""


def chance_of_as_many(ours: int, draws: int, theirs: int, trials: int) -> Fraction:
    """Return the chance of so many hits in our draws if both samples were of one law.

    Fisher's exact test, one-sided: of all hits together, at least ``ours`` fall among our draws.
    """
    hits, everything = ours + theirs, draws + trials
    ways = sum(comb(draws, k) * comb(trials, hits - k) for k in range(ours, min(draws, hits) + 1))
    return Fraction(ways, comb(everything, hits))


def mean_is_above(values: list[Fraction], mean: float, worst: float, trials: int) -> bool:
    """Whether our mean is more than four standard errors above a printed mean of ratios.

    Nothing is printed of how the ratios scatter; between 1 and ``worst`` with that mean their
    variance is at most (mean - 1) (worst - mean).
    """
    if len(values) < 2:
        return False
    own = float(sum(values, Fraction()) / len(values))
    variance = sum((float(value) - own) ** 2 for value in values) / (len(values) - 1)
    error = sqrt(variance / len(values) + (mean - 1) * (worst - mean) / trials)
    return own - mean > 4 * error
