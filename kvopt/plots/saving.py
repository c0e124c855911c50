"""How a figure gets into a file."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from kvopt.errors import InvalidInput
from kvopt.files.atomic import atomic_path

_UNDATED: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Suffixes, and the metadata of each that would differ from run to run."""


def refuse_unknown_suffix(path: str | Path) -> None:
    """Raise unless the name ends in a format that can be written."""
    if Path(path).suffix.lower() not in _UNDATED:
        raise InvalidInput(f"must end in {', '.join(_UNDATED)}", field="picture", file=str(path))


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as png, svg or pdf, whole or not at all.

    The same schedule gives the same bytes, as long as matplotlib stays the same.

    Parameters
    ----------
    figure
        The figure.
    path
        The file; its suffix chooses the format.

    Raises
    ------
    InvalidInput
        When the suffix is another one, or the file cannot be written.
    """
    refuse_unknown_suffix(path)
    suffix = Path(path).suffix.lower()
    with atomic_path(path) as temporary, warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes: no reason to be loud.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        with matplotlib.rc_context({"svg.hashsalt": "kvopt"}):
            figure.savefig(temporary, format=suffix[1:], dpi=150, metadata=_UNDATED[suffix])
