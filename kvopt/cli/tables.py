"""Tables that fit the terminal without cutting what stands in them.

Names and numbers are never cut.  On a terminal that is too narrow, prose is wrapped, then the
columns that matter least are left out, and where that is not enough every row becomes a block
of lines.  What goes into a file or a pipe is as wide as it needs to be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from textwrap import wrap

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kvopt.cli.messages import PipedConsole
from kvopt.errors import one_line

_BETWEEN = 2
"""Blanks between two columns."""

_LEAST_PROSE = 16
"""Narrower prose is a column of single words, hard to read: rather leave something out."""


@dataclass(frozen=True)
class Column:
    """A name and the cells below it, as plain text; see `new_table`."""

    name: str
    is_number: bool = False
    is_prose: bool = False
    cells: list[str] = field(default_factory=list)

    def widths(self) -> tuple[int, int]:
        """Return the least width that cuts no word, and the one that wraps nothing."""
        whole = max(map(cell_len, (self.name, *self.cells)))
        if not self.is_prose:
            return whole, whole
        words = (word for cell in self.cells for word in cell.split())
        longest = max(map(cell_len, (self.name, *words)))
        return min(whole, max(longest, _LEAST_PROSE)), whole

    def lines(self, text: str, width: int) -> list[str]:
        """Return a cell as lines, of at most a width where it may be wrapped."""
        return (_wrapped(text, width) if self.is_prose else [text]) or [""]

    def padded(self, text: str, width: int) -> str:
        """Return the text with blanks up to a width."""
        blanks = " " * (width - cell_len(text))
        return blanks + text if self.is_number else text + blanks


@dataclass(frozen=True)
class Table:
    """Columns with equally many cells; see `new_table`."""

    columns: tuple[Column, ...]
    optional: tuple[str, ...] = ()

    def add_row(self, *cells: str) -> None:
        """Add a row; cells are markup, so foreign text in them has to be escaped."""
        for column, cell in zip(self.columns, cells, strict=True):
            column.cells.append(one_line(Text.from_markup(cell, emoji=False).plain))

    def widths(self, width: int) -> dict[str, int] | None:
        """Return the width of each column that is shown where a line has so many cells.

        Of the optional columns these are all that fit; None if what may not be left out does
        not fit side by side.
        """
        shown = {column.name for column in self.columns} - {*self.optional}
        for name in reversed(self.optional):
            if self._widths(shown | {name}, width) is not None:
                shown.add(name)
        return self._widths(shown, width)

    def _widths(self, shown: set[str], width: int) -> dict[str, int] | None:
        both = {column.name: column.widths() for column in self.columns if column.name in shown}
        widths = {name: least for name, (least, _) in both.items()}
        free = width - _BETWEEN * (len(both) - 1) - sum(widths.values())
        # What is free goes to the columns that want more, cell by cell.
        while free > 0 and (wanting := [name for name in both if widths[name] < both[name][1]]):
            for name in wanting[:free]:
                widths[name] += 1
                free -= 1
        return None if free < 0 else widths

    def side_by_side(self, widths: dict[str, int]) -> Iterator[str]:
        """Yield the names, then the rows, in columns of these widths."""
        shown = [(each, widths[each.name]) for each in self.columns if each.name in widths]
        for row in zip(*((each.name, *each.cells) for each, _ in shown), strict=True):
            cells = [each.lines(cell, w) for (each, w), cell in zip(shown, row, strict=True)]
            for line in zip_longest(*cells, fillvalue=""):
                texts = [each.padded(text, w) for (each, w), text in zip(shown, line, strict=True)]
                yield (" " * _BETWEEN).join(texts).rstrip()

    def stacked(self, width: int) -> Iterator[str]:
        """Yield every row as a block; only a cell that is wider by itself makes a longer line."""
        names = Column("", cells=[f"{column.name}: " for column in self.columns])
        widest, _ = names.widths()
        for number, row in enumerate(zip(*(column.cells for column in self.columns), strict=True)):
            if number:
                yield ""
            for name, column, cell in zip(names.cells, self.columns, row, strict=True):
                values = column.lines(cell, max(width - widest, _LEAST_PROSE))
                for label, value in zip_longest([name], values, fillvalue=""):
                    yield (names.padded(label, widest) + value).rstrip()


def new_table(*columns: str, prose: Sequence[str] = (), optional: Sequence[str] = ()) -> Table:
    """Return an empty table; columns whose name ends in ``>`` hold numbers.

    Parameters
    ----------
    columns
        The names; numbers are aligned to the right.
    prose
        Those whose cells may be wrapped between words.
    optional
        Those that a narrow terminal need not show, the one that is missed least first.
    """
    made = [Column(name.rstrip(">"), name.endswith(">"), name in prose) for name in columns]
    assert {*prose, *optional} <= {column.name for column in made}, "columns of the table"
    return Table(tuple(made), tuple(optional))


def print_table(table: Table, console: Console | None = None) -> None:
    """Print a table on standard output, or as wide as a console that is given."""
    width = console.width if console is not None else _terminal_width()
    console = PipedConsole(emoji=False) if console is None else console
    widths = table.widths(width)
    if widths is None:
        lines = [*table.stacked(width)]
    else:
        lines = [*table.side_by_side(widths)]
        left_out = [column.name for column in table.columns if column.name not in widths]
        if left_out:
            text = f"left out: {', '.join(left_out)} (a wider terminal or --json has them)"
            lines += _wrapped(text, width)
    for number, line in enumerate(lines):
        style = "bold" if widths is not None and number == 0 else ""
        console.print(Text(line, style), soft_wrap=True, highlight=False)


def _wrapped(text: str, width: int) -> list[str]:
    """Return lines of whole words."""
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _terminal_width() -> int:
    """Return how many cells the terminal has in a line, any number if there is none.

    Rich may be told by the environment to take a pipe for a terminal; its width is made up.
    """
    return Console().width if sys.stdout.isatty() else sys.maxsize
