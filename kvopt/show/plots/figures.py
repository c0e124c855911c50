"""Whole figures: schedules and runs with what they hold, and the requests of an instance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from kvopt.errors import InvalidInput
from kvopt.show.plots import style
from kvopt.show.plots.panels import bands, memory_profile, price_curve, rows
from kvopt.show.plots.timeline import Drawable, Timeline

if TYPE_CHECKING:
    from kvopt.incumbent.proofs import Prices
    from kvopt.problem.instance import Instance

_LONGEST_NAME = 60
"""Characters of a name in a title; the rest is cut."""
_MOST_WORKERS = 8
"""Workers up to which each has a panel of memory."""
_LONGEST_LINE = 100
"""Characters of a line below a title."""


def plot_schedule(
    schedule: Drawable,
    path: str | Path | None = None,
    title: str | None = None,
    *,
    ax: Axes | None = None,
    subtitle: str | None = None,
    prices: Prices | None = None,
) -> Figure:
    """Draw a schedule or a run by request and, on the same time axis, its memory against M.

    A fleet has a panel of memory for each worker, up to eight; beyond, one for all together.

    Parameters
    ----------
    schedule
        It need not be feasible.
    path
        Where to save the picture: png, svg or pdf.
    title
        First line; the name of the instance when left out.
    ax
        Where to draw the requests alone; a new figure with all of it when left out.
    subtitle
        What is known of the schedule, such as "proved optimal".
    prices
        Prices that prove a bound, drawn below the memory.

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
    figure, (panel,) = _drawn([schedule], *(() if prices is None else (1.4,)))
    if prices is not None:
        limits = panel[0].get_xlim()
        price_curve(prices, panel[-1])
        panel[0].set_xlim(limits)
    for ax in panel[:-1]:
        ax.set_xlabel("")
    found = schedule.timeline()
    _finish(figure, found, title, _told(found), subtitle)
    _legend(figure, *panel)
    if path is not None:
        style.save(figure, path)
    return figure


