"""Tables that fit the terminal without cutting what stands in them.

Names and numbers are never cut.  On a terminal that is too narrow, prose is wrapped, then the
columns that matter least are left out, and where that is not enough every row becomes a block
of lines.  What goes into a file or a pipe is as wide as it needs to be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kvopt.errors import one_line

_BETWEEN = 2
"""Blanks between two columns."""

_LEAST_PROSE = 16
"""Narrower prose is a column of single words, hard to read: rather leave something out."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name
        What stands above it.
    is_number
        Whether it is aligned to the right.
    is_prose
        Whether its cells may go on in a further line, between two words.
    """

    name: str
    is_number: bool = False
    is_prose: bool = False

    def widths(self, cells: Sequence[str]) -> tuple[int, int]:
        """Return the least width that cuts no word, and the one that wraps nothing."""
        whole = max(map(cell_len, (self.name, *cells)))
        if not self.is_prose:
            return whole, whole
        words = (word for cell in cells for word in cell.split())
        longest = max(map(cell_len, (self.name, *words)))
        return min(whole, max(longest, _LEAST_PROSE)), whole

    def padded(self, text: str, width: int) -> str:
        """Return the text with blanks up to a width."""
        blanks = " " * (width - cell_len(text))
        return blanks + text if self.is_number else text + blanks


@dataclass
class Table:
    """Rows of cells below names; see `new_table`.

    Parameters
    ----------
    columns
        What it has.
    optional
        Names of those that may be left out, the one that is missed least first.
    rows
        Cells as plain text.
    """

    columns: tuple[Column, ...]
    optional: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def add_row(self, *cells: str) -> None:
        """Add a row; cells are markup, so foreign text in them has to be escaped."""
        assert len(cells) == len(self.columns), "a cell for each column"
        self.rows.append(tuple(one_line(Text.from_markup(cell).plain) for cell in cells))

    def lines(self, width: int | None = None) -> list[str]:
        """Return the table as lines of at most ``width`` cells, any number if it is None.

        Only a name that is wider by itself makes a longer line, in a row that is stacked.
        """
        kept = self.kept(width)
        widths = self._widths(kept, width)
        if widths is None:
            assert width is not None, "without a width everything fits"
            return self._stacked(width)
        left_out = [column.name for k, column in enumerate(self.columns) if k not in kept]
        return [*self._grid(kept, widths), *_told(left_out, width)]

    def fits(self, width: int | None) -> bool:
        """Whether what may not be left out fits side by side."""
        return self._widths(self.kept(width), width) is not None

    def kept(self, width: int | None) -> list[int]:
        """Return the places of the columns to show: of the optional ones those that fit."""
        kept = {k for k, column in enumerate(self.columns) if column.name not in self.optional}
        for name in reversed(self.optional):
            more = kept | {k for k, column in enumerate(self.columns) if column.name == name}
            if self._widths(sorted(more), width) is not None:
                kept = more
        return sorted(kept)

    def _cells(self, place: int) -> list[str]:
        return [row[place] for row in self.rows]

    def _widths(self, kept: Sequence[int], width: int | None) -> list[int] | None:
        """Return the width of each of the columns, None if they do not fit side by side."""
        both = [self.columns[place].widths(self._cells(place)) for place in kept]
        if width is None:
            return [whole for _, whole in both]
        free = width - _BETWEEN * (len(kept) - 1) - sum(least for least, _ in both)
        return None if free < 0 else _shared_out(both, free)

    def _grid(self, kept: Sequence[int], widths: Sequence[int]) -> Iterator[str]:
        columns = [self.columns[place] for place in kept]
        yield _side_by_side(columns, [column.name for column in columns], widths)
        for row in self.rows:
            cells = [
                (wrap_prose(row[place], width) if column.is_prose else [row[place]]) or [""]
                for place, column, width in zip(kept, columns, widths, strict=True)
            ]
            for number in range(max(map(len, cells))):
                line = [cell[number] if number < len(cell) else "" for cell in cells]
                yield _side_by_side(columns, line, widths)

    def _stacked(self, width: int) -> list[str]:
        names = [f"{column.name}: " for column in self.columns]
        widest = max(map(cell_len, names))
        lines: list[str] = []
        for row in self.rows:
            lines += [""] if lines else []
            for name, column, cell in zip(names, self.columns, row, strict=True):
                room = max(width - widest, _LEAST_PROSE)
                values = (wrap_prose(cell, room) if column.is_prose else [cell]) or [""]
                labels = [name, *[""] * (len(values) - 1)]
                lines += [
                    f"{label}{' ' * (widest - cell_len(label))}{value}".rstrip()
                    for label, value in zip(labels, values, strict=True)
                ]
        return lines


def _shared_out(both: Sequence[tuple[int, int]], free: int) -> list[int]:
    """Return the least widths, with what is free given to those that want more, cell by cell."""
    widths = [least for least, _ in both]
    wanting = [place for place, (least, whole) in enumerate(both) if least < whole]
    while free and wanting:
        for place in wanting[:free]:
            widths[place] += 1
            free -= 1
        wanting = [place for place in wanting if widths[place] < both[place][1]]
    return widths


def _side_by_side(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    triples = zip(columns, cells, widths, strict=True)
    padded = [column.padded(cell, width) for column, cell, width in triples]
    return (" " * _BETWEEN).join(padded).rstrip()


def wrap_prose(text: str, width: int) -> list[str]:
    """Return lines of whole words."""
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _told(left_out: Sequence[str], width: int | None) -> list[str]:
    if not left_out:
        return []
    text = f"left out: {', '.join(left_out)} (a wider terminal or --json has them)"
    return [text] if width is None else wrap_prose(text, width)


def new_table(*columns: str, prose: Sequence[str] = (), optional: Sequence[str] = ()) -> Table:
    """Return an empty table; columns whose name ends in ``>`` hold numbers.

    Parameters
    ----------
    columns
        The names.
    prose
        Those whose cells may be wrapped between words.
    optional
        Those that a narrow terminal need not show, the one that is missed least first.
    """
    names = [column.rstrip(">") for column in columns]
    assert {*prose, *optional} <= {*names}, "columns of the table"
    made = (
        Column(name, given.endswith(">"), name in prose)
        for name, given in zip(names, columns, strict=True)
    )
    return Table(tuple(made), tuple(optional))


def print_table(table: Table, console: Console | None = None) -> None:
    """Print a table on standard output, or as wide as a console that is given."""
    width = console.width if console is not None else _terminal_width()
    console = Console() if console is None else console
    has_heading = table.fits(width)
    for number, line in enumerate(table.lines(width)):
        text = Text(line, style="bold" if has_heading and not number else "")
        console.print(text, soft_wrap=True, highlight=False)


def _terminal_width() -> int | None:
    """Return how many cells the terminal has in a line, None if there is none.

    Rich may be told by the environment to take a pipe for a terminal; its width is made up.
    """
    return Console().width if sys.stdout.isatty() else None
