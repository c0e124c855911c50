"""Recognise columns of a CSV file by usual names of servers and services."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

from kvopt.errors import InvalidInput, shown
from kvopt.files.reading import semicolons
from kvopt.problem.batch_time import MILLISECOND, NANOSECONDS
from kvopt.problem.traces.rows import Columns, header_of, nanoseconds, number_in

_ROUNDS = "arrival"
"""Column of rounds, as in kvopt's own CSV files; all other columns of times are of a clock."""
_SECONDS = "arrivalseconds"
"""Preferred to it if a file has both, as kvopt's own have."""


def _names(heads: str, words: str, tails: str) -> frozenset[str]:
    """Return every head with every word and tail; ``-`` is the empty one."""
    parts = (part.replace("-", "").split(" ") for part in (heads, words, tails))
    return frozenset(map("".join, product(*parts)))


_COUNTED = "- n num usage usagenum"
_COUNTS = "- tokens token tokencount tokenscount len length"
_UNITS = {"ms": MILLISECOND, "milliseconds": MILLISECOND, "us": 1_000, "ns": 1}
"""Nanoseconds of the units, the largest first."""
_TIMES = (
    "arrival arrivaltime arrivaltimestamp arrivaldate arrivedat arrivalat time timestamp ts date "
    "datetime created createdat createdtime starttime startedat startat requesttime "
    "requesttimestamp requestedat requestat requeststarttime submittime submittedat submissiontime "
    "receivedat receivedtime"
)
_NAMES: Mapping[str, frozenset[str]] = {
    "prompt": _names(_COUNTED, "prompt input context prefill", _COUNTS) | {"requesttokens"},
    "output": _names(_COUNTED, "output completion generated generation decode", _COUNTS)
    | {"responsetokens"},
    "time": _names("-", _TIMES, f"- s sec seconds {' '.join(_UNITS)}"),
}
"""Names in lower case, of letters and digits alone."""
_SUMS = frozenset(("nrequests", "numrequests", "nummodelrequests", "requestcount", "requests"))
"""Columns of tables whose rows are sums over many requests, as in reports of usage."""

_WORDS = {"prompt": "prompt tokens", "output": "output tokens", "time": "arrivals"}
_LARGEST_SECONDS = 10**11
"""The year 5138: a larger number counts from 1970 in a smaller unit."""


def format_of(line: Mapping[str, object]) -> str | None:
    """Return the format of a trace with objects of JSON on its lines, None if none is known.

    Examples
    --------
    >>> format_of({"timestamp": 0, "input_length": 9, "output_length": 1, "hash_ids": []})
    'mooncake'
    """
    if "input_length" in line:
        return "bailian" if "chat_id" in line else "mooncake"
    inside = [line, *(value for value in line.values() if isinstance(value, Mapping))]
    is_answer = any("completion_tokens" in part or "usage" in part for part in inside)
    return "openai" if is_answer else None


def recognised(
    rows: Iterator[tuple[int, list[str]]],
    prompt: str | None,
    output: str | None,
    time: str | None,
    e2e: str | None,
) -> tuple[Columns, str]:
    """Return the columns of a CSV file, and their use in words.

    Parameters
    ----------
    rows
        Rows of the file; its header and its first time are read.
    prompt, output, time
        Names given by the user; others are recognised.
    e2e
        Name of a column of times from arrival to the last token, None without one.

    Raises
    ------
    InvalidInput
        If a column is not found, or several could be meant.
    """
    header = header_of(rows)
    has_unnamed = None in (prompt, output, time)
    prompt, output, time = (
        _column_of(header, role) if name is None else name
        for role, name in (("prompt", prompt), ("output", output), ("time", time))
    )
    if prompt is None or output is None:
        names = {"prompt": prompt, "output": output}
        raise InvalidInput(_unknown(header, [role for role in names if names[role] is None]))
    if has_unnamed:
        _refuse_sums(header)
    cells = (cells for _, cells in rows)
    unit, word = (NANOSECONDS, "") if time is None else _unit(cells, header, time)
    arrivals = "no arrivals (all at once)" if time is None else f"arrivals in {time} ({word})"
    words = f"prompt tokens in {prompt}, output tokens in {output}, {arrivals}"
    if time is None and {*header} - {prompt, output}:
        words += "; --time-column names a column of arrivals"
    cached = next((name for name in header if _plain(name).endswith("cachedtokens")), None)
    names = {_plain(name): name for name in header}
    session = names.get("session", names.get("sessionid"))
    system = (names.get("systemprompt"), names.get("systemprompttokens"))
    if None in system:  # blocks without a length cannot be compared
        system = None, None
    if session or system[0]:
        words += f", prefixes in {' and '.join(filter(None, (session, *system)))}"
    columns = Columns(prompt, output, time, unit, cached, None, 1, session, *system)
    if e2e is not None:
        length, word = _unit_of_duration(e2e, in_rounds=not unit)
        columns = replace(columns, e2e=e2e, e2e_unit=length)
        words += f", e2e in {e2e} ({word})"
    return columns, words


