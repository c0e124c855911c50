"""Single panels over time: requests in rows or as bands, tokens held.

Functions draw a schedule, or a run on any clock, on axes, by default on those of a new figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.markers import CARETDOWN

from kvopt.show.plots import style
from kvopt.show.plots.timeline import Drawable, Timeline, thinned

_FLOOR, _TALL = 0.43, 0.86
"""Position of a bar below the middle of its row, and the largest share of a row that it fills."""
_MAX_LINES = 1_000
"""Beyond so many corners a line around them would hide them."""


def rows(drawable: Drawable, ax: Axes | None = None) -> Axes:
    """Draw the requests over time: in rows, or many of them as bands.

    Rows are in order of start, those of a fleet worker by worker.  Waiting is a line, prompts and
    produced tokens are heights on one scale for all rows.  A schedule need not be feasible.  The
    artists of the axes have labels for a legend.
    """
    drawn = drawable.timeline()
    count = len(drawn.order)
    if count > style.CROWDED:
        return bands(drawable, ax)
    ax = style.axes_of(ax, count * style.row_height(count) + 1.6)
    floor = np.argsort(drawn.order) + _FLOOR
    if drawn.waits:
        waiting, since, until = zip(*drawn.waits, strict=True)
        ax.hlines(floor[[*waiting]], since, until, color=style.WAITING, lw=0.8, label="waiting")
    _bars(drawn, floor, ax)
    _label_rows(drawn, ax)
    ax.set_ylim(count - 0.4, -0.6)
    _time(drawn, ax)
    ax.yaxis.grid(False)
    return ax


def _bars(drawn: Timeline, floor: np.ndarray, ax: Axes) -> None:
    """Draw produced tokens, prompts in front of them, and evicted work."""
    scale = _TALL / max((request.peak for request in drawn.instance), default=1)
    edge: Any = {"edgecolor": style.INK, "linewidth": 0.3}
    lost = {"facecolor": "none", "edgecolor": style.LOST, "hatch": "//////", "linewidth": 0.4}
    for label, is_lost, curves, look in (
        ("tokens produced", False, [drawn.tokens], {"facecolor": style.GROWTH, **edge}),
        ("prompt tokens", False, [drawn.prompt], {"facecolor": style.PROMPT, **edge}),
        ("lost in evictions", True, [drawn.tokens, drawn.prompt], lost),
    ):
        outlines = []
        for piece in drawn.work:
            for times, heights in (curve(piece) for curve in curves if piece.is_lost == is_lost):
                above = floor[piece.request] - scale * np.asarray(heights)
                outlines.append(np.column_stack((times, above)))
        if outlines:
            ax.add_collection(PolyCollection(outlines, label=label, **look))
    # A thin line below each bar, for bars that are too flat to be visible.
    lines = [(floor[piece.request], piece.begin, piece.end) for piece in drawn.work]
    ax.hlines(*np.reshape(lines, (-1, 3)).T, color=style.INK, linewidth=0.6, zorder=0.9)


def _label_rows(drawn: Timeline, ax: Axes) -> None:
    """Label the rows with requests, or one in so many; separate workers."""
    size = 7 if len(drawn.order) > 20 else 8
    step = style.label_step(ax, len(drawn.order), size)
    shown = range(0, len(drawn.order), step)
    labels = [style.shortened(drawn.instance[drawn.order[row]].id or "", 18) for row in shown]
    # Next to the floor of the bar, so that the row of a flat bar is clear.
    ax.set_yticks([row + _FLOOR for row in shown], labels, fontsize=size, va="baseline")
    ax.tick_params(axis="y", length=0)
    ax.set_ylabel("request" if step == 1 else f"request (one in {step} is labelled)")
    workers = {piece.request: piece.worker for piece in drawn.work}
    parts = [workers.get(i) for i in drawn.order] if drawn.instance.workers > 1 else []
    for worker in {*parts} - {None}:
        row = parts.index(worker)
        if row:
            ax.axhline(row - 0.52, color=style.INK, linewidth=0.6, linestyle=":")
        style.note(ax, 0.995, row - 0.45, f"worker {worker}", ha="right", va="top")


def bands(
    drawable: Drawable, ax: Axes | None = None, kinds: Sequence[str] = ("running", "waiting")
) -> Axes:
    """Draw how many requests run and how many wait at each time, one band on the other.

    ``kinds`` are the bands to draw.
    """
    drawn, ax = drawable.timeline(), style.axes_of(ax, 3.6)
    highest = 1.0
    for place in range(len(kinds), 0, -1):  # the highest first
        times, heights = thinned(drawn.counted(*kinds[:place]))
        kind = kinds[place - 1]
        ax.fill_between(times, heights, color=style.PALETTE[kind][0], lw=0, label=kind)
        highest = float(np.max(heights, initial=highest))
    ax.set_ylim(0, highest * 1.08)
    style.whole_numbers(ax.yaxis, highest)
    ax.set_ylabel(f"{' and '.join(kinds)} requests")
    _time(drawn, ax)
    return ax


def memory_profile(drawable: Drawable, ax: Axes | None = None, worker: int | None = None) -> Axes:
    """Draw the tokens held at every time, prompts below and produced on top, against M.

    A run is drawn with its evicted work, and tokens above the capacity are marked.  An instance is
    drawn as if every request started when it arrives: its demand.  Without a ``worker`` all of a
    fleet are drawn together, against the memory of all.
    """
    drawn, ax = drawable.timeline(), style.axes_of(ax, 3.6)
    memory = drawn.instance.memory * (drawn.instance.workers if worker is None else 1)
    held, prompts = drawn.held(worker), drawn.held_prompts(worker)
    times, totals = thinned(held)
    ax.fill_between(times, totals, color=style.GROWTH, lw=0, label="tokens produced")
    if len(prompts[0]):
        ax.fill_between(*thinned(prompts), color=style.PROMPT, lw=0, label="prompt tokens")
    peak, above = float(np.max(totals, initial=0)), np.asarray(totals) > memory
    if above.any():
        look: Any = {"fc": "none", "ec": style.CAPACITY, "hatch": "////", "lw": 0}
        ax.fill_between(times, memory, totals, above, interpolate=True, label="above M", **look)
    ax.plot(times, totals, color=style.INK, linewidth=0.5 if len(times) < _MAX_LINES else 0)
    ax.axhline(memory, color=style.CAPACITY, linestyle="--", linewidth=1.2, label=f"M = {memory:,}")
    ax.set_ylim(0, max(peak, memory) * 1.12)
    style.whole_numbers(ax.yaxis, max(peak, memory))
    if peak:
        at = held[0][int(np.argmax(held[1]))] + drawn.stepped
        moment = f"{at:,.0f}" if drawn.unit == "rounds" else f"{at:,.4g} s"
        x, label = at - drawn.stepped / 2, f"peak {peak:,.0f} at time {moment}"
        ax.plot(x, peak, ls="none", marker=CARETDOWN, color=style.INK, label=label)
    _time(drawn, ax)
    name = "tokens held" if worker is None else f"worker {worker}"
    ax.set(xlabel=f"time ({drawn.unit})", ylabel=name)
    return ax


def _time(drawn: Timeline, ax: Axes) -> None:
    """Show the times of a timeline, with space for the last edge."""
    ax.set_xlim(drawn.begin, drawn.end + (drawn.end - drawn.begin) * 0.01)
    if drawn.unit == "rounds":
        style.whole_numbers(ax.xaxis, drawn.end)
