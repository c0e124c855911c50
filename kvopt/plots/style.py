"""How figures look, and how they get into files.

Colours are told apart without colour vision, and readable in grey.
"""

from __future__ import annotations

import warnings
from io import BytesIO
from pathlib import Path
from typing import Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from kvopt.errors import InvalidInput, one_line
from kvopt.files.atomic import atomic_path

PROMPT = "#4477aa"
"""Tokens of the prompt: dark."""

GROWTH = "#eeb866"
"""Tokens produced so far: light."""

RUNNING = "#7fb8ad"
"""Requests that run: between the other two in brightness."""

WAITING = "#9a9a9a"
CAPACITY = "#aa3344"
EXCESS = "#aa334466"
EDGE = "#333333"
GRID = "#dddddd"

WIDTH = 10.0
"""Inches."""

CROWDED = 150
"""Rows beyond which outlines are left out, and whole figures draw bands in place of rows."""

TALLEST = 13.0
"""Inches of height that rows share when there are many."""

_LINE_SPACING = 1.1
"""Distance of two labels, in font sizes, at which they are still apart."""

_CHARACTER = 0.085
"""Inches that a digit of a tick label takes."""

_BOXES = "Glyph .* missing from"
"""A name in a script that the font lacks is drawn as boxes: no reason to be loud."""

_UNDATED: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Suffixes, and the metadata of each that would differ from run to run."""


class Picture(Figure):
    """A figure that pyplot knows nothing of, and that a notebook shows by itself."""

    def _repr_png_(self) -> bytes:
        """Return what a notebook shows."""
        stream = BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=_BOXES, category=UserWarning)
            self.savefig(stream, format="png", dpi=90, metadata=_UNDATED[".png"])
        return stream.getvalue()


def new_figure(height: float) -> Figure:
    """Return an empty figure."""
    return Picture(figsize=(WIDTH, height), layout="constrained")


def axes_of(ax: Axes | None, height: float) -> Axes:
    """Return where to draw: in what was given, or in a new figure."""
    return new_figure(height).subplots() if ax is None else ax


def row_height(rows: int) -> float:
    """Return the inches of a row: roomy for a few requests, just readable for many."""
    roomy = 0.42 if rows <= 12 else 0.26 if rows <= 30 else 0.15
    return min(roomy, TALLEST / max(rows, 1))


def band(rows: int) -> float:
    """Return the rows that the largest peak fills; bars of a crowded picture overlap."""
    return 0.86 if rows <= CROWDED else 2.5


def label_step(ax: Axes, rows: int, size: float) -> int:
    """Return n such that labels on every n-th row do not touch: 1, 2, 5, 10, 20, ..."""
    points = ax.get_window_extent().height / ax.figure.dpi * 72
    room = max(1.0, points / (_LINE_SPACING * size))
    power = 1
    while power * 10 * room < rows:
        power *= 10
    return next(step * power for step in (1, 2, 5, 10) if step * power * room >= rows)


def whole_numbers(ax: Axes, axis: Axis, largest: float) -> None:
    """Put ticks at round integers, few enough for their labels to stay apart."""
    box = ax.get_window_extent()
    if axis is ax.xaxis:
        room = box.width / ax.figure.dpi / (_CHARACTER * (len(f"{largest:,.0f}") + 3))
    else:
        room = box.height / ax.figure.dpi / (4 * _CHARACTER)
    most = max(2, min(9, int(room)))
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def time_axis(ax: Axes, left: int, right: int) -> None:
    """Show the times from ``left`` to ``right``, with room for the last edge."""
    ax.set_xlim(left, right + (right - left) * 0.01)
    whole_numbers(ax, ax.xaxis, right)


def grid(ax: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Draw thin lines behind everything else."""
    ax.grid(axis=axis, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)


def shortened(text: str, most: int) -> str:
    """Return text on one line; of a long one the beginning and the end."""
    text = one_line(text)
    tail = most // 2
    return text if len(text) <= most else f"{text[: most - tail - 1]}…{text[-tail:]}"


def refuse_unknown_suffix(path: str | Path) -> None:
    """Raise unless the name ends in a format that can be written."""
    if Path(path).suffix.lower() not in _UNDATED:
        raise InvalidInput(f"must end in {', '.join(_UNDATED)}", field="picture", file=str(path))


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as png, svg or pdf, whole or not at all.

    The same schedule gives the same bytes, as long as matplotlib stays the same.

    Parameters
    ----------
    figure, path
        The figure, and the file, whose suffix chooses the format.

    Raises
    ------
    InvalidInput
        When the suffix is another one, or the file cannot be written.
    """
    refuse_unknown_suffix(path)
    suffix = Path(path).suffix.lower()
    with atomic_path(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_BOXES, category=UserWarning)
        with matplotlib.rc_context({"svg.hashsalt": "kvopt"}):
            figure.savefig(temporary, format=suffix[1:], dpi=150, metadata=_UNDATED[suffix])
