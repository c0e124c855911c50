"""The two panels: requests over time, and tokens held over time.

A request that starts at k is drawn over ``k .. k + o``; the round that ends at time t is the
stretch from t - 1 to t.  During it the request holds ``s + (t - k)`` tokens, drawn as a
step, so every height in the picture is an integer that the check compares with M.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.ticker import MaxNLocator

from kvopt.plots import style
from kvopt.schedule import Schedule

Points = list[tuple[float, float]]

_BAND = 0.86
"""Share of a row that the largest peak fills."""

_MOST_STEPS = 60
"""Rounds up to which growth is drawn as steps; beyond, a straight line looks the same."""


def gantt(schedule: Schedule, ax: Axes) -> None:
    """Draw one row a request: waiting as a line, prompt and grown tokens as heights.

    Rows are in order of start.  Heights are tokens, on one scale for all rows.

    Parameters
    ----------
    schedule
        The schedule; it need not be feasible.
    ax
        Where to draw.
    """
    instance = schedule.instance
    rows = sorted(range(len(instance)), key=lambda i: (schedule.starts[i], schedule.completions[i]))
    tallest = max((request.peak for request in instance), default=1)
    scale = _BAND / tallest
    prompts: list[Points] = []
    growths: list[Points] = []
    waits: list[Points] = []
    for row, i in enumerate(rows):
        request, start = instance.requests[i], schedule.starts[i]
        base = row + _BAND / 2
        top = base - request.prompt * scale
        end = start + request.output
        prompts.append([(start, base), (start, top), (end, top), (end, base)])
        steps = _growth(start, request.output)
        growths.append([(t, top - grown * scale) for t, grown in steps] + [(end, top), (start, top)])
        if start > request.arrival:
            waits.append([(request.arrival, base), (start, base)])
    outline = 0.3 if len(rows) <= style.CROWDED else 0.0
    ax.add_collection(LineCollection(waits, colors=style.WAITING, linewidths=0.4 + outline))
    ax.add_collection(PolyCollection(prompts, facecolors=style.PROMPT, edgecolors="none"))
    ax.add_collection(
        PolyCollection(growths, facecolors=style.GROWTH, edgecolors=style.EDGE, linewidths=outline)
    )
    _label_rows(schedule, rows, ax)
    ax.set_xlim(0, max(schedule.makespan, 1) * 1.01)
    ax.set_ylim(len(rows) - 0.5 + 0.1, -0.6)


def _growth(start: int, output: int) -> Points:
    """Return the outline of the grown tokens, from (start, .) to (start + output, .)."""
    if output > _MOST_STEPS:
        return [(start, 0.0), (start, 1.0), (start + output, float(output))]
    corners = [(start + j + side, float(j + 1)) for j in range(output) for side in (0, 1)]
    return [(float(t), grown) for t, grown in corners]


def _label_rows(schedule: Schedule, rows: list[int], ax: Axes) -> None:
    requests = schedule.instance.requests
    step = -(-len(rows) // style.MOST_LABELS) if rows else 1
    shown = range(0, len(rows), step)
    labels = [_short(requests[rows[row]].id or "") for row in shown]
    ax.set_yticks([float(row) for row in shown], labels, fontsize=7 if len(rows) > 20 else 8)
    ax.tick_params(axis="y", length=0)
    ax.set_ylabel("request" if step == 1 else f"request (every {step}th is labelled)")
    ax.grid(axis="x", color=style.GRID, linewidth=0.6)
    ax.set_axisbelow(True)


def _short(label: str) -> str:
    return label if len(label) <= 14 else label[:13] + "…"


def memory_profile(schedule: Schedule, ax: Axes) -> None:
    """Draw the tokens held at every time, prompts below and grown tokens on top, against M.

    Parameters
    ----------
    schedule
        The schedule; what exceeds the capacity is seen above its line.
    ax
        Where to draw.
    """
    memory = schedule.instance.memory
    times, loads, prompts = _profile(schedule)
    x, total = _steps(times, loads)
    _, base = _steps(times, prompts)
    ax.fill_between(x, 0, base, color=style.PROMPT, linewidth=0, label="prompts")
    ax.fill_between(x, base, total, color=style.GROWTH, linewidth=0, label="tokens produced")
    ax.plot(x, total, color=style.EDGE, linewidth=0.5)
    ax.axhline(memory, color=style.CAPACITY, linestyle="--", linewidth=1.2, label=f"M = {memory:,}")
    check = schedule.check()
    if check.peak_memory:
        ax.plot(
            check.peak_time - 0.5, check.peak_memory, "v", color=style.EDGE, markersize=5,
            label=f"peak {check.peak_memory:,} at time {check.peak_time:,}",
        )  # fmt: skip
    ax.set_ylim(0, max(memory, check.peak_memory) * 1.08)
    ax.set_xlim(0, max(schedule.makespan, 1) * 1.01)
    ax.set_ylabel("tokens held")
    ax.set_xlabel("time (rounds)")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    ax.grid(color=style.GRID, linewidth=0.6)
    ax.set_axisbelow(True)


def _profile(schedule: Schedule) -> tuple[list[int], list[int], list[int]]:
    """Return corner times with all tokens and with the tokens of prompts."""
    corners = schedule.memory_profile()
    times = [time for time, _ in corners]
    begins = sorted(zip(schedule.starts, schedule.instance, strict=True), key=lambda pair: pair[0])
    ends = sorted(zip(schedule.completions, schedule.instance, strict=True), key=lambda p: p[0])
    held = begun = ended = 0
    prompts = []
    for time in times:
        while begun < len(begins) and begins[begun][0] < time:
            held += begins[begun][1].prompt
            begun += 1
        while ended < len(ends) and ends[ended][0] < time:
            held -= ends[ended][1].prompt
            ended += 1
        prompts.append(held)
    return times, [load for _, load in corners], prompts


def _steps(times: list[int], values: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Turn corner values into steps: the value at time t holds from t - 1 to t."""
    short = sum(b - a for a, b in pairwise(times)) <= 5_000
    x: list[float] = []
    y: list[float] = []
    for (t, value), (later, later_value) in pairwise(zip(times, values, strict=True)):
        inside = range(t + 1, later + 1) if short else (t + 1, later)
        slope = (later_value - value) / (later - t)
        for time in inside:
            height = value + slope * (time - t)
            x += [time - 1, time]
            y += [height, height]
    return np.array(x), np.array(y)
