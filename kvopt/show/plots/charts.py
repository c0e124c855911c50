"""Charts of numbers: intervals, histograms, points, and curves along an axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from kvopt.show.plots import style

if TYPE_CHECKING:
    from kvopt.experiments.theory.examination import Examination

_FAR = 5
"""Times by which values may differ before an axis turns logarithmic."""
_HALF = 0.18
"""Half the width of a bar, in machines."""
_MOST_BINS = 24
"""Bars of a histogram; more would be hairlines."""

Ends = tuple[float, float | None, float | None]
"""A place, and the least and the most that is possible there; None is unknown."""


class Bar(NamedTuple):
    """An interval with a name and with what is said of it.

    Parameters
    ----------
    name, said
        Words above it.
    least, most
        Its ends; None is unknown.
    mark
        Where a line crosses it; at the least end when left out.
    far
        How far a thin line goes on; infinity is the end of the axis.
    """

    name: str
    least: float | Fraction | None
    most: float | Fraction | None
    said: str = ""
    mark: float | None = None
    far: float | Fraction | None = None


def intervals(
    bars: Sequence[Bar],
    ax: Axes | None = None,
    label: str = "total latency, times the optimum: certainly inside the bar",
    *,
    floor: float = 1.0,
) -> Axes:
    """Draw an interval in each row, below its name; an open end fades.

    Parameters
    ----------
    bars
        From the top down.
    ax
        Where to draw; a new figure when left out.
    label
        What the values are.
    floor
        The least that they can be.
    """
    ax = style.axes_of(ax, 1.2 + 0.44 * len(bars))
    ends = [float(end) for bar in bars for end in bar[1:3] + bar[5:] if end is not None]
    farthest = max([floor + 0.05, *filter(math.isfinite, ends)]) * 1.02
    words = ax.get_yaxis_transform()
    for row, bar in enumerate(bars):
        left, right = max(float(bar.least or floor), floor), float(bar.most or farthest)
        colour = style.WAITING if None in (bar.least, bar.most) else style.PROMPT
        ax.barh(row, right - left, left=left, height=0.3, color=colour)
        mark = left if bar.mark is None else bar.mark
        for end in {mark, mark if bar.most is None or bar.mark else right}:
            ax.plot([end, end], [row - 0.22, row + 0.22], color=style.INK, linewidth=1.5)
        if bar.far is not None:
            ax.plot([right, min(float(bar.far), farthest)], [row, row], color=colour, linewidth=1)
        for place, side, said in ((0.004, "left", bar.name), (0.996, "right", bar.said)):
            look: dict[str, Any] = {"ha": side, "va": "bottom", "fontsize": 8, "transform": words}
            ax.text(place, row - 0.24, style.shortened(said, 48), **look)
    ax.set_yticks([])
    ax.set_ylim(len(bars) - 0.6, -0.8)
    ax.set_xlim(min(floor, farthest), farthest)
    ax.set_xlabel(label)
    style.grid(ax, "x")
    return ax


def histogram(lows: Sequence[float], highs: Sequence[float], ax: Axes, label: str) -> None:
    """Draw how often values from 1 on occur; where they are intervals, upper ends go down.

    Parameters
    ----------
    lows, highs
        Lower ends, and those upper ends that are known; the same list where all are exact.
    ax
        Where to draw.
    label
        What the values are.
    """
    top = max([*lows, *highs, 1.01])
    ticks = MaxNLocator(_MOST_BINS, steps=[1, 2, 5, 10]).tick_values(1, top)
    width = float(ticks[1] - ticks[0])
    edges = 1 + width * np.arange(max(5, round((top - 1) / width) + 2))
    exact = lows == highs
    halves = [(lows, 1, "exactly" if exact else "at least (over the best schedule)")]
    if not exact:
        halves.append((highs, -1, "at most (over the proved bound)"))
    most = 1
    for values, side, said in halves:
        heights, _ = np.histogram(values, edges)
        most = max(most, int(heights.max()))
        look: dict[str, Any] = (
            {"facecolor": style.PROMPT} if side > 0 else {"facecolor": "none", "hatch": "////"}
        )
        ax.bar(edges[:-1], side * heights, width * 0.94, align="edge", ec=style.PROMPT, **look)
        where: dict[str, Any] = {"ha": "right", "va": "top" if side > 0 else "bottom"}
        place = (0.99, 0.98 if side > 0 else 0.02)
        ax.text(*place, said, fontsize=8, transform=ax.transAxes, **where)
        if values:
            low, high = (0, 1) if exact else (0.5, 1) if side > 0 else (0, 0.5)
            look = {"color": style.INK, "linestyle": "--", "linewidth": 1}
            ax.axvline(float(np.mean(values)), low, high, **look)
    ax.set_ylim(0 if exact else -most * 1.2, most * 1.2)
    ax.axhline(0, color=style.INK, linewidth=0.8)
    style.whole_numbers(ax, ax.yaxis, most)
    ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")
    ax.set_xlabel(label)
    ax.set_ylabel("runs")
    style.grid(ax)


def points(found: Sequence[Ends], ax: Axes, place: int = 0, urls: Sequence[str] = ()) -> None:
    """Draw a dot at the lower end of each interval, and a line to its upper end.

    Parameters
    ----------
    found
        What is drawn.
    ax
        Where to draw.
    place
        Of the scheduler, which gives colour and marker.
    urls
        Where each leads.
    """
    look = style.policy(place)
    known = [(x, least, most) for x, least, most in found if least is not None]
    open_ones = [(x, least, most) for x, least, most in known if most not in (None, least)]
    across = [x for x, *_ in open_ones for _ in range(3)]
    up = [end for _, least, most in open_ones for end in (least, most, math.nan)]
    ax.plot(across, up, color=look["color"], linewidth=1, alpha=0.5)
    dots = ax.scatter(
        [x for x, *_ in known], [least for _, least, _ in known], s=16, color=look["color"],
        marker=look["marker"], linewidths=0, zorder=3, clip_on=False,
    )  # fmt: skip
    dots.set_urls([*urls])


def along(
    optimum: Sequence[Ends],
    curves: Mapping[str, Sequence[tuple[float, float]]],
    ax: Axes,
    looks: Mapping[str, int] | None = None,
) -> None:
    """Draw where the optimum lies along an axis, and a curve for each scheduler.

    Parameters
    ----------
    optimum
        The band between the proved bound, as a line, and the best schedule.
    curves
        Places and values by scheduler.
    ax
        Where to draw.
    looks
        Places of the schedulers in the list that gives them colours; in order when left out.
    """
    band = [(x, low, high) for x, low, high in optimum if None not in (low, high)]
    if band:
        x, low, high = zip(*band, strict=True)
        ax.fill_between(x, low, high, color=style.OPTIMUM, linewidth=0, label="optimum")
        ax.plot(x, low, color=style.BOUND, linewidth=1.2, linestyle="--", label="proved bound")
    for place, (name, corners) in enumerate(curves.items()):
        if corners:
            x, y = zip(*corners, strict=True)
            look = style.policy(looks[name] if looks else place)
            ax.plot(x, y, markersize=4, linewidth=1, label=style.shortened(name, 40), **look)
    style.grid(ax)


def fleet_sizes(
    bands: Sequence[Ends],
    curves: Mapping[str, Sequence[tuple[float, float]]],
    target: float,
    label: str,
    ax: Axes | None = None,
    *,
    scale: str = "log",
) -> Axes:
    """Draw what is possible with each number of machines, and what schedulers do.

    Parameters
    ----------
    bands
        Machines, and between which values the best schedule lies.
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
    named: str | None = "the best schedule is in here"
    for workers, lower, upper in bands:
        at = (workers - _HALF, workers + _HALF)
        if lower is not None and upper is not None:
            ax.fill_between(at, lower, upper, color=style.OPTIMUM, label=named, linewidth=0)
            named = None
        for end in (lower, upper):
            if end is not None:
                ax.plot(at, (end, end), color=style.BOUND, linewidth=1.2)
    along([], curves, ax)
    ax.axhline(target, color=style.CAPACITY, linewidth=1, linestyle=":", label="target")
    ax.set_yscale(scale)
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    counts = [workers for workers, *_ in bands]
    ax.set_xlim(min(counts, default=1) - 0.6, max(counts, default=1) + 0.6)
    style.whole_numbers(ax, ax.xaxis, max(counts, default=1))
    ax.set_xlabel("machines")
    ax.set_ylabel(label)
    ax.legend(fontsize=8)
    return ax


