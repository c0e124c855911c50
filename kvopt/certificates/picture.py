"""The intervals of a certificate as a small picture, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_WIDTH, _NAMES, _ROW = 640, 200, 22
"""Pixels of the picture, of the column of names, and of a row."""


def intervals_svg(rows: Sequence[tuple[str, float | None, float | None]]) -> str:
    """Return bars from the least to the largest ratio to the optimum; an open end has no edge.

    Parameters
    ----------
    rows
        Name, least and largest ratio; None is unknown.
    """
    ends = [end for _, least, most in rows for end in (least, most) if end is not None]
    farthest = max([1.05, *ends]) * 1.02
    scale = (_WIDTH - _NAMES - 20) / (farthest - 1.0)

    def across(ratio: float) -> float:
        return round(_NAMES + scale * (max(ratio, 1.0) - 1.0), 1)

    height = _ROW * (len(rows) + 1) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12" '
        'role="img" aria-label="latency over the optimum">'
    ]
    for place, (name, least, most) in enumerate(rows):
        y = _ROW * place + 4
        left, right = across(1.0 if least is None else least), across(most or farthest)
        color = "#4477aa" if least is not None and most is not None else "#4477aa55"
        shown = name if len(name) < 30 else f"{name[:28]}…"
        parts.append(
            f'<text x="{_NAMES - 8}" y="{y + 14}" text-anchor="end" fill="currentColor">'
            f"{escape(shown)}</text>"
            f'<rect x="{left}" y="{y + 3}" width="{max(right - left, 2):.1f}" height="{_ROW - 8}" '
            f'fill="{color}"><title>{escape(name)}</title></rect>'
        )
    y = _ROW * len(rows) + 18
    ticks = (
        f'<text x="{across(ratio)}" y="{y}" text-anchor="middle" fill="currentColor">'
        f"{ratio:.2f}</text>"
        for ratio in (1.0, (1.0 + farthest) / 2, farthest)
    )
    return "".join([*parts, *ticks, "</svg>"])
