"""The rows of a trace file, one at a time: a request, or a reason to skip it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from kvopt.errors import InvalidInput, shown
from kvopt.files.reading import blamed_on, open_text
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.prefixes import Block

_LONGEST_COUNT = 18
"""Limit of the digits of a count of tokens."""
_STAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:[.,](\d+))? ?(Z|UTC|[+-]\d{2}:?\d{2})?", re.ASCII
)
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d*)?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_OTHER_NAMES = {
    "input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "created_at": "created",
}  # fmt: skip
"""Names of OpenAI's newer interface, with those of the older one."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Row(NamedTuple):
    """A request of a trace; ``time`` in nanoseconds or, for a trace in rounds, in rounds.

    ``cached`` tokens of its prompt were in a cache; it begins with the blocks of ``prefix``.
    ``e2e`` is the limit of the time to its last token, in the same unit.
    """

    time: int
    prompt: int
    output: int
    cached: int = 0
    prefix: tuple[Block, ...] = ()
    e2e: int | None = None


class Unread(NamedTuple):
    """A line without a request, and the reason."""

    reason: str


Line = tuple[int, Row | Unread]
"""A line number and the content of the line."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the fields of a format.

    Parameters
    ----------
    prompt, output
        Names of the token counts.
    time
        Name of the arrival, None for a trace without.
    unit
        Nanoseconds of a plain number in it; 0 if it counts rounds.
    cached
        Name of the prompt tokens that were in the cache, None without such a column.
    blocks, block_tokens
        Name of the ids of the blocks of a prompt, and the tokens of a block.
    session
        Name of the id of a session; a later prompt begins with the earlier ones.
    system, system_tokens
        Names of the ids of system prompts, and of their lengths.
    e2e, e2e_unit
        Name of the limit of the time to the last token, and its unit, as for ``time``.
    where
        Rows to read: names of fields, each with the texts that it may hold.
    """

    prompt: str
    output: str
    time: str | None = None
    unit: int = NANOSECONDS
    cached: str | None = None
    blocks: str | None = None
    block_tokens: int = 16
    session: str | None = None
    system: str | None = None
    system_tokens: str | None = None
    e2e: str | None = None
    e2e_unit: int = NANOSECONDS
    where: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Fields that a row must have, in the order of the parameters."""
        return [name for name in (self.prompt, self.output, self.time) if name is not None]

    @property
    def header(self) -> set[str]:
        """Columns that a header must have."""
        return {*self.names, *self.where, *filter(None, [self.e2e])}


def conditions(where: str | Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the texts that fields may hold, from ``NAME=VALUE`` of each.

    Examples
    --------
    >>> conditions(["model=a", "model=b"]) == {"model": frozenset("ab")}
    True
    """
    texts: dict[str, frozenset[str]] = {}
    for text in [where] if isinstance(where, str) else where:
        name, equals, value = str(text).partition("=")
        if not (equals and name.strip()):
            raise InvalidInput(f"must be COLUMN=VALUE, got {shown(text)}", field="where")
        texts[name.strip()] = texts.get(name.strip(), frozenset()) | {value.strip()}
    return texts


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file, the header first, with the numbers of their lines."""
    with readable(path) as file:
        table = csv.reader(file)
        for cells in table:
            yield table.line_num, cells


def from_rows(rows: Iterator[tuple[int, list[str]]], columns: Columns) -> Iterator[Line]:
    """Yield the entries of the rows of a CSV file, from its header on."""
    header = header_of(rows)
    for name in sorted(columns.header):
        _refuse_unclear(header, name)
    for number, cells in rows:
        yield number, _from_cells(cells, header, columns)


def header_of(rows: Iterator[tuple[int, list[str]]]) -> list[str]:
    """Return the names of columns, from the first row."""
    _, header = next(rows, (0, []))
    return [name.strip() for name in header]


def read_json_lines(path: Path, columns: Columns) -> Iterator[Line]:
    """Yield the lines of a file that has a JSON object on each."""
    with readable(path) as file:
        for number, line in enumerate(file, 1):
            yield number, _from_line(line, columns)


@contextmanager
def readable(path: Path) -> Iterator[TextIO]:
    """Open a file; bytes that are not text spoil only their own field."""
    with blamed_on(path):
        try:
            with open_text(path, "replace", "") as file:
                yield file
        except csv.Error as error:
            raise InvalidInput(f"is not a CSV file: {error}") from None


def _refuse_unclear(header: list[str], name: str) -> None:
    if header.count(name) != 1:
        listed = shown(",".join(header))
        reason = "is given twice" if name in header else f"is missing, the header is {listed}"
        raise InvalidInput(reason, field=f"column {name!r}")


def _from_cells(cells: list[str], header: list[str], columns: Columns) -> Row | Unread:
    if not any(cell.strip() for cell in cells):
        return Unread("blank line")
    if len(cells) > len(header):  # perhaps a comma inside a number
        return Unread("more fields than the header")
    return _from_fields(dict(zip(header, cells, strict=False)), columns)


def _from_line(line: str, columns: Columns) -> Row | Unread:
    if not line.strip():
        return Unread("blank line")
    try:
        return _from_fields(_flat(json.loads(line)), columns)
    except (ValueError, RecursionError):
        return Unread("not JSON")


def _flat(value: Any) -> dict[str | None, Any]:
    """Return the fields of an object and of the objects in it, by name, without nulls."""
    fields: dict[str | None, Any] = {}
    for name, member in value.items() if isinstance(value, dict) else ():
        if isinstance(member, dict):
            fields |= _flat(member)
        elif member is not None:
            fields[str(_OTHER_NAMES.get(name, name))] = member
    return fields


def _from_fields(fields: Mapping[str | None, Any], columns: Columns) -> Row | Unread:
    for name, wanted in columns.where.items():
        if _text(fields.get(name)) not in wanted:
            return Unread(f"{name} is not {' or '.join(sorted(wanted))} (--where)")
    values = [fields.get(name) for name in columns.names]
    texts = [str(value).strip() for value in values]
    if None in values or not all(texts):
        return Unread("missing field")
    prompt, output = map(_count, texts[:2])
    if prompt is None or output is None:
        return Unread("tokens are not a whole number of at least 0")
    time = texts[2] if columns.time is not None else "0"
    moment = nanoseconds(time, columns.unit) if columns.unit else _count(time)
    if moment is None:
        return Unread("unreadable time")
    e2e = None
    if due := _text(fields.get(columns.e2e)):
        e2e = _duration(due, columns.e2e_unit)
        if e2e is None:
            return Unread("unreadable e2e")
    cached = _count(str(fields.get(columns.cached))) or 0
    return Row(moment, prompt, output, cached, tuple(_prefix(fields, columns, prompt)), e2e)


def _text(value: object) -> str:
    """Return a field as text, as JSON has it; empty if there is none."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value).strip()


