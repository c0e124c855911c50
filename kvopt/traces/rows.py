"""The rows of a trace file, one at a time: a request, or why it is none."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from kvopt.errors import InvalidInput, shown
from kvopt.traces.times import NANOSECONDS, nanoseconds

_MILLISECOND = NANOSECONDS // 1000
_LONGEST_COUNT = 18


class Row(NamedTuple):
    """A request of a trace; ``time`` in nanoseconds or, of a trace in rounds, in rounds."""

    time: int
    prompt: int
    output: int


class Unread(NamedTuple):
    """A line that is no request, and why."""

    reason: str


Found = tuple[int, Row | Unread]
"""A line number and what is there."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Where a format has its fields.

    Parameters
    ----------
    prompt, output
        Names of the token counts.
    time
        Name of the arrival, None for a trace without.
    unit
        Nanoseconds of a plain number in it; 0 where it counts rounds.
    """

    prompt: str
    output: str
    time: str | None = None
    unit: int = NANOSECONDS


AZURE = Columns("ContextTokens", "GeneratedTokens", "TIMESTAMP")
LENGTHS = Columns("num_prefill_tokens", "num_decode_tokens")
MOONCAKE = Columns("input_length", "output_length", "timestamp", _MILLISECOND)


def read_csv(path: Path, columns: Columns) -> Iterator[Found]:
    """Yield the lines of a CSV file with a header."""
    with readable(path) as file:
        table = csv.reader(file)
        header = [name.strip() for name in next(table, [])]
        names = (columns.prompt, columns.output, columns.time)
        places = [_place(header, name) for name in names if name is not None]
        for cells in table:
            yield table.line_num, _from_cells(cells, places, columns)


def header_of(path: Path) -> list[str]:
    """Return the names of the columns of a CSV file."""
    with readable(path) as file:
        return [name.strip() for name in next(csv.reader(file), [])]


def read_json_lines(path: Path, columns: Columns) -> Iterator[Found]:
    """Yield the lines of a file that has a JSON object on each."""
    with readable(path) as file:
        for number, line in enumerate(file, 1):
            yield number, _from_object(line, columns)


@contextmanager
def readable(path: Path) -> Iterator[TextIO]:
    """Open a file; bytes that are no text spoil the field that they are in and no other."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            yield file
    except InvalidInput as error:
        raise error.located(file=str(path)) from None
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", file=str(path)) from None
    except ValueError as error:  # no file can have this name
        raise InvalidInput(f"cannot be read: {error}", file=str(path)) from None
    except csv.Error as error:
        raise InvalidInput(f"is not a CSV file: {error}", file=str(path)) from None


def _place(header: list[str], name: str) -> int:
    if header.count(name) != 1:
        found = shown(",".join(header))
        reason = "is given twice" if name in header else f"is missing, the header is {found}"
        raise InvalidInput(reason, field=f"column {name!r}")
    return header.index(name)


def _from_cells(cells: list[str], places: list[int], columns: Columns) -> Row | Unread:
    if not any(cell.strip() for cell in cells):
        return Unread("blank line")
    if len(cells) <= max(places):
        return Unread("missing field")
    prompt, output = cells[places[0]], cells[places[1]]
    return _row(prompt, output, cells[places[2]] if columns.time else "0", columns)


def _from_object(line: str, columns: Columns) -> Row | Unread:
    if not line.strip():
        return Unread("blank line")
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return Unread("not JSON")
    names = [columns.prompt, columns.output, *([columns.time] if columns.time else [])]
    if not isinstance(value, dict) or any(value.get(name) is None for name in names):
        return Unread("missing field")
    texts = [value[name] if isinstance(value[name], str) else repr(value[name]) for name in names]
    return _row(texts[0], texts[1], texts[2] if columns.time else "0", columns)


def _row(prompt: str, output: str, time: str, columns: Columns) -> Row | Unread:
    if not (prompt.strip() and output.strip() and time.strip()):
        return Unread("missing field")
    tokens = _count(prompt), _count(output)
    if tokens[0] is None or tokens[1] is None:
        return Unread("tokens are not a whole number of at least 0")
    moment = nanoseconds(time, columns.unit) if columns.unit else _count(time)
    if moment is None:
        return Unread("unreadable time")
    return Row(moment, tokens[0], tokens[1])


def _count(text: str) -> int | None:
    """Return an integer of at least 0; 12.0 is one, for tables that passed through floats."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text) if len(text) <= _LONGEST_COUNT else None
    whole, point, zeros = text.partition(".")
    if point and whole.isascii() and whole.isdigit() and not zeros.strip("0"):
        return int(whole) if len(whole) <= _LONGEST_COUNT else None
    return None
