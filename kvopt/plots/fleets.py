"""Latency or misses against machines: the band of what is possible, and curves of schedulers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from kvopt.plots import style
from kvopt.plots.curves import COLOURS, MARKERS

_HALF = 0.18
"""Half the width of a bar, in machines."""


def fleet_sizes(
    rows: Sequence[tuple[int, float | None, float | None]],
    curves: Mapping[str, Sequence[tuple[int, float]]],
    target: float,
    label: str,
    ax: Axes | None = None,
    *,
    scale: str = "log",
) -> Axes:
    """Draw what is possible with each number of machines, and what schedulers do.

    Parameters
    ----------
    rows
        Machines, and between which values the best schedule lies; None is unknown.
    curves
        Machines and values by scheduler.
    target
        The value that is asked for.
    label
        What values are.
    ax
        Where to draw; a new figure when left out.
    scale
        Of values.
    """
    ax = style.axes_of(ax, 5.0)
    band: str | None = "the best schedule is in here"
    for workers, lower, upper in rows:
        if lower is not None and upper is not None:
            span = (workers - _HALF, workers + _HALF)
            ax.fill_between(span, lower, upper, color=style.GROWTH, label=band, linewidth=0)
            band = None
        for end in (lower, upper):
            if end is not None:
                at = (workers - _HALF, workers + _HALF)
                ax.plot(at, (end, end), color=style.EDGE, linewidth=1.2)
    for place, (name, points) in enumerate(curves.items()):
        if points:
            x, y = zip(*points, strict=True)
            ax.plot(
                x, y, "-" if place < 5 else "--", color=COLOURS[place % 5],
                marker=MARKERS[place % 5], markersize=4, linewidth=1, alpha=0.8,
                label=style.shortened(name, 40),
            )  # fmt: skip
    ax.axhline(target, color=style.CAPACITY, linewidth=1, linestyle=":", label="target")
    ax.set_yscale(scale)
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    counts = [workers for workers, _, _ in rows]
    ax.set_xlim(min(counts, default=1) - 0.6, max(counts, default=1) + 0.6)
    style.whole_numbers(ax, ax.xaxis, max(counts, default=1))
    ax.set_xlabel("machines")
    ax.set_ylabel(label)
    ax.legend(fontsize=8)
    style.grid(ax, "y")
    return ax
