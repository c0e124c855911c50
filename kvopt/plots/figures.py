"""Whole figures: a schedule in two panels, an instance in three."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvopt.model.instance import Instance
from kvopt.model.schedule import Schedule
from kvopt.plots import requests, style
from kvopt.plots.memory import memory_profile, price_curve
from kvopt.plots.timeline import gantt
from kvopt.search.proofs import Prices

_LONGEST_NAME = 60
"""Characters of a name in a title; the rest is cut."""
_LONGEST_LINE = 100
"""Characters of a line below a title."""


def plot_schedule(
    schedule: Schedule,
    path: str | Path | None = None,
    title: str | None = None,
    *,
    subtitle: str | None = None,
    prices: Prices | None = None,
) -> Figure:
    """Draw a schedule by request and, on the same time axis, its memory against M.

    Parameters
    ----------
    schedule
        The schedule; it need not be feasible.
    path
        Where to save the picture: png, svg or pdf.
    title
        First line; the name of the instance when left out.
    subtitle
        What is known of the schedule, such as "proved optimal".
    prices
        Prices that prove a bound, drawn below the memory.

    Examples
    --------
    >>> from kvopt import Instance, Request, Schedule
    >>> from kvopt.plots import plot_schedule
    >>> instance = Instance(7, [Request(0, 1, o) for o in (1, 2, 3, 4)])
    >>> figure = plot_schedule(Schedule(instance, (0, 0, 0, 2)), subtitle="proved optimal")
    >>> print(figure.get_suptitle())
    instance
    4 requests, M = 7, total latency 12, proved optimal
    """
    instance = schedule.instance
    upper = max(1.6, len(instance) * style.row_height(len(instance)) + 0.4)
    heights = (upper, 2.4) if prices is None else (upper, 2.4, 1.4)
    figure = style.new_figure(sum(heights) + 1.0)
    top, bottom, *below = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    gantt(schedule, top)
    memory_profile(schedule, bottom)
    top.tick_params(labelbottom=False)
    if prices is not None:
        price_curve(prices, below[0])
        bottom.set_xlabel("")
        bottom.tick_params(labelbottom=False)
    latency = f"total latency {schedule.objective:,}"
    _title(figure, title or instance.name, _facts(instance, latency, subtitle))
    _legend(figure, top, bottom)
    if path is not None:
        style.save(figure, path)
    return figure


def plot_instance(instance: Instance, path: str | Path | None = None) -> Figure:
    """Draw the requests alone: shapes, arrivals and what they would hold unhindered.

    Parameters
    ----------
    instance
        The requests.
    path
        Where to save the picture: png, svg or pdf.
    """
    figure = style.new_figure(5.6)
    axes = figure.subplot_mosaic([["shapes", "lengths"], ["shapes", "demand"]])
    requests.shapes(instance, axes["shapes"])
    requests.lengths(instance, axes["lengths"])
    memory_profile(instance, axes["demand"])
    if instance.last_arrival:
        left, right = axes["demand"].get_xlim()
        for name in ("lengths", "demand"):
            axes[name].set_xlim(left - (right - left) * 0.02, right)
            style.whole_numbers(axes[name], axes[name].xaxis, right)
    axes["demand"].set_title("memory if every request started on arrival", fontsize=9)
    rounds = sum(request.volume for request in instance) / instance.memory
    _title(figure, instance.name, _facts(instance, f"volume {rounds:,.1f} full rounds"))
    _legend(figure, axes["demand"])
    if path is not None:
        style.save(figure, path)
    return figure


def _facts(instance: Instance, *more: str | None) -> str:
    count = "1 request" if len(instance) == 1 else f"{len(instance):,} requests"
    facts = [count, f"M = {instance.memory:,}", *more]
    return fill(", ".join(fact for fact in facts if fact), _LONGEST_LINE)


def _title(figure: Figure, name: str | None, facts: str) -> None:
    first = style.shortened(name or "instance", _LONGEST_NAME)
    figure.suptitle(f"{first}\n{facts}", fontsize=11, parse_math=False)


def _legend(figure: Figure, *panels: Axes) -> None:
    handles: dict[str, Artist] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(str(label), handle)
    look: dict[str, Any] = {"ncols": 6, "frameon": False, "fontsize": 8}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", **look)
