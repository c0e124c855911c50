"""Formulas as lines and simulations as dots, on shared axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from kvopt.plots import style

if TYPE_CHECKING:
    from kvopt.experiments.theory.examination import Examination

_COLOURS = ("#4477aa", "#aa3344", "#228833", "#b8860b", "#66317e")
_DASHES = ("-", "--", ":", "-.", (0, (6, 2, 1, 2)))
_MARKERS = ("o", "s", "^", "D", "v")


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
    ax = style.new_figure(5.6).subplots() if ax is None else ax
    formulas = simulations = 0
    # Where each formula has its simulation, the two share a colour.
    kinds = [curve.kind for curve in examination.curves]
    shift = 0 if kinds.count("formula") == kinds.count("simulation") else 3
    for curve in examination.curves:
        if not curve.x:
            continue
        if curve.kind == "formula":
            colour, dash = _COLOURS[formulas % 5], _DASHES[formulas % 5]
            ax.plot(curve.x, curve.y, color=colour, linestyle=dash, label=curve.label)
            formulas += 1
        else:
            ax.plot(
                curve.x,
                curve.y,
                linestyle="none",
                marker=_MARKERS[simulations % 5],
                markersize=5,
                markerfacecolor="none",
                color=_COLOURS[(simulations + shift) % 5],
                label=curve.label,
            )
            simulations += 1
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
