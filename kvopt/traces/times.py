"""Times as traces write them, exactly: integers of nanoseconds since some origin."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

NANOSECONDS = 1_000_000_000

_STAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:?\d{2})?", re.ASCII
)
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d*)?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def nanoseconds(text: str, unit: int = NANOSECONDS) -> int | None:
    """Return a time in nanoseconds, None if the text is none.

    A number counts units of so many nanoseconds from the start of the trace or from 1970.  A date
    with a time of day may have any number of decimals; without an offset it is UTC.
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return round(Fraction(text) * unit)
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    day, clock, decimals, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day} {clock}").replace(tzinfo=_zone(offset))
    except ValueError:  # the 31st of February
        return None
    whole = (moment - _EPOCH) // timedelta(seconds=1)
    part = round(Fraction(int(decimals), 10 ** len(decimals)) * NANOSECONDS) if decimals else 0
    return whole * NANOSECONDS + part


def _zone(offset: str | None) -> timezone:
    if offset is None or offset == "Z":
        return UTC
    minutes = int(offset[1:3]) * 60 + int(offset[-2:])
    return timezone(timedelta(minutes=-minutes if offset[0] == "-" else minutes))