def _duration(text: str, unit: int) -> int | None:
    """Return a limit in nanoseconds or rounds, None if it is none."""
    number = number_in(text)
    return None if number is None or number <= 0 else int(number * (unit or 1))


def _prefix(fields: Mapping[str | None, Any], columns: Columns, prompt: int) -> Iterator[Block]:
    """Yield the ids of the whole blocks of a prompt, which others may share."""
    ids = fields.get(columns.blocks)
    whole, common = prompt // columns.block_tokens, 0
    if isinstance(ids, list) and all(type(block) in (int, str) for block in ids):
        yield from ids[:whole]
    if name := str(fields.get(columns.system) or "").strip():
        tokens = _count(str(fields.get(columns.system_tokens))) or 0
        common = min(whole, tokens // columns.block_tokens)
        yield from (f"system {name}, {place}" for place in range(common))
    if session := str(fields.get(columns.session) or "").strip():
        head = f"{session} of {name}" if name else session
        yield from (f"session {head}, {place}" for place in range(common, whole))


def _count(text: str) -> int | None:
    """Return an integer of at least 0; 12.0 counts, for tables that were stored as floats."""
    whole, _, zeros = text.strip().partition(".")
    is_count = whole.isascii() and whole.isdigit() and len(whole) <= _LONGEST_COUNT
    return int(whole) if is_count and not zeros.strip("0") else None


def number_in(text: str) -> Fraction | None:
    """Return the exact number of a text, or None."""
    return Fraction(text) if _NUMBER.fullmatch(text) else None


def nanoseconds(text: str, unit: int = NANOSECONDS) -> int | None:
    """Return a time in nanoseconds, None if the text is not a time.

    A number counts units of so many nanoseconds from the start of the trace or from 1970.  A date
    with a time of day may have any number of decimals; without an offset it is UTC.
    """
    text = text.strip()
    if (number := number_in(text)) is not None:
        return round(number * unit)
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    day, clock, decimals, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day} {clock}{(offset or 'Z').replace('UTC', 'Z')}")
    except ValueError:  # the 31st of February
        return None
    whole = (moment - _EPOCH) // timedelta(seconds=1)
    part = round(Fraction(int(decimals), 10 ** len(decimals)) * NANOSECONDS) if decimals else 0
    return whole * NANOSECONDS + part
