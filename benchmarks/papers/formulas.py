"""Formulas of chen-2025: bounds on competitive ratios, the Rayleigh quotient of a-min and its fit.

In the bounds, alpha is the lower over the upper end of the interval of outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Fit = tuple[float, float, float]
"""a, b, c of ``a log(u + b) + c``."""

PRINTED: Fit = (0.2555, 0.2793, 1.1587)
"""The printed fit of the Rayleigh quotient."""


def a_max_upper(alpha: float) -> float:
    """Theorem 1: no more than ``(1 + 1/alpha) / (2 alpha)``."""
    return (1 + 1 / alpha) / (2 * alpha)


def a_max_lower(alpha: float) -> float:
    """Theorem 2: at least ``(1 + alpha^(-1/2)) / (2 alpha)``."""
    return (1 + 1 / sqrt(alpha)) / (2 * alpha)


def a_max_construction(alpha: float, mix: float) -> float:
    """Return the values of the construction of Theorem 2, before the paper simplifies it.

    Parameters
    ----------
    alpha
        l / u.
    mix
        a / b of the proof; it takes ``sqrt(alpha)``.
    """
    return (mix + alpha) * (mix + 1) / (mix**2 + 2 * alpha * mix + 1) / alpha


def best_mix(alpha: float) -> float:
    """Return the mix that makes the construction largest: where its derivative is 0.

    With N = r^2 + (1 + alpha) r + alpha and D = r^2 + 2 alpha r + 1, N'D - ND' is
    (alpha - 1) r^2 + 2 (1 - alpha) r + 1 + alpha - 2 alpha^2.
    """
    a, b, c = alpha - 1, 2 * (1 - alpha), 1 + alpha - 2 * alpha**2
    return (-b - sqrt(b * b - 4 * a * c)) / (2 * a)


def a_random_upper(alpha: float) -> float:
    """Theorem EC.1: no more than ``(1 + 1/alpha) / 2``."""
    return (1 + 1 / alpha) / 2


def a_min_two_point(alpha: float) -> float:
    """Theorem 6: no more than ``(3 - alpha) / 2`` for outputs l and u."""
    return (3 - alpha) / 2


def a_l_two_point(alpha: float) -> float:
    """Theorem 7: the upper bound for outputs l and u."""
    return 1 + alpha / (2 * (1 - alpha)) if alpha <= 0.5 else 1 + 2 * alpha**2


def linear_geometric(q: float) -> float:
    """Theorem 8: the ratio for outputs k with weight ``k q^(k-1)``."""
    above = (1 + q) ** 2 * (1 + 3 * q + 6 * q**2 + 3 * q**3 + q**4)
    below = 1 + 2 * q + 11 * q**2 + 8 * q**3 + 11 * q**4 + 2 * q**5 + q**6
    return above / below


def matrices(u: int) -> tuple[Floats, Floats]:
    """Return A and B: ``min^2 / (i j) ((i + j)^2 / 2 - min^2)`` and ``min(i, j)^2``."""
    i = np.arange(1, u + 1, dtype=float)
    least = np.minimum.outer(i, i) ** 2
    a = least / np.outer(i, i) * (np.add.outer(i, i) ** 2 / 2 - least)
    return a, least


def largest_quotient(u: int) -> tuple[float, Floats]:
    """Return the largest ``x A x / x B x``, and shares x of the outputs 1..u that reach it.

    It is the largest eigenvalue of ``A x = r B x``.  The paper requires x > 0, and the
    maximal vector is positive.

    Examples
    --------
    >>> ratio, shares = largest_quotient(2)
    >>> round(ratio, 12), [round(float(x), 6) for x in shares]
    (1.25, [0.666667, 0.333333])
    """
    from scipy.linalg import eigh

    a, b = matrices(u)
    values, vectors = eigh(a, b, subset_by_index=[u - 1, u - 1])
    shares = vectors[:, 0] / vectors[:, 0].sum()
    return float(values[0]), shares


def quotient(weights: Mapping[int, float]) -> float:
    """Return the ratio of Lemma 2 for shares of outputs; the least output is the lower end.

    Requests have no prompt.

    Examples
    --------
    >>> round(quotient({1: 2, 2: 1}), 12)
    1.25
    """
    output = np.arange(min(weights), max(weights) + 1)
    share = np.array([weights.get(int(k), 0.0) for k in output])
    delta = np.ones(len(output))
    delta[0] = output[0]

    def from_on(values: Floats) -> Floats:
        """Return the sum over outputs i >= k at each k."""
        return values[::-1].cumsum()[::-1]

    light = from_on(share / output)
    left = from_on(share) - output * light  # of (i - k) x / i
    above = delta * from_on(output * share) * (delta * light + 2 * left)
    below = output**2 * share * (2 * from_on(share) - share)
    return float(above.sum() / below.sum())


def fitted(fit: Fit, u: float) -> float:
    """Return the logarithm at u."""
    a, b, c = fit
    return a * log(u + b) + c


def best_fit(us: Sequence[int], ratios: Sequence[float]) -> Fit:
    """Return the fit with the least squares."""
    from scipy.optimize import curve_fit

    found, _ = curve_fit(
        lambda u, a, b, c: a * np.log(u + b) + c,
        np.array(us, dtype=float),
        ratios,
        p0=(0.25, 0.0, 1.1),
        bounds=([0, -1.9, 0], [2, 9, 9]),
    )
    a, b, c = found.tolist()
    return a, b, c


def r_squared(values: Sequence[float], fitted: Sequence[float]) -> float:
    """Return the share of the variance that a fit explains."""
    y, f = np.array(values), np.array(fitted)
    return float(1 - ((y - f) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def lemma_1(prompt: int, belief: int, output: int) -> float:
    """Lemma 1: the share of a-min's attempts with a belief that complete an output."""
    return (prompt + belief) / (prompt + output)