def _unit_of_duration(name: str, *, in_rounds: bool) -> tuple[int, str]:
    """Return the nanoseconds of a number in a column of durations, 0 for rounds, and its unit."""
    last = re.split(r"[\W_]+", name.lower())[-1]
    if (last in _UNITS and in_rounds) or (last == "rounds" and not in_rounds):
        reason = f"counts {last}, arrivals count {'rounds' if in_rounds else 'no rounds'}"
        raise InvalidInput(reason, field=f"column {name!r}")
    if in_rounds:
        return 0, "rounds"
    return (_UNITS[last], last) if last in _UNITS else (NANOSECONDS, "seconds")


def _plain(name: str) -> str:
    """Return a name without case, blanks and separators."""
    return "".join(filter(str.isalnum, name.lower()))


def _column_of(header: Sequence[str], role: str) -> str | None:
    """Return the one column of a quantity, None if no name is known."""
    names = dict.fromkeys(name for name in header if _plain(name) in _NAMES[role])
    if role == "time" and {*map(_plain, names)} == {_ROUNDS, _SECONDS}:
        names = dict.fromkeys(name for name in names if _plain(name) == _SECONDS)
    if len(names) > 1:
        reason = f"{_WORDS[role]} may be in {' or '.join(map(shown, names))}"
        raise InvalidInput(f"{reason}: name one with --{role}-column")
    return next(iter(names), None)


def _unknown(header: Sequence[str], missing: Collection[str]) -> str:
    what = " and ".join(_WORDS[role] for role in missing)
    flags = " and ".join(f"--{role}-column" for role in missing)
    columns = ", ".join(map(shown, header)) or "none"
    reason = f"no column is known to hold {what}: name it with {flags}; the columns are {columns}"
    return reason + semicolons(header)


def _refuse_sums(header: Sequence[str]) -> None:
    for name in header:
        if _plain(name) in _SUMS:
            reason = (
                "looks like a count, so that rows would add up several requests: if each is one, "
                "give --prompt-column, --output-column and --time-column"
            )
            raise InvalidInput(reason, field=f"column {name!r}")


def _unit(rows: Iterable[list[str]], header: Sequence[str], time: str) -> tuple[int, str]:
    """Return the nanoseconds of a number in a column of times, 0 for rounds, and its unit."""
    plain, last = _plain(time), re.split(r"[\W_]+", time.lower())[-1]
    if plain == _ROUNDS:
        return 0, "rounds"
    for unit, length in _UNITS.items():
        is_time = plain.endswith(unit) and plain.removesuffix(unit) in _NAMES["time"]
        if is_time or last == unit:
            return length, unit
    first = _first(rows, header, time)
    if first is None:
        return NANOSECONDS, "dates and times"
    # Seconds from 1970 have ten digits; with thirteen and more the unit is a smaller one.
    for unit, length in (("seconds", NANOSECONDS), *_UNITS.items()):
        if abs(first) * length < _LARGEST_SECONDS * NANOSECONDS:
            return length, unit if first < _LARGEST_SECONDS else f"{unit} since 1970"
    return NANOSECONDS, "seconds"


def _first(rows: Iterable[list[str]], header: Sequence[str], time: str) -> Fraction | None:
    """Return the first time of a file that can be read, if it is a number."""
    place = header.index(time) if time in header else len(header)
    texts = (cells[place].strip() for cells in rows if len(cells) > place)
    return number_in(next((text for text in texts if nanoseconds(text) is not None), ""))
