"""How figures look, and how they get into files and pages.

A quantity has one colour everywhere.  Colours are told apart without colour vision, and readable
in grey; schedulers also differ in their markers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from kvopt.errors import InvalidInput, one_line
from kvopt.files.atomic import atomic_path

PALETTE = {
    "ink": ("#1c2128", "#e4e8ec"),
    "grid": ("#dddddd", "#2a323a"),
    "prompt": ("#4477aa", "#6a9fd0"),
    "growth": ("#eeb866", "#d9a14f"),
    "running": ("#7fb8ad", "#55b5a6"),
    "waiting": ("#9a9a9a", "#6b7682"),
    "lost": ("#8a3d74", "#d08abb"),
    "capacity": ("#aa3344", "#ef7d8c"),
    "optimum": ("#c9b8dc", "#5d4c78"),
    "bound": ("#66317e", "#b79ad6"),
    "policy-0": ("#3f6fa1", "#7fb2e5"),
    "policy-1": ("#b03a48", "#f08a97"),
    "policy-2": ("#1f7f33", "#6fce94"),
    "policy-3": ("#96690a", "#e5b95c"),
    "policy-4": ("#0e7c86", "#58c7d1"),
}
"""What has a colour of its own, and that on light and on dark ground."""

(INK, GRID, PROMPT, GROWTH, RUNNING, WAITING, LOST, CAPACITY, OPTIMUM, BOUND) = [
    light for light, _ in PALETTE.values()
][:10]

MARKERS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼"}
"""Markers of schedulers, and the characters that look like them."""
_DASHES = ("-", "--", ":", "-.", (0, (6, 2, 1, 2)))

WIDTH = 10.0
"""Inches."""

CROWDED = 150
"""Requests beyond which bands stand in the place of rows."""

TALLEST = 13.0
"""Inches of height that rows share when there are many."""

_LINE_SPACING = 1.1
"""Distance of two labels, in font sizes, at which they are still apart."""

_CHARACTER = 0.085
"""Inches that a digit of a tick label takes."""

_UNDATED: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Suffixes, and the metadata of each that would differ from run to run."""

Corners = Sequence[tuple[float, float]]


class Picture(Figure):
    """A figure that pyplot knows nothing of, and that a notebook shows by itself."""

    def _repr_png_(self) -> bytes:
        """Return what a notebook shows."""
        stream = BytesIO()
        with quietly():
            self.savefig(stream, format="png", dpi=90, metadata=_UNDATED[".png"])
        return stream.getvalue()


@contextmanager
def quietly(salt: str = "kvopt", **look: Any) -> Iterator[None]:
    """Save figures with the same bytes each time.

    A name in a script that the font lacks is drawn as boxes: no reason to be loud.
    """
    rules: Any = {"svg.hashsalt": salt, **look}
    with warnings.catch_warnings(), matplotlib.rc_context(rules):
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def new_figure(height: float) -> Figure:
    """Return an empty figure."""
    return Picture(figsize=(WIDTH, height), layout="constrained")


def axes_of(ax: Axes | None, height: float) -> Axes:
    """Return where to draw: in what was given, or in a new figure."""
    return new_figure(height).subplots() if ax is None else ax


def figure_of(ax: Axes) -> Figure:
    """Return the figure in which axes are."""
    figure = ax.get_figure(root=True)
    assert figure is not None, "axes that are drawn in are in one"
    return figure


def policy(place: int) -> dict[str, Any]:
    """Return how the scheduler at a place of a list looks; the first 25 differ without colours."""
    turn = place // 5
    return {
        "color": PALETTE[f"policy-{place % 5}"][0],
        "marker": [*MARKERS][(place + turn) % 5],
        "linestyle": _DASHES[turn % 5],
    }


def row_height(rows: int) -> float:
    """Return the inches of a row: roomy for a few requests, just readable for many."""
    roomy = 0.42 if rows <= 12 else 0.26 if rows <= 30 else 0.15
    return min(roomy, TALLEST / max(rows, 1))


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


def filled(ax: Axes, outlines: Sequence[Corners], colour: str, label: str, **look: Any) -> None:
    """Fill outlines of one kind as a single shape, which keeps files small."""
    if outlines:
        shapes = [Outline([*corners, corners[0]], closed=True) for corners in outlines]
        look = {"linewidth": 0, **look}
        shape = PathPatch(
            Outline.make_compound_path(*shapes), facecolor=colour, label=label, **look
        )
        ax.add_patch(shape)


def grid(ax: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Draw thin lines behind everything else."""
    ax.grid(axis=axis, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)


def shortened(text: str, most: int) -> str:
    """Return text on one line, without mathematics; of a long one the beginning and the end."""
    text = one_line(text)
    tail = most // 2
    text = text if len(text) <= most else f"{text[: most - tail - 1]}…{text[-tail:]}"
    return text.replace("$", r"\$")


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
    with atomic_path(path) as temporary, quietly():
        figure.savefig(temporary, format=suffix[1:], dpi=150, metadata=_UNDATED[suffix])
