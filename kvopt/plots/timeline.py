"""The upper panel: every request in a row of its own, over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from kvopt.plots import style
from kvopt.problem.instance import Instance
from kvopt.timetable.outlines import Points, growth, is_stepped, window
from kvopt.timetable.schedule import Schedule

_FLOOR = 0.43
"""Where a bar stands, below the middle of its row."""


def gantt(schedule: Schedule, ax: Axes | None = None) -> Axes:
    """Draw one row a request: waiting as a line, prompt and produced tokens as heights.

    Rows are in order of start, those of a fleet worker by worker.  Heights are tokens, on one
    scale for all rows.

    Parameters
    ----------
    schedule
        The schedule; it need not be feasible.
    ax
        Where to draw; a new figure when left out.

    Returns
    -------
    Axes
        Where it was drawn; its artists carry labels for a legend.
    """
    ends = schedule.completions
    where = schedule.workers
    rows = sorted(range(len(ends)), key=lambda i: (where[i], schedule.starts[i], ends[i], i))
    ax = style.axes_of(ax, len(rows) * style.row_height(len(rows)) + 1.6)
    _draw_waiting(schedule, rows, ax)
    _draw_tokens(schedule, rows, ax)
    _draw_floors(schedule, rows, ax)
    label_rows(schedule.instance, rows, ax)
    _part_workers(schedule, rows, ax)
    style.time_axis(ax, *window(schedule))
    ax.set_ylim(len(rows) - 0.4, _FLOOR - style.band(len(rows)) - 0.17)
    style.grid(ax, "x")
    return ax


def _draw_waiting(schedule: Schedule, rows: list[int], ax: Axes) -> None:
    waits: list[Points] = []
    for row, i in enumerate(rows):
        arrival, start = schedule.instance.requests[i].arrival, schedule.starts[i]
        if start > arrival:
            waits.append([(arrival, row + _FLOOR), (start, row + _FLOOR)])
    width = 0.8 if len(rows) <= style.CROWDED else 0.3
    if waits:
        # Snapped to pixels, a thousand lines would show stripes that mean nothing.
        lines = LineCollection(waits, colors=style.WAITING, linewidths=width, snap=False)
        lines.set_label("waiting")
        ax.add_collection(lines)


def _draw_tokens(schedule: Schedule, rows: list[int], ax: Axes) -> None:
    outline = 0.3 if len(rows) <= style.CROWDED else 0.0
    edge = style.EDGE if outline else "none"
    bars = list(_bars(schedule, rows))
    # One collection, whose two colours take turns: where bars overlap, lower rows are in front.
    colours = [style.PROMPT, style.GROWTH]
    ax.add_collection(PolyCollection(bars, facecolors=colours, edgecolors=edge, linewidths=outline))
    for colour, label in zip(colours, ("prompt tokens", "tokens produced"), strict=True):
        ax.fill_between([], [], color=colour, linewidth=0, label=label)  # for legends


def _bars(schedule: Schedule, rows: list[int]) -> Iterator[Points]:
    """Yield two outlines a row: prompt tokens, and on top of them the tokens produced."""
    stepped = is_stepped(schedule)
    tallest = max((request.peak for request in schedule.instance), default=1)
    scale = style.band(len(rows)) / tallest
    for row, i in enumerate(rows):
        request, start = schedule.instance.requests[i], schedule.starts[i]
        end = schedule.completions[i]
        base = row + _FLOOR
        top = base - request.prompt * scale
        yield [(start, base), (start, top), (end, top), (end, base)]
        curve = [(t, top - grown * scale) for t, grown in growth(start, request.output, stepped)]
        yield [(start, top), *curve, (end, top)]


def _draw_floors(schedule: Schedule, rows: list[int], ax: Axes) -> None:
    """Draw a thin line below each bar, for those that are too flat to be seen."""
    floors: list[Points] = [
        [(schedule.starts[i], row + _FLOOR), (schedule.completions[i], row + _FLOOR)]
        for row, i in enumerate(rows)
    ]
    width = 0.6 if len(rows) <= style.CROWDED else 0.25
    ax.add_collection(LineCollection(floors, colors=style.EDGE, linewidths=width, zorder=0.9))


def _part_workers(schedule: Schedule, rows: list[int], ax: Axes) -> None:
    """Draw a line between the rows of one worker and the next, and write which one it is."""
    if schedule.instance.workers == 1:
        return
    firsts = {schedule.workers[i]: row for row, i in reversed([*enumerate(rows)])}
    for worker, row in firsts.items():
        if row:
            ax.axhline(row - 0.52, color=style.EDGE, linewidth=0.6, linestyle=":")
        look: dict[str, Any] = {"fontsize": 8, "va": "top", "ha": "right"}
        ax.text(0.995, row - 0.45, f"worker {worker}", transform=ax.get_yaxis_transform(), **look)


def label_rows(instance: Instance, rows: list[int], ax: Axes) -> None:
    """Write beside each row which request it is, or beside one in so many."""
    requests = instance.requests
    size = 7 if len(rows) > 20 else 8
    step = style.label_step(ax, len(rows), size)
    shown = range(0, len(rows), step)
    labels = [style.shortened(requests[rows[row]].id or "", 18) for row in shown]
    # Beside the floor of the bar, so that a flat bar is seen to be of its own row.
    places = [row + _FLOOR for row in shown]
    ax.set_yticks(places, labels, fontsize=size, va="baseline", parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylabel("request" if step == 1 else f"request (one in {step} is labelled)")
