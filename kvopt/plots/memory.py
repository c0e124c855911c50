"""The lower panel: tokens held over time, against the capacity."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.markers import CARETDOWN

from kvopt.model.instance import Instance
from kvopt.model.outlines import is_stepped, profile, window
from kvopt.model.schedule import Schedule
from kvopt.plots import style


def memory_profile(what: Schedule | Instance, ax: Axes | None = None) -> Axes:
    """Draw the tokens held at every time, prompts below and produced on top, against M.

    Parameters
    ----------
    what
        A schedule, feasible or not; what exceeds the capacity is marked.  An instance is
        drawn as if every request started when it arrives: its demand.
    ax
        Where to draw; a new figure when left out.

    Returns
    -------
    Axes
        Where it was drawn; its artists carry labels for a legend.
    """
    schedule = what if isinstance(what, Schedule) else _without_waiting(what)
    ax = style.new_figure(3.6).subplots() if ax is None else ax
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


def _without_waiting(instance: Instance) -> Schedule:
    return Schedule(instance, [request.arrival for request in instance])


def _draw_tokens(schedule: Schedule, ax: Axes) -> None:
    times, prompts, totals = profile(schedule, is_stepped(schedule))
    ax.fill_between(times, prompts, color=style.PROMPT, linewidth=0, label="prompt tokens")
    ax.fill_between(
        times, prompts, totals, color=style.GROWTH, linewidth=0, label="tokens produced"
    )
    _mark_excess(times, totals, schedule.instance.memory, ax)
    ax.plot(times, totals, color=style.EDGE, linewidth=0.5)


def _mark_excess(times: list[float], totals: list[float], memory: int, ax: Axes) -> None:
    over = [total > memory for total in totals]
    if any(over):
        ax.fill_between(
            times,
            memory,
            totals,
            where=over,
            interpolate=True,
            facecolor=style.EXCESS,
            edgecolor=style.CAPACITY,
            hatch="////",
            linewidth=0,
            label="above M",
        )


def _mark_peak(schedule: Schedule, ax: Axes) -> int:
    check = schedule.check()
    if check.peak_memory:
        middle = 0.5 if is_stepped(schedule) else 0.0
        ax.plot(
            [check.peak_time - middle],
            [check.peak_memory],
            linestyle="none",
            marker=CARETDOWN,
            color=style.EDGE,
            label=f"peak {check.peak_memory:,} at time {check.peak_time:,}",
        )
    return check.peak_memory
