"""The competitive ratio of a-min as a Rayleigh quotient (chen-2025, corollary 1), and its fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh  # type: ignore[import-untyped]
from scipy.optimize import curve_fit  # type: ignore[import-untyped]

Floats = npt.NDArray[np.float64]

PRINTED = (0.2555, 0.2793, 1.1587)
"""a, b, c of the printed fit ``a log(u + b) + c``."""


def matrices(u: int) -> tuple[Floats, Floats]:
    """Return A and B: ``min^2 / (i j) ((i + j)^2 / 2 - min^2)`` and ``min(i, j)^2``."""
    i = np.arange(1, u + 1, dtype=float)
    least = np.minimum.outer(i, i) ** 2
    a = least / np.outer(i, i) * (np.add.outer(i, i) ** 2 / 2 - least)
    return a, least


def largest_quotient(u: int) -> tuple[float, Floats]:
    """Return the largest ``x A x / x B x``, and shares x of the outputs 1..u that reach it.

    It is the largest eigenvalue of ``A x = r B x``.  The paper asks for x > 0: the vector that
    reaches it is positive, so nothing is lost.

    Examples
    --------
    >>> ratio, shares = largest_quotient(2)
    >>> round(ratio, 12), [round(float(x), 6) for x in shares]
    (1.25, [0.666667, 0.333333])
    """
    a, b = matrices(u)
    values, vectors = eigh(a, b, subset_by_index=[u - 1, u - 1])
    shares = vectors[:, 0] / vectors[:, 0].sum()
    return float(values[0]), shares


def quotient(weights: Mapping[int, float], prompt: int = 0) -> float:
    """Return the ratio of Lemma 2 for shares of outputs; the least output is the lower end.

    Examples
    --------
    >>> round(quotient({1: 2, 2: 1}), 12)
    1.25
    """
    lower, upper = min(weights), max(weights)
    shares = [weights.get(i, 0.0) for i in range(upper + 1)]
    numerator = denominator = 0.0
    work = remaining = heavy = light = 0.0
    # From the top, running sums over i > k: of i x, of x, of i x / (s + i) and of x / (s + i).
    for k in range(upper, lower - 1, -1):
        x, peak = shares[k], prompt + k
        delta = peak if k == lower else 1
        left = heavy - k * light  # sum over i > k of (i - k) x / (s + i)
        numerator += delta * (work + k * x) * (delta * (light + x / peak) + 2 * left)
        denominator += k * peak * x * (x + 2 * remaining)
        work += k * x
        remaining += x
        heavy += k * x / peak
        light += x / peak
    return numerator / denominator


def printed_fit(u: float) -> float:
    """Return the fit as the paper prints it."""
    a, b, c = PRINTED
    return a * log(u + b) + c


def best_fit(us: Sequence[int], ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return a, b, c of the ``a log(u + b) + c`` with the least squares."""

    def curve(u: Floats, a: float, b: float, c: float) -> Floats:
        return np.asarray(a * np.log(u + b) + c)

    start = (0.25, 0.0, 1.1)
    found, _ = curve_fit(
        curve, np.array(us, dtype=float), ratios, p0=start, bounds=([0, -1.9, 0], [2, 9, 9])
    )
    return float(found[0]), float(found[1]), float(found[2])


def r_squared(values: Sequence[float], fitted: Sequence[float]) -> float:
    """Return the share of the variance that a fit explains."""
    y, f = np.array(values), np.array(fitted)
    return float(1 - ((y - f) ** 2).sum() / ((y - y.mean()) ** 2).sum())
