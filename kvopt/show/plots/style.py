"""Style of figures, and writing them to files.

A quantity has one colour everywhere.  Colours are distinct without colour vision, and readable
in grey; schedulers also differ in their markers.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from kvopt.errors import InvalidInput, one_line
from kvopt.files.atomic import atomic_path

_FOLDER = Path(__file__).parent

PALETTE: dict[str, tuple[str, str]] = tomllib.loads((_FOLDER / "palette.toml").read_text())
"""Quantities with a colour of their own, on light and on dark ground."""

(INK, GRID, PROMPT, GROWTH, RUNNING, WAITING, LOST, CAPACITY, OPTIMUM, BOUND) = [
    light for light, _ in PALETTE.values()
][:10]

MARKERS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼"}
"""Markers of schedulers, and similar characters."""
_DASHES = ("-", "--", ":", "-.", (0, (6, 2, 1, 2)))

WIDTH = 10.0
"""Inches."""

CROWDED = 150
"""Beyond so many requests bands replace rows."""

TALLEST = 13.0
"""Inches of height that many rows share."""

_LINE_SPACING = 1.1
"""Shortest distance of two labels, in font sizes."""

_CHARACTER = 0.085
"""Width of a digit of a tick label, in inches."""

_UNDATED: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Suffixes, and the metadata of each that differs from run to run."""


def rules(name: str) -> Any:
    """Return the settings of matplotlib in a style sheet of this folder."""
    path = _FOLDER / f"{name}.mplstyle"
    return matplotlib.rc_params_from_file(path, use_default_template=False)


class Picture(Figure):
    """A figure in the style of kvopt, which a notebook shows without pyplot."""

    look: ClassVar[Any] = rules("figure")

    def add_subplot(self, *place: Any, **options: Any) -> Any:
        """Add axes in the style of all pictures."""
        with matplotlib.rc_context(self.look):
            return super().add_subplot(*place, **options)

    def _repr_png_(self) -> bytes:
        """Return the picture for a notebook."""
        stream = BytesIO()
        with quietly():
            self.savefig(stream, format="png", dpi=90, metadata=_UNDATED[".png"])
        return stream.getvalue()


@contextmanager
def quietly(salt: str = "kvopt", **look: Any) -> Iterator[None]:
    """Save figures with the same bytes each time.

    A name in a script that the font lacks is drawn as boxes, without a warning.
    """
    rules: Any = {"svg.hashsalt": salt, **look}
    with warnings.catch_warnings(), matplotlib.rc_context(rules):
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def new_figure(height: float) -> Figure:
    """Return an empty figure."""
    return Picture(figsize=(WIDTH, height), layout="constrained")


def axes_of(ax: Axes | None, height: float) -> Axes:
    """Return the given axes, or those of a new figure."""
    return new_figure(height).subplots() if ax is None else ax


def figure_of(ax: Axes) -> Figure:
    """Return the figure in which axes are."""
    figure = ax.get_figure(root=True)
    assert figure is not None, "axes that are drawn in are in one"
    return figure


def policy(place: int) -> dict[str, Any]:
    """Return the look of the scheduler at a place of a list; 25 differ without colours."""
    turn = place // 5
    return {
        "color": PALETTE[f"policy-{place % 5}"][0],
        "marker": [*MARKERS][(place + turn) % 5],
        "linestyle": _DASHES[turn % 5],
    }


def row_height(rows: int) -> float:
    """Return the height of a row in inches: large for few requests, just readable for many."""
    roomy = 0.42 if rows <= 12 else 0.26 if rows <= 30 else 0.15
    return min(roomy, TALLEST / max(rows, 1))


def label_step(ax: Axes, rows: int, size: float) -> int:
    """Return n such that labels on every n-th row do not touch: 1, 2, 5, 10, 20, ..."""
    points = ax.get_window_extent().height / ax.figure.dpi * 72
    room = max(1.0, points / (_LINE_SPACING * size))
    steps = (int(step + "0" * zeros) for zeros in count() for step in "125")
    return next(step for step in steps if step * room >= rows)


def whole_numbers(axis: Axis, largest: float) -> None:
    """Set ticks at round integers, few enough for their labels not to touch."""
    box, is_flat = axis.axes.get_window_extent(), axis is axis.axes.xaxis
    inches = (box.width if is_flat else box.height) / axis.axes.figure.dpi
    label = _CHARACTER * (len(f"{largest:,.0f}") + 3 if is_flat else 4)
    count = max(2, min(9, int(inches / label)))
    axis.set_major_locator(MaxNLocator(count, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def shortened(text: str, limit: int) -> str:
    """Return text on one line, without mathematics; for a long one the beginning and the end."""
    text = one_line(text)
    tail = limit // 2
    text = text if len(text) <= limit else f"{text[: limit - tail - 1]}…{text[-tail:]}"
    return text.replace("$", r"\$")


def note(ax: Axes, x: float, y: float, words: str, **look: Any) -> None:
    """Write small words at a share of the width, and at a height of the data."""
    ax.text(x, y, shortened(words, 48), fontsize=8, transform=ax.get_yaxis_transform(), **look)


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
