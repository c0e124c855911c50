"""Formulas as lines and simulations as dots, on shared axes."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes

from kvopt.plots import style

if TYPE_CHECKING:
    from kvopt.experiments.theory.examination import Examination

COLOURS = ("#4477aa", "#aa3344", "#228833", "#b8860b", "#66317e")
_DASHES = ("-", "--", ":", "-.", (0, (6, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v")


def theory_curves(examination: Examination, ax: Axes | None = None) -> Axes:
    """Draw the curves of an examination: lines are formulas, dots are simulated.

    Parameters
    ----------
    examination
        What `kvopt.experiments.theory.examine` returned.
    ax
        Where to draw; a new figure when left out.

    Returns
    -------
    Axes
        Where it was drawn, with a legend.
    """
    ax = style.axes_of(ax, 5.6)
    kinds = [curve.kind for curve in examination.curves]
    # Where each formula has its simulation, the two share a colour.
    shift = 0 if kinds.count("formula") == kinds.count("simulation") else 3
    places = {"formula": count(), "simulation": count(shift)}
    for curve in filter(lambda curve: curve.x, examination.curves):
        place = next(places[curve.kind])
        look: dict[str, Any] = {"color": COLOURS[place % 5], "label": curve.label}
        if curve.kind == "formula":
            ax.plot(curve.x, curve.y, linestyle=_DASHES[place % 5], **look)
        else:
            marker = MARKERS[(place - shift) % 5]
            ax.plot(curve.x, curve.y, marker, markersize=5, markerfacecolor="none", **look)
    if "x" in examination.logarithmic:
        ax.set_xscale("log")
    if "y" in examination.logarithmic:
        ax.set_yscale("log")
    ax.set_title(examination.title, fontsize=10)
    ax.set_xlabel(examination.x_label)
    ax.set_ylabel(examination.y_label)
    if ax.get_lines():
        ax.legend(frameon=False, fontsize=8)
    style.grid(ax)
    return ax
