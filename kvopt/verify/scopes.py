"""Names of the schedules of each scope, and the features that a run uses."""

from __future__ import annotations

from typing import Any

COVERED = (
    "covered: every schedule that runs each request to its end once started, or evicts it, loses "
    "its tokens and starts it again; not covered: pausing a request with its tokens kept, or "
    "processing a prompt in pieces"
)
"""The line of a report that says of which schedules its lower bound speaks."""
COVERED_BY = {
    "runs": COVERED,
    "restarts": COVERED,
    "pauses": (
        "covered: every schedule that runs each request to its end, pauses it with its tokens "
        "kept, or evicts it, loses its tokens and starts it again; not covered, in seconds: "
        "processing a prompt in pieces"
    ),
    "chunks": (
        "covered: every schedule that processes each prompt at once or in pieces, and runs each "
        "request to its end once started, or evicts it, loses its tokens and starts it again; not "
        "covered: pausing a request with its tokens kept"
    ),
    "pauses+chunks": (
        "covered: every schedule that processes each prompt at once or in pieces, and runs each "
        "request to its end, pauses it with its tokens kept, or evicts it, loses its tokens and "
        "starts it again"
    ),
}
COVERED_BY |= {
    name: COVERED_BY[other].replace(
        "every schedule that", "every schedule that holds a shared prefix once and"
    )
    for name, other in (
        ("sharing", "runs"), ("sharing+pauses", "pauses"), ("sharing+chunks", "chunks"),
        ("sharing+pauses+chunks", "pauses+chunks"),
    )
}  # fmt: skip
"""The same for each scope.  In rounds a prompt in pieces only comes later than one at once."""


def uncovered(claim: dict[str, Any], scope: str) -> str:
    """Return features of a run that a scope does not cover, empty if there are none."""
    used = []
    if "pauses" not in scope and any(len(rows) > 1 for rows in claim.get("segments", [])):
        used.append("pauses")
    if "chunks" not in scope and claim.get("chunks"):
        used.append("prompts in pieces")
    return " and ".join(used)
