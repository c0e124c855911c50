"""What a token is worth at every time: the prices that prove a lower bound."""

from __future__ import annotations

from matplotlib.axes import Axes

from kvopt.plots import style
from kvopt.search.proofs import Prices

_MOST_POINTS = 5_000
"""Points beyond which a curve only gets heavier."""


def price_curve(prices: Prices, ax: Axes | None = None) -> Axes:
    """Draw the price of a token over time, in rounds of latency.

    Parameters
    ----------
    prices
        The prices; beyond the last one they are 0.
    ax
        Where to draw; a new figure when left out.
    """
    ax = style.new_figure(2.4).subplots() if ax is None else ax
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
