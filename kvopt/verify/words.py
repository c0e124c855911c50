"""Words of reports: foreign text, ratios, and the schedules of each scope."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

SCOPES = ("runs", "restarts", "pauses", "chunks", "pauses+chunks", "sharing", "sharing+pauses",
          "sharing+chunks", "sharing+pauses+chunks")  # fmt: skip
"""Features of schedules.  In rounds a prompt in pieces is only a later start."""


def covered_by(scope: str) -> str:
    """Return the line of a report that names the schedules that its lower bound covers."""
    pauses, chunks = "pauses" in scope, "chunks" in scope
    missing = ["pausing a request with its tokens kept"] * (not pauses)
    missing += ["processing a prompt in pieces"] * (not chunks)
    return (
        "covered: every schedule that "
        + "holds a shared prefix once and " * ("sharing" in scope)
        + "processes each prompt at once or in pieces, and " * chunks
        + "runs each request to its end"
        + (", pauses it with its tokens kept, " if pauses else " once started, ")
        + "or evicts it, loses its tokens and starts it again"
        + f"; not covered{', in seconds' * pauses}: {', or '.join(missing)}" * bool(missing)
    )


def uncovered(claim: dict[str, Any], scope: str) -> str:
    """Return features of a run that a scope does not cover, empty if there are none."""
    used = []
    if "pauses" not in scope and any(len(rows) > 1 for rows in claim.get("segments", [])):
        used.append("pauses")
    if "chunks" not in scope and claim.get("chunks"):
        used.append("prompts in pieces")
    return " and ".join(used)


def quoted(text: str) -> str:
    """Return foreign text as 'text': short, on one line, and nothing in it ends the quotes."""
    pieces = [c.encode("unicode_escape").decode().replace("'", "\\'") for c in text[:81]]
    if len(text) <= 80 and sum(map(len, pieces)) <= 160:
        return f"'{''.join(pieces)}'"
    ends = accumulate(map(len, pieces[:77]))
    return f"'{''.join(piece for piece, end in zip(pieces, ends) if end <= 157)}'..."


def times_of(claim: dict[str, Any]) -> str:
    """Return the name of the field with the times of a run."""
    return "segments" if "segments" in claim else "starts"


def as_decimal(thousandths: int) -> str:
    """Print thousandths as a number with three digits behind the point."""
    return f"{thousandths // 1000:,}.{thousandths % 1000:03}"
