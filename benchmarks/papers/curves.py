"""What a topic of the theory yields: findings on its claims, curves to draw, and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple


@dataclass(frozen=True)
class Curve:
    """A formula over a range, drawn as a line, or simulated points, drawn as dots."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    kind: Literal["formula", "simulation"] = "formula"


class Finding(NamedTuple):
    """The finding on the next claim of a topic, and whether it agrees with the claim."""

    found: str
    agrees: bool = True


Parts = Iterator[Finding | Curve | dict[str, Any]]
"""Findings, curves in the order of the legend, and values on which the verdicts depend."""


def line(label: str, pairs: Iterable[tuple[float, float | Fraction]]) -> Curve:
    """Return a formula through pairs of coordinates."""
    rows = list(pairs)
    return Curve(label, tuple(float(x) for x, _ in rows), tuple(float(y) for _, y in rows))


def dots(label: str, pairs: Iterable[tuple[float, float | Fraction]]) -> Curve:
    """Return a curve of simulated values at pairs of coordinates."""
    return replace(line(label, pairs), kind="simulation")
