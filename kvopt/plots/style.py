"""Colours and sizes: told apart without colour vision, readable in grey and in print."""

from __future__ import annotations

PROMPT = "#4477aa"
"""Tokens of the prompt: dark."""

GROWTH = "#eeb866"
"""Tokens produced so far: light."""

WAITING = "#9a9a9a"
CAPACITY = "#aa3344"
EDGE = "#333333"
GRID = "#dddddd"

WIDTH = 10.0
"""Inches."""

CROWDED = 150
"""Rows beyond which outlines would hide the colours and are left out."""

TALLEST = 13.0
"""Inches of height that rows share when there are many."""

MOST_LABELS = 90
"""Rows beyond which only some are labelled."""


def row_height(count: int) -> float:
    """Return the inches of a row: roomy for a few requests, just readable for many."""
    roomy = 0.42 if count <= 12 else 0.26 if count <= 30 else 0.15
    return min(roomy, TALLEST / max(count, 1))