def stairs(found: Sequence[tuple[float, float]], ax: Axes) -> None:
    """Join, from left to right, the points that none beats on both sides."""
    best: list[tuple[float, float]] = []
    for x, y in sorted(found):
        if not best or y < best[-1][1]:
            best.append((x, y))
    if best:
        right = max(x for x, _ in found)
        across, up = zip(*best, strict=True)
        ax.step([*across, right], [*up, up[-1]], where="post", color=style.INK, lw=0.8, ls=":")


def spread(axis: Axis, values: Sequence[float], floor: float = 0) -> None:
    """Let an axis hold all values, by logarithm where they are far apart."""
    low, high = min(values, default=floor), max(values, default=floor + 1)
    set_limits = axis.axes.set_ylim if axis is axis.axes.yaxis else axis.axes.set_xlim
    if low > 0 and high / low > _FAR:
        axis._set_axes_scale("log")  # type: ignore[attr-defined]
        axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9))
        axis.set_minor_formatter(NullFormatter())
        set_limits(max(low / 1.1, floor), high * 1.1)
    else:
        margin = (high - low) * 0.05 or max(abs(high), 1) * 0.02
        set_limits(max(low - margin, floor), high + margin)
    axis.set_major_formatter(StrMethodFormatter("{x:,g}"))


def theory_curves(examination: Examination, ax: Axes | None = None) -> Axes:
    """Draw the curves of an examination: lines are formulas, dots are simulated.

    Parameters
    ----------
    examination
        What `kvopt.experiments.theory.examine` returned.
    ax
        Where to draw; a new figure when left out.

    Returns
    -------
    Axes
        Where it was drawn, with a legend.
    """
    ax = style.axes_of(ax, 5.6)
    kinds = [curve.kind for curve in examination.curves]
    # Where each formula has its simulation, the two share a colour.
    shift = 0 if kinds.count("formula") == kinds.count("simulation") else 3
    places = {"formula": count(), "simulation": count(shift)}
    for curve in filter(lambda curve: curve.x, examination.curves):
        look = style.policy(next(places[curve.kind]))
        look["marker" if curve.kind == "formula" else "linestyle"] = ""
        ax.plot(curve.x, curve.y, markersize=5, mfc="none", label=curve.label, **look)
    if "x" in examination.logarithmic:
        ax.set_xscale("log")
    if "y" in examination.logarithmic:
        ax.set_yscale("log")
    ax.set_title(examination.title, fontsize=10)
    ax.set_xlabel(examination.x_label)
    ax.set_ylabel(examination.y_label)
    if ax.get_lines():
        ax.legend(frameon=False, fontsize=8)
    style.grid(ax)
    return ax
