"""The intervals of a certificate as a small picture, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_BAR = '<svg width="440" height="14"><rect {} height="14" fill="{}"/></svg>'


def intervals_html(rows: Sequence[tuple[str, float | None, float | None]]) -> str:
    """Return bars from the least to the largest ratio to the optimum; an open end is pale.

    Parameters
    ----------
    rows
        Name, least and largest ratio; None is unknown.
    """
    ends = [end for _, least, most in rows for end in (least, most) if end is not None]
    farthest = max([1.05, *ends]) * 1.02
    drawn = []
    for name, least, most in rows:
        ratios = max(least or 1.0, 1.0), max(most or farthest, 1.0)
        left, right = (100 * (ratio - 1) / (farthest - 1) for ratio in ratios)
        place = f'x="{left:.1f}%" width="{max(right - left, 0.5):.1f}%"'
        bar = _BAR.format(place, "#4477aa" if least and most else "#4477aa55")
        drawn.append(f"<tr><td>{escape(name)}</td><td>{bar}</td></tr>")
    axis = f'1.00<span style="float:right">{farthest:.2f}</span>'
    return (
        f"<table><caption>latency over the optimum</caption>{''.join(drawn)}"
        f"<tr><td></td><td>{axis}</td></tr></table>"
    )
