"""Whole figures: schedules and runs with their memory, and the requests of an instance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvopt.errors import InvalidInput
from kvopt.show.plots import style
from kvopt.show.plots.panels import bands, memory_profile, rows
from kvopt.show.plots.timeline import Drawable, Timeline
from kvopt.show.summary import counted

if TYPE_CHECKING:
    from kvopt.problem.instance import Instance

_LONGEST_NAME = 60
"""Limit of the characters of a name in a title; the rest is cut."""
_MAX_WORKERS = 8
"""Up to so many workers each has a panel of memory."""
_LONGEST_LINE = 100
"""Limit of the characters of a line below a title."""


def plot_schedule(
    schedule: Drawable,
    path: str | Path | None = None,
    title: str | None = None,
    *,
    ax: Axes | None = None,
    subtitle: str | None = None,
) -> Figure:
    """Draw a schedule or a run by request and, on the same time axis, its memory against M.

    A fleet has a panel of memory for each worker, up to eight; beyond, one for all together.

    Parameters
    ----------
    schedule
        It need not be feasible.
    path
        File for the picture: png, svg or pdf.
    title
        First line; by default the name of the instance.
    ax
        Axes for the requests alone; by default a new figure with all panels.
    subtitle
        A remark on the schedule, such as "proved optimal".

    Examples
    --------
    >>> from kvopt import Instance, Request, Schedule
    >>> from kvopt.show.plots import plot_schedule
    >>> instance = Instance(7, [Request(0, 1, o) for o in (1, 2, 3, 4)])
    >>> figure = plot_schedule(Schedule(instance, (0, 0, 0, 2)), subtitle="proved optimal")
    >>> print(figure.get_suptitle())
    instance
    4 requests, M = 7, total latency 12, proved optimal
    """
    if ax is not None:
        return style.figure_of(rows(schedule, ax))
    figure, _ = _drawn([schedule])
    drawn = schedule.timeline()
    return _finished(figure, drawn.instance, path, title, _title(drawn), subtitle)


def plot_runs(runs: Sequence[Drawable], path: str | Path | None = None) -> Figure:
    """Draw runs on one instance side by side, on common axes.

    Parameters
    ----------
    runs
        At least one; two are drawn in a row.
    path
        File for the picture: png, svg or pdf.
    """
    figure, panels = _drawn(runs)
    instance = runs[0].timeline().instance
    for drawn, panel in zip((run.timeline() for run in runs), panels, strict=True):
        if [r.shape for r in drawn.instance] != [r.shape for r in instance]:
            raise InvalidInput("is of another instance", field=drawn.label)
        panel[0].set_title(fill(_title(drawn), _LONGEST_LINE // min(len(runs), 2)))
    for kind in panels.T if len(instance) > style.CROWDED else panels.T[1:]:  # rows keep theirs
        top = max(ax.get_ylim()[1] for ax in kind)
        for ax in kind:
            ax.set_ylim(0, top)
    return _finished(figure, instance, path)


def _drawn(runs: Sequence[Drawable]) -> tuple[Figure, Any]:
    """Return a figure of runs, and the panels of each."""
    instance = runs[0].timeline().instance
    count, workers = len(instance), instance.workers
    kinds: list[tuple[float, Callable[[Drawable, Axes], Axes]]]
    if count > style.CROWDED:
        kinds = [(h, partial(bands, kinds=(k,))) for h, k in ((2.2, "waiting"), (1.6, "running"))]
    else:
        kinds = [(max(1.6, count * style.row_height(count) + 0.4), rows)]
    is_split = 1 < workers <= _MAX_WORKERS
    for worker in range(workers) if is_split else [None]:
        kinds.append((1.4 if is_split else 2.4, partial(memory_profile, worker=worker)))
    heights = [height for height, _ in kinds]
    across = min(len(runs), 2)
    lines = -(-len(runs) // across)
    figure = style.new_figure(lines * (sum(heights) + 0.6) + 0.6)
    axes = figure.subplots(
        lines * len(kinds), across, sharex=True, squeeze=False, height_ratios=heights * lines
    )
    panels = axes.reshape(lines, len(kinds), across).swapaxes(1, 2).reshape(-1, len(kinds))
    limits = []
    for run, panel in zip(runs, panels, strict=False):
        for (_, draw), ax in zip(kinds, panel, strict=True):
            draw(run, ax)
        limits.append(panel[0].get_xlim())
        for ax in panel[:-1]:
            ax.set_xlabel("")
        panel[-1].tick_params(labelbottom=True)
    for ax in panels[len(runs) :].flat:
        ax.remove()
    begins, ends = zip(*limits, strict=True)
    panels[0][0].set_xlim(min(begins), max(ends))  # for all: they share it
    return figure, panels[: len(runs)]


def plot_instance(instance: Instance, path: str | Path | None = None) -> Figure:
    """Draw the requests alone: shapes, arrivals, and memory if all started on arrival.

    Parameters
    ----------
    instance
        The requests.
    path
        File for the picture: png, svg or pdf.
    """
    figure = style.new_figure(5.6)
    axes = figure.subplot_mosaic([["shapes", "lengths"], ["shapes", "demand"]])
    _shapes(instance, axes["shapes"])
    _lengths(instance, axes["lengths"])
    memory_profile(instance, axes["demand"])
    if instance.last_arrival:
        left, right = axes["demand"].get_xlim()
        for name in ("lengths", "demand"):
            axes[name].set_xlim(left - (right - left) * 0.02, right)
            style.whole_numbers(axes[name].xaxis, right)
    axes["demand"].set_title("memory if every request started on arrival")
    rounds = sum(request.volume for request in instance) / (instance.memory * instance.workers)
    return _finished(figure, instance, path, None, f"volume {rounds:,.1f} full rounds")


def _shapes(instance: Instance, ax: Axes) -> None:
    """Scatter prompt against output; the area of a dot counts the requests of its shape."""
    shared = Counter(request.shape for request in instance)
    largest = max(shared.values(), default=1)
    areas = [16 + 200 * (times - 1) / max(largest, 10) for times in shared.values()]
    prompts, outputs = np.array([*shared]).reshape(-1, 2).T
    alpha = 0.8 if len(shared) <= 200 else 0.35
    ax.scatter(prompts, outputs, areas, style.PROMPT, alpha=alpha, linewidths=0, zorder=3)
    alike = f", dot area: how many are alike (at most {largest:,})" if largest > 1 else ""
    ax.set(xlabel="prompt tokens", ylabel="output tokens", title="shapes" + alike)
    _from_zero(ax, max(prompts, default=1), max(outputs, default=1))


def _lengths(instance: Instance, ax: Axes) -> None:
    """Draw every request as its prompt with its output on top.

    They are drawn at their arrival, or side by side by ascending volume in a backlog.  The
    area of a dot is the volume.
    """
    requests = sorted(instance, key=lambda request: request.volume)
    places = [r.arrival if instance.last_arrival else i for i, r in enumerate(requests, 1)]
    prompts, peaks = [r.prompt for r in requests], [r.peak for r in requests]
    width = max(0.3, min(4.0, 250 / max(len(requests), 1)))
    ax.vlines(places, 0, prompts, color=style.PROMPT, linewidth=width)
    ax.vlines(places, prompts, peaks, color=style.GROWTH, linewidth=width)
    largest = max((request.volume for request in requests), default=1)
    area = max(3.0, min(40.0, 4_000 / max(len(requests), 1)))
    areas = [1 + area * request.volume / largest for request in requests]
    ax.scatter(places, peaks, s=areas, color=style.INK, linewidths=0, zorder=3)
    ax.set_xlabel("arrival (round)" if instance.last_arrival else "requests by volume")
    ax.set(ylabel="tokens", title="prompt and output, dot area: volume")
    _from_zero(ax, max(places, default=1), max(peaks, default=1))


def _from_zero(ax: Axes, right: int, top: int) -> None:
    ax.set_xlim(-0.03 * max(right, 1), 1.05 * max(right, 1))
    ax.set_ylim(0, 1.08 * max(top, 1))
    style.whole_numbers(ax.xaxis, right)
    style.whole_numbers(ax.yaxis, top)


def _title(drawn: Timeline) -> str:
    """Return the title of a run: the policy, and the waiting of its users."""
    name = style.shortened(drawn.label, _LONGEST_NAME)
    return f"{name}: {drawn.remark}" if name else drawn.remark


def _finished(
    figure: Figure,
    instance: Instance,
    path: str | Path | None,
    title: str | None = None,
    *more: str | None,
) -> Figure:
    """Write name and facts above a figure, the legend below it once, and save it."""
    fleet = f"{instance.workers} workers" if instance.workers > 1 else None
    facts = [counted(len(instance), "request"), fleet, f"M = {instance.memory:,}", *more]
    lines = fill(", ".join(fact for fact in facts if fact), _LONGEST_LINE).replace("$", r"\$")
    first = style.shortened(title or instance.name or "instance", _LONGEST_NAME)
    figure.suptitle(f"{first}\n{lines}", fontsize=11)
    for ax in figure.axes:
        ax.title.set_fontsize(9)
    figure.align_ylabels()
    handles: dict[str, Artist] = {}
    legends = [ax.get_legend_handles_labels() for ax in figure.axes]
    pairs = [pair for legend in legends for pair in zip(*legend, strict=True)]
    has_several = sum(label.startswith("peak ") for _, label in pairs) > 1
    for handle, label in pairs:
        handles.setdefault("peak" if has_several and label[:5] == "peak " else label, handle)
    look: Any = {"loc": "outside lower center", "ncols": 6, "frameon": False, "fontsize": 8}
    figure.legend(handles.values(), handles.keys(), **look)
    if path is not None:
        style.save(figure, path)
    return figure
