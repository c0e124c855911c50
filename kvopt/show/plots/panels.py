"""Single panels over time: requests in rows or as bands, tokens held, prices of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.markers import CARETDOWN

from kvopt.show.plots import style
from kvopt.show.plots.timeline import Curve, Drawable, Timeline, Work, counted, thinned

if TYPE_CHECKING:
    from kvopt.incumbent.proofs import Prices

_FLOOR, _TALL = 0.43, 0.86
"""Where a bar stands, below the middle of its row, and the share of a row that it may fill."""
_MOST_LINES = 1_000
"""Corners beyond which a line around them would hide what it is around."""
_MOST_POINTS = 5_000
"""Points beyond which a curve of prices only gets heavier."""


def rows(what: Drawable, ax: Axes | None = None) -> Axes:
    """Draw the requests over time: in rows, or as bands where they are many.

    Rows are in order of start, those of a fleet worker by worker.  Waiting is a line, prompts and
    produced tokens are heights on one scale for all rows.

    Parameters
    ----------
    what
        A schedule, which need not be feasible, or a run on any clock.
    ax
        Where to draw; a new figure when left out.

    Returns
    -------
    Axes
        Where it was drawn; its artists carry labels for a legend.
    """
    found = what.timeline()
    count = len(found.order)
    if count > style.CROWDED:
        return bands(what, ax)
    ax = style.axes_of(ax, count * style.row_height(count) + 1.6)
    floor = {i: row + _FLOOR for row, i in enumerate(found.order)}
    if found.waits:
        lines = [[(begin, floor[i]), (end, floor[i])] for i, begin, end in found.waits]
        waits = LineCollection(lines, colors=style.WAITING, linewidths=0.8, label="waiting")
        ax.add_collection(waits)
    _bars(found, floor, ax)
    _label_rows(found, ax)
    _part_workers(found, ax)
    ax.set_ylim(count - 0.4, -0.6)
    _time(found, ax)
    style.grid(ax, "x")
    return ax


def _bars(found: Timeline, floor: dict[int, float], ax: Axes) -> None:
    """Draw prompts, what is produced on top of them, and what evictions threw away."""
    scale = _TALL / max(found.peaks, default=1)
    kept = [piece for piece in found.work if not piece.is_lost]
    lost = [piece for piece in found.work if piece.is_lost]

    def prompt(piece: Work) -> style.Corners:
        base = floor[piece.request]
        top = base - found.prompts[piece.request] * scale
        return [(piece.begin, base), (piece.begin, top), (piece.end, top), (piece.end, base)]

    def growth(piece: Work) -> style.Corners:
        top = floor[piece.request] - found.prompts[piece.request] * scale
        corners = ((t, top - (piece.before + j) * scale) for t, j in _rise(piece, found.stepped))
        return [(piece.begin, top), *corners, (piece.end, top)]

    edge: dict[str, Any] = {"edgecolor": style.INK, "linewidth": 0.3}
    style.filled(ax, [*map(prompt, kept)], style.PROMPT, "prompt tokens", **edge)
    style.filled(ax, [*map(growth, kept)], style.GROWTH, "tokens produced", **edge)
    whole = [each(piece) for piece in lost for each in (prompt, growth)]
    look = {"edgecolor": style.LOST, "hatch": "//////", "linewidth": 0.4}
    style.filled(ax, whole, "none", "lost in evictions", **look)
    # A thin line below each bar, for those that are too flat to be seen.
    lines = [[(p.begin, floor[p.request]), (p.end, floor[p.request])] for p in found.work]
    ax.add_collection(LineCollection(lines, colors=style.INK, linewidths=0.6, zorder=0.9))


def _rise(piece: Work, stepped: bool) -> Sequence[tuple[float, int]]:
    """Return the tokens that a piece of work has produced over time."""
    if stepped:
        return [(piece.begin + j + side, j + 1) for j in range(piece.produced) for side in (0, 1)]
    middle = [(piece.first, 1)] if piece.first < piece.end else []
    return [(piece.begin, 0), *(middle if piece.produced else ()), (piece.end, piece.produced)]


def _part_workers(found: Timeline, ax: Axes) -> None:
    """Draw a line between the rows of one worker and the next, and write which one it is."""
    workers = {piece.request: piece.worker for piece in found.work}
    known = [(row, workers[i]) for row, i in enumerate(found.order) if i in workers]
    places = [*known[:1], *(after for before, after in pairwise(known) if before[1] != after[1])]
    for row, worker in places if found.workers > 1 else ():
        if row:
            ax.axhline(row - 0.52, color=style.INK, linewidth=0.6, linestyle=":")
        look: dict[str, Any] = {"fontsize": 8, "va": "top", "ha": "right"}
        ax.text(0.995, row - 0.45, f"worker {worker}", transform=ax.get_yaxis_transform(), **look)


def _label_rows(found: Timeline, ax: Axes) -> None:
    """Write beside each row which request it is, or beside one in so many."""
    size = 7 if len(found.order) > 20 else 8
    step = style.label_step(ax, len(found.order), size)
    shown = range(0, len(found.order), step)
    labels = [style.shortened(found.names[found.order[row]], 18) for row in shown]
    # Beside the floor of the bar, so that a flat bar is seen to be of its own row.
    ax.set_yticks([row + _FLOOR for row in shown], labels, fontsize=size, va="baseline")
    ax.tick_params(axis="y", length=0)
    ax.set_ylabel("request" if step == 1 else f"request (one in {step} is labelled)")


def bands(
    what: Drawable, ax: Axes | None = None, kinds: Sequence[str] = ("running", "waiting")
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
    found, ax = what.timeline(), style.axes_of(ax, 3.6)
    spans = {
        "running": [(piece.begin, piece.end) for piece in found.work],
        "waiting": [(begin, end) for _, begin, end in found.waits],
    }
    curves = {
        kinds[-1 - place]: counted(
            (span for kind in kinds[: len(kinds) - place] for span in spans[kind]), found.end
        )
        for place in range(len(kinds))
    }
    stacked(curves, ax)
    ax.set_ylabel(f"{' and '.join(kinds)} requests")
    _time(found, ax)
    return ax


def stacked(curves: Mapping[str, Curve], ax: Axes) -> None:
    """Draw bands down to 0, the highest first: requests that wait, requests that run."""
    highest = 1.0
    for kind, curve in curves.items():
        times, heights = thinned(curve)
        colour = style.RUNNING if kind == "running" else style.WAITING
        ax.fill_between(times, heights, color=colour, lw=0, label=kind)
        highest = max(highest, *heights)
    ax.set_ylim(0, highest * 1.08)
    style.whole_numbers(ax, ax.yaxis, highest)
    style.grid(ax)


def memory_profile(what: Drawable, ax: Axes | None = None, worker: int | None = None) -> Axes:
    """Draw the tokens held at every time, prompts below and produced on top, against M.

    Parameters
    ----------
    what
        A schedule, feasible or not, or a run, with its evicted work; what exceeds the capacity is
        marked.  An instance is drawn as if every request started when it arrives: its demand.
    ax
        Where to draw; a new figure when left out.
    worker
        Of a fleet the worker; what all hold together against the memory of all when left out.
    """
    found, ax = what.timeline(), style.axes_of(ax, 3.6)
    memory = found.memory * (found.workers if worker is None else 1)
    curve = found.held(worker)
    highest = tokens(ax, curve, memory, found.held_prompts(worker))
    if len(curve[0]) and highest:
        values = np.asarray(curve[1], dtype=float)
        at = float(curve[0][int(values.argmax())]) + found.stepped
        said = f"{at:,.0f}" if found.unit == "rounds" else f"{at:,.4g} s"
        look: dict[str, Any] = {"linestyle": "none", "marker": CARETDOWN, "color": style.INK}
        label = f"peak {values.max():,.0f} at time {said}"
        ax.plot([at - found.stepped / 2], [values.max()], label=label, **look)
    _time(found, ax)
    ax.set_xlabel(f"time ({found.unit})")
    ax.set_ylabel("tokens held")
    return ax


def tokens(ax: Axes, held: Curve, memory: int, prompts: Curve = ((), ())) -> float:
    """Draw tokens over time against a capacity; return the most that are held."""
    times, totals = thinned(held)
    ax.fill_between(times, totals, color=style.GROWTH, linewidth=0, label="tokens produced")
    if len(prompts[0]):
        ax.fill_between(*thinned(prompts), color=style.PROMPT, linewidth=0, label="prompt tokens")
    above = np.asarray(totals) > memory
    if above.any():
        look: dict[str, Any] = {"facecolor": "none", "edgecolor": style.CAPACITY, "linewidth": 0}
        look |= {"hatch": "////", "label": "above M", "interpolate": True}
        ax.fill_between(times, memory, totals, where=above, **look)
    ax.plot(times, totals, color=style.INK, linewidth=0.5 if len(times) < _MOST_LINES else 0)
    ax.axhline(memory, color=style.CAPACITY, linestyle="--", linewidth=1.2, label=f"M = {memory:,}")
    most = float(max([0, *totals]))
    ax.set_ylim(0, max(most, memory) * 1.12)
    style.whole_numbers(ax, ax.yaxis, max(most, memory))
    style.grid(ax)
    return most


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
    ax.step(times, [*values, 0.0], where="post", color=style.BOUND, linewidth=1.0)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("time (rounds)")
    ax.set_ylabel("price of a token")
    style.grid(ax)
    return ax


def _time(found: Timeline, ax: Axes) -> None:
    """Show the times of a timeline, with room for the last edge."""
    ax.set_xlim(found.begin, found.end + (found.end - found.begin) * 0.01)
    if found.unit == "rounds":
        style.whole_numbers(ax, ax.xaxis, found.end)
