"""Tables of a TOML file, read strictly: errors name file, line and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from kvopt.errors import InvalidInput, did_you_mean, shown, unknown_name
from kvopt.problem.requests import checked_integer, checked_number

_HEADER = re.compile(r"^\s*\[\[?\s*([\w.\-]+)\s*\]\]?\s*(?:#.*)?$")
_MISSING: Any = object()


@dataclass
class Table:
    """One table of a file, whose keys are taken one by one.

    Parameters
    ----------
    values
        Its keys.
    text, file
        Its file and line.
    name, place
        Name in its header, empty for the top table, and its position among several.
    known
        The keys that were asked for.
    """

    values: dict[str, Any]
    text: str
    file: str | None
    name: str = ""
    place: int | None = None
    known: dict[str, None] = field(default_factory=dict)

    @classmethod
    def parsed(cls, text: str, file: str | None) -> Table:
        """Return the top table of a TOML text."""
        try:
            return cls(tomllib.loads(text), text, file)
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"is not TOML: {error}", file=file) from None

    def fault(self, key: str, reason: str) -> InvalidInput:
        """Return the error that names the place of a key."""
        label = self.name if self.place is None else f"{self.name}[{self.place}]"
        path = f"{label}.{key}".removeprefix(".")
        line = _line_of(self.text, self.name, self.place or 0, key)
        where = path if line is None else f"line {line}: {path}"
        return InvalidInput(reason, field=where, file=self.file)

    def __contains__(self, key: object) -> bool:
        return key in self.values

    def take(
        self, key: str, default: Any = _MISSING, check: Callable[[Any], Any] = lambda value: value
    ) -> Any:
        """Return the value of a key and mark it as known; a refusal names the key."""
        self.known[key] = None
        if key not in self.values:
            if default is _MISSING:
                raise self.fault(key, "is missing")
            return default
        try:
            return check(self.values.pop(key))
        except InvalidInput as error:
            raise self.fault(key, str(error).removeprefix(f"{key}: ")) from None

    def integer(self, key: str, default: int, least: int = 0) -> Any:
        """Return an integer."""
        return self.take(key, default, lambda value: checked_integer(value, "", least))

    def tables(self, key: str) -> list[Table]:
        """Return the tables ``[[key]]``."""
        value = self.take(key, [])
        if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
            raise self.fault(key, f"must be tables [[{key}]], got {shown(value)}")
        return [Table(part, self.text, self.file, key, k) for k, part in enumerate(value)]

    def table(self, key: str) -> Table:
        """Return the table ``[key]``, empty if it is absent."""
        value = self.take(key, {})
        if not isinstance(value, dict):
            raise self.fault(key, f"must be a table [{key}], got {shown(value)}")
        return Table(value, self.text, self.file, key)

    def done(self) -> None:
        """Refuse keys that were not taken."""
        for key in self.values:
            reason = f"is not a known key; there are {', '.join(self.known)}"
            raise self.fault(key, reason + did_you_mean(key, self.known))


def text_of(value: object) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"must be a text, got {shown(value)}")
    return value


def texts(value: object) -> tuple[str, ...]:
    """Return a list of texts, each given once, as a tuple."""
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise InvalidInput(f"must be a list of texts, got {shown(value)}")
    for place, part in enumerate(value):
        if part in value[:place]:
            raise InvalidInput(f"has {part!r} twice")
    return tuple(value)


def boolean(value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise InvalidInput(f"must be true or false, got {shown(value)}")
    return value


def positives(value: object) -> list[float]:
    """Return positive numbers: a list, or one of them."""
    return [checked_number(part, "", positive=True) for part in listed(value)]


def rates(value: object) -> list[float]:
    """Return positive numbers, whole ones as integers."""
    return [int(rate) if rate == int(rate) else rate for rate in positives(value)]


def listed(value: object) -> list[Any]:
    """Return a list that is not empty, or one value as a list."""
    if value == []:
        raise InvalidInput("must not be an empty list")
    return value if isinstance(value, list) else [value]


def lists_of(value: object) -> dict[str, list[Any]]:
    """Return the list of values of each key of a table."""
    if not isinstance(value, dict):
        raise InvalidInput(f"must be a table, got {shown(value)}")
    return {key: listed(part) for key, part in value.items()}


def one_of(names: Collection[str]) -> Callable[[object], Any]:
    """Return the check of a name."""

    def check(value: object) -> object:
        if text_of(value) not in names:
            raise unknown_name(value, names)
        return value

    return check


def _line_of(text: str, table: str, place: int, key: str) -> int | None:
    """Return the line of a key, else of its table; None if the file writes it another way."""
    seen, is_here, header = -1, not table, None
    pattern = re.compile(rf"^\s*(?:[\w.\-]+\.)?[\"']?{re.escape(key)}[\"']?\s*[=.]")
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEADER.match(line):
            seen += match[1] == table
            is_here = match[1] == table and seen == place
            header = number if is_here else header
        elif is_here and pattern.match(line):
            return number
    return header
