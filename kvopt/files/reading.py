"""Strict JSON: refuse input that the parser would accept silently."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TextIO

from kvopt.errors import InvalidInput, did_you_mean, placed, shown

STANDARD_INPUT = "-"
"""The path that means standard input."""
_GZIP = b"\x1f\x8b"
"""The first bytes of every gzip file."""


def name_of(path: str | Path) -> str:
    """Return the name of a file for messages."""
    return "<stdin>" if is_standard_input(path) else str(path)


def is_standard_input(path: str | Path) -> bool:
    """Whether a path means standard input."""
    return str(path) == STANDARD_INPUT


@contextmanager
def open_text(
    path: str | Path, errors: str | None = None, newline: str | None = None
) -> Iterator[TextIO]:
    """Open UTF-8 text: a file, gzip or not, or standard input.

    A byte order mark is dropped; an error is reported in one line.

    Parameters
    ----------
    path
        The file; ``-`` is standard input.
    errors, newline
        As for `open`.
    """
    with blamed_on(path):
        try:
            piped = io.BytesIO(sys.stdin.buffer.read()) if is_standard_input(path) else None
            with io.BufferedReader(piped) if piped else Path(path).open("rb") as raw:
                plain = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == _GZIP else raw
                with io.TextIOWrapper(plain, "utf-8-sig", errors, newline) as file:
                    yield file
        except InvalidInput:
            raise
        except UnicodeDecodeError as error:
            raise InvalidInput(f"is not UTF-8 text (byte {error.start})") from None
        except (OSError, ValueError, EOFError, zlib.error) as error:  # ValueError: not a file name
            reason = getattr(error, "strerror", None) or error
            raise InvalidInput(f"cannot be read: {reason}") from None


def blamed_on(path: str | Path) -> AbstractContextManager[None]:
    """Add a file name to the errors that the block raises."""
    return placed(file=name_of(path))


def read_text(path: str | Path) -> str:
    """Return all that `open_text` reads."""
    with open_text(path) as file:
        text = file.read()
    if not text and is_standard_input(path):
        raise InvalidInput("holds nothing; it can be read once only", file=name_of(path))
    return text


def parse_json(text: str) -> Any:
    """Parse JSON; duplicate keys and endless nesting are refused.

    ``NaN``, ``Infinity`` and integers of thousands of digits become floats here, so that the
    field check can name their place.
    """
    try:
        try:
            return json.loads(text, object_pairs_hook=_without_duplicates)
        except json.JSONDecodeError:
            raise
        except ValueError:  # of an integer; a test up front would take half as long again
            return json.loads(text, object_pairs_hook=_without_duplicates, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"is not JSON: {error.msg} (line {error.lineno})") from None
    except RecursionError:
        raise InvalidInput("is nested too deeply") from None


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # Python refuses thousands of digits
        return float(digits)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else _Doubled(pairs)


class _Doubled(dict[str, Any]):
    """An object with a repeated key; it is refused where its place is known."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs)
        self.twice = next(key for key, count in counts.items() if count > 1)


def check_fields(
    value: object,
    what: str,
    needed: Collection[str],
    optional: Collection[str] = (),
    schema: str | None = None,
    inside: str = "",
) -> dict[str, Any]:
    """Return ``value`` if it is an object with the right schema and fields, else raise.

    The error names the field at fault, after ``inside`` if that field is within another one.
    """
    if schema is not None and isinstance(value, dict):
        check_schema(value, schema)  # first: another schema explains every other difference
    if not isinstance(value, dict):
        raise InvalidInput(f"must be an object, got {shown(value)}", field=what)
    if isinstance(value, _Doubled):
        raise InvalidInput("is given twice", field=inside + value.twice)
    if len(value) != len(needed) or any(field not in value for field in needed):
        for field in value:  # first: it may be a missing one under another name
            if field not in needed and field not in optional:
                reason = "is not a known field" + did_you_mean(field, [*needed, *optional])
                raise InvalidInput(reason, field=inside + field)
        for field in needed:
            if field not in value:
                raise InvalidInput("is missing", field=inside + field)
    return value


def check_schema(value: dict[str, Any], schema: str) -> None:
    """Refuse a file that does not carry exactly this schema name and number."""
    if value.get("schema") != schema:
        reason = f"must be {schema!r}, got {shown(value.get('schema'))}"
        raise InvalidInput(reason, field="schema")


def without_nulls(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the members that are None."""
    return {name: value for name, value in members.items() if value is not None}


def semicolons(header: Sequence[str]) -> str:
    """Return a hint for files whose columns are separated by semicolons."""
    return "; separate columns by commas, not semicolons" if ";" in "".join(header) else ""