def plot_runs(runs: Sequence[Drawable], path: str | Path | None = None) -> Figure:
    """Draw runs on one instance side by side, on common axes.

    Parameters
    ----------
    runs
        At least one; two stand in a row.
    path
        Where to save the picture: png, svg or pdf.
    """
    figure, panels = _drawn(runs)
    found = [run.timeline() for run in runs]
    for each, panel in zip(found, panels, strict=True):
        if (each.prompts, each.peaks) != (found[0].prompts, found[0].peaks):
            raise InvalidInput("is of another instance", field=each.label)
        title = fill(_told(each), _LONGEST_LINE // min(len(runs), 2))
        panel[0].set_title(title, fontsize=9)
    for kind in panels.T if len(found[0].names) > style.CROWDED else panels.T[1:]:
        top = max(ax.get_ylim()[1] for ax in kind)  # rows keep theirs
        for ax in kind:
            ax.set_ylim(0, top)
    _finish(figure, found[0])
    _legend(figure, *panels.flat)
    if path is not None:
        style.save(figure, path)
    return figure


def _drawn(runs: Sequence[Drawable], *extra: float) -> tuple[Figure, Any]:
    """Return a figure of runs, and the panels of each, with room for more of some heights."""
    found = [run.timeline() for run in runs]
    count, workers = len(found[0].names), found[0].workers
    each = range(workers) if 1 < workers <= _MOST_WORKERS else [None]
    upper = [max(1.6, count * style.row_height(count) + 0.4)]
    heights = [2.2, 1.6] if count > style.CROWDED else upper
    above = len(heights)
    heights += [2.4 if len(each) == 1 else 1.4 for _ in each] + [*extra]
    across = min(len(runs), 2)
    lines = -(-len(runs) // across)
    figure = style.new_figure(lines * (sum(heights) + 0.6) + 0.6)
    axes = figure.subplots(
        lines * len(heights), across, sharex=True, squeeze=False, height_ratios=heights * lines
    )
    panels = axes.reshape(lines, len(heights), across).swapaxes(1, 2).reshape(-1, len(heights))
    for run, panel in zip(runs, panels, strict=False):
        if above == 1:
            rows(run, panel[0])
        else:
            bands(run, panel[0], ("waiting",))
            bands(run, panel[1], ("running",))
        for worker, ax in zip(each, panel[above:], strict=False):
            memory_profile(run, ax, worker)
            if worker is not None:
                ax.set_ylabel(f"worker {worker}")
        for ax in panel[:-1]:
            ax.tick_params(labelbottom=False)
    for ax in panels[len(runs) :].flat:
        ax.remove()
    right = max(time.end + (time.end - time.begin) * 0.01 for time in found)
    panels[0][0].set_xlim(min(time.begin for time in found), right)  # of all: they share it
    return figure, panels[: len(runs)]


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
    _shapes(instance, axes["shapes"])
    _lengths(instance, axes["lengths"])
    memory_profile(instance, axes["demand"])
    if instance.last_arrival:
        left, right = axes["demand"].get_xlim()
        for name in ("lengths", "demand"):
            axes[name].set_xlim(left - (right - left) * 0.02, right)
            style.whole_numbers(axes[name], axes[name].xaxis, right)
    axes["demand"].set_title("memory if every request started on arrival", fontsize=9)
    rounds = sum(request.volume for request in instance) / (instance.memory * instance.workers)
    _finish(figure, instance.timeline(), None, f"volume {rounds:,.1f} full rounds")
    _legend(figure, axes["demand"])
    if path is not None:
        style.save(figure, path)
    return figure


def _shapes(instance: Instance, ax: Axes) -> None:
    """Scatter prompt against output; the area of a dot counts the requests of its shape."""
    shared = Counter(request.shape for request in instance)
    most = max(shared.values(), default=1)
    areas = [16 + 200 * (times - 1) / max(most, 10) for times in shared.values()]
    prompts, outputs = [prompt for prompt, _ in shared], [output for _, output in shared]
    look: dict[str, Any] = {"color": style.PROMPT, "linewidths": 0, "zorder": 3}
    ax.scatter(prompts, outputs, s=areas, alpha=0.8 if len(shared) <= 200 else 0.35, **look)
    ax.set_xlabel("prompt tokens")
    ax.set_ylabel("output tokens")
    alike = f", dot area: how many are alike (at most {most:,})" if most > 1 else ""
    ax.set_title("shapes" + alike, fontsize=9)
    _from_zero(ax, max(prompts, default=1), max(outputs, default=1))


def _lengths(instance: Instance, ax: Axes) -> None:
    """Draw every request as its prompt with its output on top.

    They stand at their arrival; without arrivals side by side, by ascending volume.  The
    area of a dot is the volume.
    """
    requests = sorted(instance, key=lambda request: request.volume)
    places = [r.arrival if instance.last_arrival else i for i, r in enumerate(requests, 1)]
    width = max(0.3, min(4.0, 250 / max(len(requests), 1)))
    for colour, parts in (
        (style.PROMPT, [(0, request.prompt) for request in requests]),
        (style.GROWTH, [(request.prompt, request.peak) for request in requests]),
    ):
        stems = [[(x, low), (x, high)] for x, (low, high) in zip(places, parts, strict=True)]
        ax.add_collection(LineCollection(stems, colors=colour, linewidths=width, capstyle="butt"))
    peaks = [request.peak for request in requests]
    largest = max((request.volume for request in requests), default=1)
    area = max(3.0, min(40.0, 4_000 / max(len(requests), 1)))
    areas = [1 + area * request.volume / largest for request in requests]
    ax.scatter(places, peaks, s=areas, color=style.INK, linewidths=0, zorder=3)
    ax.set_xlabel("arrival (round)" if instance.last_arrival else "requests by volume")
    ax.set_ylabel("tokens")
    ax.set_title("prompt and output, dot area: volume", fontsize=9)
    _from_zero(ax, max(places, default=1), max(peaks, default=1))


def _from_zero(ax: Axes, right: int, top: int) -> None:
    ax.set_xlim(-0.03 * max(right, 1), 1.05 * max(right, 1))
    ax.set_ylim(0, 1.08 * max(top, 1))
    style.whole_numbers(ax, ax.xaxis, right)
    style.whole_numbers(ax, ax.yaxis, top)
    style.grid(ax)


def _told(found: Timeline) -> str:
    """Return what stands above a run: the policy, and what its users waited."""
    name = style.shortened(found.label, _LONGEST_NAME)
    return f"{name}: {found.said}" if name else found.said


def _finish(figure: Figure, found: Timeline, title: str | None = None, *more: str | None) -> None:
    """Write name and facts above a figure."""
    first = style.shortened(title or found.name or "instance", _LONGEST_NAME)
    facts = fill(", ".join(fact for fact in (found.facts, *more) if fact), _LONGEST_LINE)
    escaped = facts.replace("$", r"\$")
    figure.suptitle(f"{first}\n{escaped}", fontsize=11)
    figure.align_ylabels()


def _legend(figure: Figure, *panels: Axes) -> None:
    """Say once what is drawn; where there are several peaks, they have one entry."""
    handles: dict[str, Artist] = {}
    found = [each for ax in panels for each in zip(*ax.get_legend_handles_labels(), strict=True)]
    peaks = [label for _, label in found if label.startswith("peak ")]
    for handle, label in found:
        handles.setdefault("peak" if label in peaks and len(peaks) > 1 else label, handle)
    look: dict[str, Any] = {"ncols": 6, "frameon": False, "fontsize": 8}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", **look)
