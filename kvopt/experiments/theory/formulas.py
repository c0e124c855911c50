"""Bounds on competitive ratios as chen-2025 prints them; alpha is the lower over the upper end."""

from __future__ import annotations

from math import sqrt


def a_max_upper(alpha: float) -> float:
    """Theorem 1: no more than ``(1 + 1/alpha) / (2 alpha)``."""
    return (1 + 1 / alpha) / (2 * alpha)


def a_max_lower(alpha: float) -> float:
    """Theorem 2: at least ``(1 + alpha^(-1/2)) / (2 alpha)``."""
    return (1 + 1 / sqrt(alpha)) / (2 * alpha)


def a_max_construction(alpha: float, mix: float) -> float:
    """Return what the construction of Theorem 2 gives, before the paper simplifies it.

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
    """Theorem 7: no more than this for outputs l and u."""
    return 1 + alpha / (2 * (1 - alpha)) if alpha <= 0.5 else 1 + 2 * alpha**2


def linear_geometric(q: float) -> float:
    """Theorem 8: the ratio for outputs k with weight ``k q^(k-1)``."""
    above = (1 + q) ** 2 * (1 + 3 * q + 6 * q**2 + 3 * q**3 + q**4)
    below = 1 + 2 * q + 11 * q**2 + 8 * q**3 + 11 * q**4 + 2 * q**5 + q**6
    return above / below
