"""Print foreign text and ratios."""

from __future__ import annotations

from itertools import accumulate
from typing import Any


def quoted(text: str) -> str:
    """Return foreign text as 'text': short, on one line, and nothing in it ends the quotes."""
    pieces = [c.encode("unicode_escape").decode().replace("'", "\\'") for c in text[:81]]
    if len(text) <= 80 and sum(map(len, pieces)) <= 160:
        return f"'{''.join(pieces)}'"
    ends = accumulate(map(len, pieces[:77]))
    return f"'{''.join(piece for piece, end in zip(pieces, ends) if end <= 157)}'..."


def times_of(claim: dict[str, Any]) -> str:
    """Return the name of the field that holds the times of a run."""
    return "segments" if "segments" in claim else "starts"


def as_decimal(thousandths: int) -> str:
    """Print thousandths as a number with three digits behind the point."""
    return f"{thousandths // 1000:,}.{thousandths % 1000:03}"
