"""The panels of an instance: shapes of requests, and when they come."""

from __future__ import annotations

from collections import Counter

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from kvopt.plots import style
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request


def shapes(instance: Instance, ax: Axes) -> None:
    """Scatter prompt against output; the area of a dot counts the requests of its shape."""
    shared = Counter(request.shape for request in instance)
    most = max(shared.values(), default=1)
    ax.scatter(
        [prompt for prompt, _ in shared],
        [output for _, output in shared],
        s=[16 + 200 * (times - 1) / max(most, 10) for times in shared.values()],
        color=style.PROMPT,
        alpha=0.8 if len(shared) <= 200 else 0.35,
        linewidths=0,
        zorder=3,
    )
    ax.set_xlabel("prompt tokens")
    ax.set_ylabel("output tokens")
    alike = f", dot area: how many are alike (at most {most:,})" if most > 1 else ""
    ax.set_title("shapes" + alike, fontsize=9)
    _from_zero(ax, max((p for p, _ in shared), default=1), max((o for _, o in shared), default=1))


def lengths(instance: Instance, ax: Axes) -> None:
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
    _dots(requests, places, ax)
    ax.set_xlabel("arrival (round)" if instance.last_arrival else "requests by volume")
    ax.set_ylabel("tokens")
    ax.set_title("prompt and output, dot area: volume", fontsize=9)
    _from_zero(ax, max(places, default=1), max((r.peak for r in requests), default=1))


def _dots(requests: list[Request], places: list[int], ax: Axes) -> None:
    largest = max((request.volume for request in requests), default=1)
    area = max(3.0, min(40.0, 4_000 / max(len(requests), 1)))
    ax.scatter(
        places,
        [request.peak for request in requests],
        s=[1 + area * request.volume / largest for request in requests],
        color=style.EDGE,
        linewidths=0,
        zorder=3,
    )


def _from_zero(ax: Axes, right: int, top: int) -> None:
    ax.set_xlim(-0.03 * max(right, 1), 1.05 * max(right, 1))
    ax.set_ylim(0, 1.08 * max(top, 1))
    style.whole_numbers(ax, ax.xaxis, right)
    style.whole_numbers(ax, ax.yaxis, top)
    style.grid(ax)
