"""Panels of a run on any clock: requests in rows or as bands, and memory."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from kvopt.plots import style
from kvopt.plots.course import Course, counted, course_of, thinned, tokens_over_time
from kvopt.plots.timeline import gantt, label_rows
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.schedule import Schedule


def rows(what: Schedule, ax: Axes | None = None) -> Axes:
    """Draw the requests over time: in rows, or as bands where they are many.

    Parameters
    ----------
    what
        A schedule, or a run on any clock.
    ax
        Where to draw; a new figure when left out.
    """
    if len(what.instance) > style.CROWDED:
        return bands(what, ax)
    is_bare = what.is_plain and not isinstance(what, PolicyRun)
    return gantt(what, ax) if is_bare else _bars(what, ax)


def bands(
    what: Schedule,
    ax: Axes | None = None,
    kinds: Sequence[str] = ("running", "waiting"),
) -> Axes:
    """Draw how many requests run and how many wait at each time, one band on the other.

    Parameters
    ----------
    what
        A schedule, or a run on any clock.
    ax
        Where to draw; a new figure when left out.
    kinds
        Which of the two to draw.
    """
    ax, course = style.axes_of(ax, 3.6), course_of(what)
    active = [*course.lost, *course.prefills, *course.decodes]
    drawn = {"running": active, "waiting": course.waits}
    colours = {"running": style.RUNNING, "waiting": style.WAITING}
    highest = 1
    for place, kind in reversed([*enumerate(kinds, 1)]):  # from the whole down, each over the last
        stacked = [span for each in kinds[:place] for span in drawn[each]]
        times, heights = counted(stacked, course.ended)
        kept = thinned(times, heights)
        ax.fill_between(times[kept], heights[kept], color=colours[kind], lw=0, label=kind)
        highest = max(highest, int(heights.max()))
    ax.set_ylim(0, highest * 1.08)
    style.whole_numbers(ax, ax.yaxis, highest)
    ax.set_ylabel(f"{' and '.join(kinds)} requests")
    _time(what, course.ended, ax)
    style.grid(ax)
    return ax


def run_memory(run: Schedule, ax: Axes | None = None) -> Axes:
    """Draw the tokens that a run holds over time against M, evicted work included.

    Parameters
    ----------
    run
        A run on any clock.
    ax
        Where to draw; a new figure when left out.
    """
    ax = style.axes_of(ax, 3.6)
    times, held = tokens_over_time(run)
    kept = thinned(times, held)
    ax.fill_between(times[kept], held[kept], color=style.GROWTH, lw=0, label="tokens held")
    ax.plot(times[kept], held[kept], color=style.EDGE, linewidth=0.5)
    memory = run.instance.memory
    ax.axhline(memory, color=style.CAPACITY, linestyle="--", linewidth=1.2, label=f"M = {memory:,}")
    highest = max(memory, run.peak_memory)
    ax.set_ylim(0, highest * 1.12)
    style.whole_numbers(ax, ax.yaxis, highest)
    _time(run, times[-1], ax)
    ax.set_xlabel("time (rounds)" if run.clock.is_even else "time (seconds)")
    ax.set_ylabel("tokens held")
    style.grid(ax)
    return ax


def _bars(run: Schedule, ax: Axes | None) -> Axes:
    """Draw one row a request, in order of its first start: what it waited, and what it ran."""
    course, count = course_of(run), len(run.instance)
    ax = style.axes_of(ax, count * style.row_height(count) + 1.6)
    order = _in_order_of_start(course, count)
    place = {i: row for row, i in enumerate(order)}
    for spans, colour, label, height in (
        (course.waits, style.WAITING, "waiting", 0.12),
        (course.lost, style.EXCESS, "lost in evictions", 0.8),
        (course.prefills, style.PROMPT, "prefill and first token", 0.8),
        (course.decodes, style.RUNNING, "tokens after it", 0.8),
    ):
        boxes = [_box(place[i], begin, end, height) for i, begin, end in spans]
        if boxes:
            ax.add_collection(PolyCollection(boxes, facecolors=colour, linewidths=0, label=label))
    label_rows(run.instance, order, ax)
    ax.set_ylim(count - 0.4, -0.6)
    _time(run, course.ended, ax)
    style.grid(ax, "x")
    return ax


def _in_order_of_start(course: Course, count: int) -> list[int]:
    first: dict[int, float] = {}
    for i, begin, _ in (*course.lost, *course.prefills):
        first[i] = min(begin, first.get(i, begin))
    return sorted(range(count), key=lambda i: (first.get(i, course.ended), i))


def _box(row: int, begin: float, end: float, height: float) -> list[tuple[float, float]]:
    top, floor = row + 0.43 - height, row + 0.43
    return [(begin, floor), (begin, top), (end, top), (end, floor)]


def _time(run: Schedule, until: float, ax: Axes) -> None:
    if run.clock.is_even:
        style.time_axis(ax, 0, max(round(until), 1))
    else:
        ax.set_xlim(0, max(until, 1e-9) * 1.01)
