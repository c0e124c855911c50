"""The lower panels: tokens held over time, and what a token is worth: prices of a bound."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.markers import CARETDOWN

from kvopt.incumbent.proofs import Prices
from kvopt.plots import style
from kvopt.plots.course import thinned
from kvopt.problem.instance import Instance
from kvopt.timetable.outlines import is_stepped, profile, window
from kvopt.timetable.schedule import Schedule

_MOST_POINTS = 5_000
"""Points beyond which a curve only gets heavier."""


def memory_profile(what: Schedule | Instance, ax: Axes | None = None) -> Axes:
    """Draw the tokens held at every time, prompts below and produced on top, against M.

    Parameters
    ----------
    what
        A schedule, feasible or not; what exceeds the capacity is marked.  An instance is
        drawn as if every request started when it arrives: its demand.  Of a fleet what all
        workers hold together is drawn, against the memory of all; one worker's is that of its
        part (`Schedule.parts`).
    ax
        Where to draw; a new figure when left out.

    Returns
    -------
    Axes
        Where it was drawn; its artists carry labels for a legend.
    """
    if isinstance(what, Instance):
        what = Schedule(what.pooled(), [request.arrival for request in what])
    if what.instance.workers > 1:
        what = Schedule(what.instance.pooled(), what.starts)
    schedule, ax = what, style.axes_of(ax, 3.6)
    memory = schedule.instance.memory
    _draw_tokens(schedule, ax)
    ax.axhline(memory, color=style.CAPACITY, linestyle="--", linewidth=1.2, label=f"M = {memory:,}")
    highest = max(memory, _mark_peak(schedule, ax))
    style.time_axis(ax, *window(schedule))
    ax.set_ylim(0, highest * 1.12)
    style.whole_numbers(ax, ax.yaxis, highest)
    ax.set_xlabel("time (rounds)")
    ax.set_ylabel("tokens held")
    style.grid(ax)
    return ax


def _draw_tokens(schedule: Schedule, ax: Axes) -> None:
    points = profile(schedule, is_stepped(schedule))
    kept = thinned(points[0], points[2])
    times, prompts, totals = (list(map(each.__getitem__, kept)) for each in points)
    ax.fill_between(times, prompts, color=style.PROMPT, linewidth=0, label="prompt tokens")
    ax.fill_between(
        times, prompts, totals, color=style.GROWTH, linewidth=0, label="tokens produced"
    )
    _mark_excess(times, totals, schedule.instance.memory, ax)
    ax.plot(times, totals, color=style.EDGE, linewidth=0.5)


def _mark_excess(times: list[float], totals: list[float], memory: int, ax: Axes) -> None:
    over = [total > memory for total in totals]
    if any(over):
        look: dict[str, Any] = {"edgecolor": style.CAPACITY, "hatch": "////", "linewidth": 0}
        look |= {"facecolor": style.EXCESS, "label": "above M"}
        ax.fill_between(times, memory, totals, over, interpolate=True, **look)


def _mark_peak(schedule: Schedule, ax: Axes) -> int:
    check = schedule.check()
    if check.peak_memory:
        middle = 0.5 if is_stepped(schedule) else 0.0
        label = f"peak {check.peak_memory:,} at time {check.peak_time:,}"
        look: dict[str, Any] = {"linestyle": "none", "marker": CARETDOWN, "color": style.EDGE}
        ax.plot([check.peak_time - middle], [check.peak_memory], label=label, **look)
    return check.peak_memory


def price_curve(prices: Prices, ax: Axes | None = None) -> Axes:
    """Draw the price of a token over time, in rounds of latency.

    Parameters
    ----------
    prices
        The prices; beyond the last one they are 0.
    ax
        Where to draw; a new figure when left out.
    """
    ax = style.axes_of(ax, 2.4)
    count = len(prices.numerators)
    step = max(1, -(-count // _MOST_POINTS))
    times = [*range(0, count, step), count]
    values = [prices.numerators[time] / prices.denominator for time in times[:-1]]
    ax.step(times, [*values, 0.0], where="post", color=style.CAPACITY, linewidth=1.0)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("time (rounds)")
    ax.set_ylabel("price of a token")
    style.grid(ax)
    return ax
