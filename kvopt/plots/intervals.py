"""The intervals of a certificate: between which multiples of the optimum each policy lies."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from kvopt.plots import style


def intervals(
    rows: Sequence[tuple[str, float | None, float | None]], ax: Axes | None = None
) -> Axes:
    """Draw a bar from the least to the largest ratio to the optimum; an open end fades.

    Parameters
    ----------
    rows
        Name, least and largest ratio; None is unknown.
    ax
        Where to draw; a new figure when left out.
    """
    ax = style.axes_of(ax, 1.2 + 0.34 * len(rows))
    known = [end for _, *ends in rows for end in ends if end is not None]
    farthest = max([1.05, *known]) * 1.02
    for row, (_, least, most) in enumerate(rows):
        left, right = max(least or 1.0, 1.0), most or farthest
        is_open = least is None or most is None
        colour = style.WAITING if is_open else style.PROMPT
        ax.barh(row, right - left, left=left, height=0.5, color=colour)
        ax.plot([left, left], [row - 0.3, row + 0.3], color=style.EDGE, linewidth=1.5)
        if most is not None:
            ax.plot([right, right], [row - 0.3, row + 0.3], color=style.EDGE, linewidth=1.5)
    names = [style.shortened(name, 40) for name, _, _ in rows]
    ax.set_yticks(range(len(rows)), names, parse_math=False)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(min(1.0, farthest), farthest)
    ax.set_xlabel("total latency, times the optimum: certainly inside the bar")
    style.grid(ax, "x")
    return ax
