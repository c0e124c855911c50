"""Whole figures, and how they get into a file."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from kvopt.errors import InvalidInput
from kvopt.files.atomic import atomic_path
from kvopt.instance import Instance
from kvopt.plots import style
from kvopt.plots.panels import gantt, memory_profile
from kvopt.schedule import Schedule

SUFFIXES = (".png", ".svg", ".pdf")


def plot_schedule(
    schedule: Schedule, path: str | Path | None = None, subtitle: str | None = None
) -> Figure:
    """Draw a schedule by request and, on the same time axis, its memory against M.

    Parameters
    ----------
    schedule
        The schedule.
    path
        Where to save the picture: png, svg or pdf.
    subtitle
        What is known of the schedule, such as a bound.
    """
    rows = len(schedule.instance)
    upper = max(1.6, rows * style.row_height(rows) + 0.4)
    figure = _figure(upper + 3.2)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(upper, 2.4))
    gantt(schedule, top)
    memory_profile(schedule, bottom)
    top.tick_params(labelbottom=False)
    instance = schedule.instance
    facts = f"{len(instance):,} requests, M = {instance.memory:,}, total latency {schedule.objective:,}"
    _title(figure, instance, facts if subtitle is None else f"{facts}, {subtitle}")
    _legend(figure, bottom)
    if path is not None:
        save(figure, path)
    return figure


def plot_instance(instance: Instance, path: str | Path | None = None) -> Figure:
    """Draw the requests alone: when they arrive, how long prompt and output are.

    Parameters
    ----------
    instance
        The requests.
    path
        Where to save the picture: png, svg or pdf.
    """
    figure = _figure(4.6)
    left, right = figure.subplots(1, 2)
    _shapes(instance, left)
    if instance.last_arrival:
        _arrivals(instance, right)
    else:
        _lengths(instance, right)
    volume = sum(request.volume for request in instance)
    facts = (
        f"{len(instance):,} requests, M = {instance.memory:,}, "
        f"volume {volume / instance.memory:,.1f} full rounds"
    )
    _title(figure, instance, facts)
    if path is not None:
        save(figure, path)
    return figure


def refuse_unknown_suffix(path: str | Path) -> None:
    """Raise unless the name ends in a format that can be written."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InvalidInput(f"must end in {', '.join(SUFFIXES)}", field="picture", file=str(path))


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure whole or not at all; the same figure gives the same bytes."""
    refuse_unknown_suffix(path)
    suffix = Path(path).suffix.lower()
    undated: dict[str, dict[str, str | None]] = {
        ".png": {"Software": None},
        ".svg": {"Date": None},
        ".pdf": {"CreationDate": None},
    }
    with atomic_path(path) as temporary, matplotlib.rc_context({"svg.hashsalt": "kvopt"}):
        figure.savefig(temporary, format=suffix[1:], dpi=150, metadata=undated[suffix])


def _figure(height: float) -> Figure:
    figure = Figure(figsize=(style.WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _title(figure: Figure, instance: Instance, facts: str) -> None:
    name = instance.name or "instance"
    figure.suptitle(f"{name if len(name) <= 60 else name[:59] + '…'}\n{facts}", fontsize=11)


def _legend(figure: Figure, bottom: Axes) -> None:
    handles, labels = bottom.get_legend_handles_labels()
    handles.append(Patch(color=style.WAITING))
    labels.append("waiting")
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8)


def _shapes(instance: Instance, ax: Axes) -> None:
    prompts = [request.prompt for request in instance]
    outputs = [request.output for request in instance]
    transparency = 0.8 if len(instance) <= 200 else 0.3
    ax.scatter(prompts, outputs, s=14, color=style.PROMPT, alpha=transparency, linewidths=0)
    ax.set_xlabel("prompt tokens")
    ax.set_ylabel("output tokens")
    _whole_numbers(ax)


def _arrivals(instance: Instance, ax: Axes) -> None:
    for request in instance if len(instance) <= 500 else ():
        ax.plot([request.arrival] * 2, [0, request.peak], color=style.WAITING, linewidth=0.6)
    arrivals = [request.arrival for request in instance]
    peaks = [request.peak for request in instance]
    ax.scatter(arrivals, peaks, s=14, color=style.GROWTH, edgecolors=style.EDGE, linewidths=0.3)
    ax.set_xlabel("arrival (round)")
    ax.set_ylabel("peak tokens (prompt + output)")
    _whole_numbers(ax)


def _lengths(instance: Instance, ax: Axes) -> None:
    """Without arrivals: how peaks are distributed."""
    peaks = sorted(request.peak for request in instance)
    ax.step(range(1, len(peaks) + 1), peaks, where="mid", color=style.EDGE, linewidth=1.0)
    ax.axhline(instance.memory, color=style.CAPACITY, linestyle="--", linewidth=1.0)
    ax.set_xlabel("requests by peak")
    ax.set_ylabel("peak tokens (prompt + output), M dashed")
    _whole_numbers(ax)


def _whole_numbers(ax: Axes) -> None:
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    ax.set_ylim(bottom=0)
    ax.grid(color=style.GRID, linewidth=0.6)
    ax.set_axisbelow(True)
