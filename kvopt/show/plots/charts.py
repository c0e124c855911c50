"""Charts of numbers: intervals, points, and curves along an axis.

Functions draw on axes, by default on those of a new figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from kvopt.show.plots import style

_FAR = 5
"""An axis is logarithmic if values differ by more than this factor."""
_HALF = 0.18
"""Half the width of a bar, in machines."""

Number = float | Fraction
Ends = tuple[float, Number | None, Number | None]
"""A place, and the lowest and the highest possible value there; None is unknown."""


class Bar(NamedTuple):
    """An interval with a name and a note above it; an end is None if unknown.

    A line is drawn across it at ``mark``, by default at the lower end, and a thin one up to
    ``far``, where infinity is the end of the axis.  A range is hatched: one value in it is meant,
    and unknown.
    """

    name: str
    lower: Number | None
    upper: Number | None
    note: str = ""
    mark: float | None = None
    far: Number | None = None
    is_range: bool = False
    colour: str | None = None


def intervals(
    bars: Sequence[Bar],
    ax: Axes | None = None,
    label: str = "total latency, times the optimum: certainly inside the bar",
    *,
    floor: float = 1.0,
) -> Axes:
    """Draw an interval in each row from the top down, below its name; an open end fades.

    ``label`` names the values, of which none is below ``floor``.
    """
    ax = style.axes_of(ax, 1.2 + 0.44 * len(bars))
    ends = [end for bar in bars for end in (bar.lower, bar.upper, bar.far)]
    finite = [float(end) for end in ends if end is not None and math.isfinite(end)]
    farthest = max([floor + 0.05, *finite]) * 1.02
    for row, bar in enumerate(bars):
        left, right = max(float(bar.lower or floor), floor), float(bar.upper or farthest)
        colour = style.WAITING if None in (bar.lower, bar.upper) else style.PROMPT
        look: dict[str, Any] = {"color": bar.colour or colour}
        if bar.is_range:
            look = {"facecolor": "none", "edgecolor": style.BOUND, "hatch": "//////"}
        ax.barh(row, right - left, left=left, height=0.3, **look)
        marks = [bar.mark] if bar.mark else [left, right if bar.upper else left]
        ax.vlines(marks, row - 0.22, row + 0.22, color=style.INK, linewidth=1.5)
        ax.hlines(row, right, min(float(bar.far or right), farthest), color=colour, linewidth=1)
        for x, side, text in ((0.004, "left", bar.name), (0.996, "right", bar.note)):
            style.note(ax, x, row - 0.24, text, ha=side, va="bottom")
    ax.set(yticks=[], ylim=(len(bars) - 0.6, -0.8), xlabel=label)
    ax.set_xlim(min(floor, farthest), farthest)
    return ax


def points(ends: Sequence[Ends], ax: Axes, place: int = 0, urls: Sequence[str] = ()) -> None:
    """Draw a dot at the lower end of each interval, and a line to its upper end.

    ``place`` of the scheduler determines colour and marker; ``urls`` are links of the dots.
    """
    look, (x, lower, upper) = style.policy(place), _columns(ends)
    ax.vlines(x, lower, upper, color=look["color"], linewidth=1, alpha=0.5)
    del look["linestyle"]
    ax.scatter(x, lower, s=16, zorder=3, urls=[*urls], linewidths=0, clip_on=False, **look)


def _columns(ends: Sequence[Ends]) -> np.ndarray:
    """Return places, lower and upper ends; NaN is unknown."""
    return np.array(ends, dtype=float).reshape(-1, 3).T


def along(
    optimum: Sequence[Ends],
    curves: Mapping[str, Sequence[tuple[float, float]]],
    ax: Axes,
    looks: Mapping[str, int] | None = None,
) -> None:
    """Draw the band of the optimum along an axis, and a curve for each scheduler.

    The band is between the proved bound, a line, and the best schedule.  ``looks`` are places of
    the schedulers in the list of colours, by default in order.
    """
    band = _columns([ends for ends in optimum if None not in ends])
    if band.size:
        ax.fill_between(*band, color=style.OPTIMUM, linewidth=0, label="optimum")
        ax.plot(*band[:2], color=style.BOUND, linewidth=1.2, linestyle="--", label="proved bound")
    for place, (name, corners) in enumerate(curves.items()):
        if corners:
            look = style.policy(looks[name] if looks else place)
            label = style.shortened(name, 40)
            ax.plot(*zip(*corners, strict=True), markersize=4, linewidth=1, label=label, **look)


def fleet_sizes(
    bands: Sequence[Ends],
    curves: Mapping[str, Sequence[tuple[float, float]]],
    target: float,
    label: str,
    ax: Axes | None = None,
    *,
    scale: str = "log",
) -> Axes:
    """Draw the possible results for each number of machines, and those of schedulers.

    ``bands`` are machines with the values that enclose the best schedule; ``label`` and ``scale``
    are of the values, of which ``target`` is one.
    """
    ax = style.axes_of(ax, 5.0)
    counts, lower, upper = _columns(bands)
    named = "the best schedule is in here"
    ax.use_sticky_edges = False  # the lowest bar would touch the frame
    unknown: dict[str, Any] = {
        "facecolor": style.OPTIMUM,
        "edgecolor": style.BOUND,
        "hatch": "////",
    }
    ax.bar(counts, upper - lower, 2 * _HALF, lower, linewidth=0, label=named, **unknown)
    for ends in (lower, upper):
        ax.hlines(ends, counts - _HALF, counts + _HALF, color=style.BOUND, linewidth=1.2)
    along([], curves, ax)
    ax.axhline(target, color=style.CAPACITY, linewidth=1, linestyle=":", label="target")
    ax.set(yscale=scale, xlabel="machines", ylabel=label)
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    style.whole_numbers(ax.xaxis, max(counts, default=1))
    ax.legend(frameon=False, fontsize=8)
    return ax


def fleet_over_time(
    borders: Sequence[float],
    load: Sequence[int],
    curves: Mapping[str, Sequence[int | None]],
    label: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw numbers of machines in windows as steps, and the arrivals behind them.

    ``load`` are the arrivals between ``borders``, on an axis of their own.  The first and the
    second curve enclose the optimum.  ``label`` is that of the time.
    """
    ax = style.axes_of(ax, 5.0)
    behind = ax.twinx()
    behind.stairs(load, borders, fill=True, color=style.WAITING, alpha=0.35, label="arrivals")
    behind.set(ylabel="arrivals of a window", ylim=(0, 2.2 * max(load)))
    ax.set_zorder(behind.get_zorder() + 1)
    ax.patch.set_visible(False)
    looks = (style.BOUND, "-"), (style.BOUND, "--"), (style.CAPACITY, ":")
    for (name, counts), (colour, line) in zip(curves.items(), looks, strict=True):
        heights = np.array(counts, dtype=float)  # unknown ones are NaN, and leave a gap
        if not np.isnan(heights).all():
            ax.stairs(
                heights, borders, baseline=None, color=colour, linestyle=line, linewidth=1.4,
                label=name,
            )  # fmt: skip
    numbers = [count or 0 for counts in curves.values() for count in counts]
    ax.set(xlabel=label, ylabel="machines", ylim=(0, 1.12 * max(numbers, default=1) + 0.5))
    style.whole_numbers(ax.yaxis, max(numbers, default=1))
    handles = [*ax.get_legend_handles_labels()[0], *behind.get_legend_handles_labels()[0]]
    ax.legend(handles=handles, frameon=False, fontsize=8)
    return ax


def spread(axis: Axis, values: Sequence[Number], floor: float = 0) -> None:
    """Fit an axis to all values, logarithmic if they are far apart."""
    low, high = float(min(values, default=floor)), float(max(values, default=floor + 1))
    name = "x" if axis is axis.axes.xaxis else "y"
    margin = (high - low) * 0.05 or max(abs(high), 1) * 0.02
    ends = low - margin, high + margin
    if low > 0 and high / low > _FAR:
        ends = low / 1.1, high * 1.1
        axis.axes.set(**{f"{name}scale": "log"})
        axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9))
        axis.set_minor_formatter(NullFormatter())
    axis.axes.set(**{f"{name}lim": (max(ends[0], floor), ends[1])})
    axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
