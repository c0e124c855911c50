"""Whole figures: a schedule in two panels, an instance in three."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvopt.incumbent.proofs import Prices
from kvopt.plots import requests, style
from kvopt.plots.memory import memory_profile, price_curve
from kvopt.plots.running import bands, rows, run_memory
from kvopt.problem.instance import Instance
from kvopt.show.summary import worded
from kvopt.simulate.comparison import Comparison
from kvopt.timetable.outlines import window
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.schedule import Schedule

_LONGEST_NAME = 60
"""Characters of a name in a title; the rest is cut."""
_MOST_WORKERS = 8
"""Workers up to which each has a panel of memory."""
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

    A fleet has a panel of memory for each worker, up to eight; beyond, one for all together.

    Parameters
    ----------
    schedule
        The schedule; it need not be feasible.  One whose starts do not say it all is drawn by
        `plot_runs`, without title and prices.
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
    if not schedule.is_plain:
        return plot_run(schedule, path)
    instance = schedule.instance
    uppers = _upper_heights(len(instance))
    lowers = _memory_of(schedule)
    each = 2.4 if len(lowers) == 1 else 1.4
    heights = (*uppers, *(each for _ in lowers), *(() if prices is None else (1.4,)))
    figure = style.new_figure(sum(heights) + 1.0)
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    tops, bottoms = axes[: len(uppers)], axes[len(uppers) : len(uppers) + len(lowers)]
    _draw_requests(schedule, tops)
    for part, ax in zip(lowers, bottoms, strict=True):
        memory_profile(part, ax)
    if prices is not None:
        price_curve(prices, axes[-1])
    for ax in axes[len(uppers) : -1]:
        ax.set_xlabel("")
        ax.tick_params(labelbottom=False)
    if len(lowers) > 1:
        for worker, ax in enumerate(bottoms):
            ax.set_ylabel(f"worker {worker}")
            for line in ax.lines:  # one entry of the legend for the peaks of all
                if str(line.get_label()).startswith("peak"):
                    line.set_label("peak")
    style.time_axis(axes[-1], *window(schedule))
    figure.align_ylabels()
    latency = f"total latency {schedule.objective:,}"
    _title(figure, title or instance.name, _facts(instance, latency, subtitle))
    _legend(figure, *tops, bottoms[0])
    if path is not None:
        style.save(figure, path)
    return figure


def _memory_of(schedule: Schedule) -> Sequence[Schedule]:
    """Return the schedules whose memory is drawn: of each worker, or of all together."""
    is_few = 1 < schedule.instance.workers <= _MOST_WORKERS
    return schedule.parts if is_few else [schedule]


def plot_run(run: Schedule, path: str | Path | None = None) -> Figure:
    """Draw a run on any clock: requests above, memory below; see `plot_runs`."""
    return plot_runs([run], path)


def plot_runs(runs: Sequence[Schedule], path: str | Path | None = None) -> Figure:
    """Draw runs on one instance side by side, on common axes.

    Parameters
    ----------
    runs
        At least one; two stand in a row.
    path
        Where to save the picture: png, svg or pdf.
    """
    drawn = [run if isinstance(run, PolicyRun) else PolicyRun.of(run, "") for run in runs]
    first = Comparison(drawn)[0]
    uppers = _upper_heights(len(first.instance))
    heights, across = (*uppers, 2.4), min(len(runs), 2)
    lines = -(-len(runs) // across)
    figure = style.new_figure(lines * (sum(heights) + 0.6) + 0.6)
    axes = figure.subplots(
        lines * len(heights), across, sharex=True, squeeze=False, height_ratios=heights * lines
    )
    panels = axes.reshape(lines, len(heights), across).swapaxes(1, 2).reshape(-1, len(heights))
    right = 0.0
    for run, (*tops, bottom) in zip(drawn, panels, strict=False):
        _draw_requests(run, tops)
        run_memory(run, bottom)
        right = max(right, bottom.get_xlim()[1])
        tops[0].set_title(fill(_said(run), 100 // across), fontsize=9, parse_math=False)
    for panel in panels[len(runs) :].flat:
        panel.remove()
    _common_heights(panels[: len(runs)])
    bottom.set_xlim(0, right)  # of all: they share their times
    figure.align_ylabels()
    _title(figure, first.instance.name, _facts(first.instance))
    _legend(figure, *panels[: len(runs)].flat)
    if path is not None:
        style.save(figure, path)
    return figure


def _upper_heights(count: int) -> tuple[float, ...]:
    """Return the inches of the panels above memory: rows, or bands of many requests."""
    if count > style.CROWDED:
        return (2.2, 1.6)
    return (max(1.6, count * style.row_height(count) + 0.4),)


def _draw_requests(what: Schedule, panels: Sequence[Axes]) -> None:
    if len(panels) == 1:
        rows(what, panels[0])
    else:
        for kind, panel in zip(("waiting", "running"), panels, strict=True):
            bands(what, panel, (kind,))
    for panel in panels:
        panel.tick_params(labelbottom=False)


def _common_heights(panels: Any) -> None:
    """Give panels of one kind one scale; rows keep theirs, which have a row a request."""
    kinds = panels.T if panels.shape[1] > 2 else panels.T[1:]
    for kind in kinds:
        top = max(panel.get_ylim()[1] for panel in kind)
        for panel in kind:
            panel.set_ylim(0, top)


def _said(run: PolicyRun) -> str:
    """Return what stands above a run: the policy, and what its users waited."""
    name, unit = style.shortened(run.policy, _LONGEST_NAME), "" if run.clock.is_even else " s"
    if run.objective is None:
        return f"{name}: {run.outcome}, {run.completed:,} of {len(run.starts):,} finished"
    latency = run.measures()["latency"]
    said = [f"{share} {worded(latency[share])}{unit}" for share in ("mean", "p99")]
    evictions = f", {run.evictions:,} evictions" if run.evictions else ""
    paused = f", {run.pauses:,} pause{'s' * (run.pauses > 1)}" if run.pauses else ""
    latency_said = f"latency {', '.join(said)}{evictions}{paused}"
    return f"{name}: {latency_said}" if name else latency_said


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
    rounds = sum(request.volume for request in instance) / instance.pooled().memory
    _title(figure, instance.name, _facts(instance, f"volume {rounds:,.1f} full rounds"))
    _legend(figure, axes["demand"])
    if path is not None:
        style.save(figure, path)
    return figure


def _facts(instance: Instance, *more: str | None) -> str:
    count = "1 request" if len(instance) == 1 else f"{len(instance):,} requests"
    fleet = f"{instance.workers} workers" if instance.workers > 1 else None
    facts = [count, fleet, f"M = {instance.memory:,}", *more]
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
