"""Print JSON, and tables that fit the terminal without cutting a name or a number.

On a terminal that is too narrow, prose is wrapped, then the least important columns are
dropped, and if that is not enough every row becomes a block of lines.  A table in a file or a pipe
has its full width.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from kvopt.cli.messages import is_json
from kvopt.errors import one_line

_ANY_WIDTH = 1_000_000

_NUMBER = re.compile(r"\d|-$")
"""Pattern of the begin of each cell in a column of numbers."""

_LEAST_PROSE = 16
"""Narrower prose is a column of single words, hard to read: other columns are dropped first."""


def show(value: Mapping[str, Any], lines: Iterable[str] = ()) -> None:
    """Print one JSON object on standard output if ``--json`` asks for it, else lines."""
    if is_json():
        lines = [json.dumps(value, ensure_ascii=False, allow_nan=False)]
    for line in lines:
        print(line)


def or_dash(value: object) -> str:
    """Return a cell; an unknown value is a dash, never 0."""
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def table(
    rows: Sequence[Mapping[str, object]],
    prose: Collection[str] = (),
    optional: Sequence[str] = (),
) -> list[str]:
    """Return the lines of a table, none without rows; numbers are aligned to the right.

    Cells of the columns ``prose`` may be wrapped between words.  A narrow terminal may drop the
    columns ``optional``, the least important first.
    """
    if not rows:
        return []
    width = _terminal_width()
    console = Console(width=width, highlight=False)
    for count in range(len(optional) + 1):
        left_out = [name for name in optional[:count] if name in rows[0]]
        made = _table([name for name in rows[0] if name not in left_out], rows, prose)
        wide = console.options.update(max_width=_ANY_WIDTH)
        if Measurement.get(console, wide, made).minimum <= width:
            break
    else:
        return ["\n\n".join(_block(row, width) for row in rows)]
    with console.capture() as printed:
        console.print(made)
    text = f"left out: {', '.join(left_out)} (a wider terminal or --json has them)"
    return [
        *map(str.rstrip, printed.get().splitlines()),
        *([fill(text, width)] if left_out else []),
    ]


def _table(
    names: Sequence[str], rows: Sequence[Mapping[str, object]], prose: Collection[str]
) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    columns = [[_cell(row[name]) for row in rows] for name in names]
    for name, cells in zip(names, columns, strict=True):
        is_prose = name in prose
        whole = max(map(cell_len, (name, *cells)))
        table.add_column(
            Text(name),
            justify="right" if all(map(_NUMBER.match, cells)) else "left",
            min_width=min(whole, _LEAST_PROSE) if is_prose else whole,
            no_wrap=not is_prose,
        )
    for row in zip(*columns, strict=True):
        table.add_row(*map(Text, row))
    return table


def _block(row: Mapping[str, object], width: int) -> str:
    """Return a row as lines with a column each; a name or a number is not broken."""
    widest = max(map(len, row)) + 2
    return "\n".join(
        fill(
            _cell(value) or "-",
            max(width, widest + _LEAST_PROSE),
            initial_indent=f"{name + ':':{widest}}",
            subsequent_indent=" " * widest,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name, value in row.items()
    )


def _cell(value: object) -> str:
    """Return a cell; for an object its keys with their values."""
    if isinstance(value, dict):
        value = [key if each is None else f"{key}={each}" for key, each in value.items()]
    return one_line(", ".join(value) if isinstance(value, list) else or_dash(value))


def _terminal_width() -> int:
    """Return the width of the terminal in characters, a very large number without a terminal.

    The environment may tell Rich to treat a pipe as a terminal, with an invented width.
    """
    return Console().width if sys.stdout.isatty() else _ANY_WIDTH
