"""Length of a round in integers of nanoseconds, so that sums are exact.

In the round that ends at t, every active request produces one token, and each that was started
for this round has its prompt processed as well (the prefill).  With

* A = active requests,
* S = prompt tokens of those that were started for this round,
* H = tokens held at t, those produced in this round included (the memory limit applies to these),

the round lasts

    max over lines of (round_ns + token_ns (A + S))  +  prompt_ns S  +  kv_ns H

nanoseconds.  A + S are the tokens that pass through the weights.  Several lines make a roof:
reading the weights takes as long for one token as for fifty, and beyond some number of tokens
arithmetic decides.  One line is the linear regression that the papers use.  For any
batch a round lasts at least the value of each single line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvopt.errors import InvalidInput, shown
from kvopt.files.reading import without_nulls
from kvopt.problem.requests import checked_integer

NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second."""
MILLISECOND = NANOSECONDS // 1000
"""Nanoseconds."""


@dataclass(frozen=True, slots=True)
class Line:
    """A fixed cost of a round and a cost of each token that it processes, in nanoseconds."""

    round_ns: int
    token_ns: int

    def __post_init__(self) -> None:
        checked_integer(self.round_ns, "round_ns", 0)
        checked_integer(self.token_ns, "token_ns", 0)
        if not self.round_ns + self.token_ns:
            raise InvalidInput("round_ns and token_ns are both 0", field="lines")


@dataclass(frozen=True)
class BatchTime:
    """The time that a round takes, see the formula of this module.

    Parameters
    ----------
    lines
        At least one; their maximum counts.
    kv_ns
        Cost of each token held, which attention reads.
    prompt_ns
        Cost of each prompt token, in addition to the lines.
    name, notes
        Labels for people: source of the numbers.

    Examples
    --------
    >>> from kvopt import BatchTime, Line
    >>> model = BatchTime([Line(45_000_000, 100_000)], kv_ns=80)
    >>> model.round_ns(active=20, prompts=0, held=5_000)
    47400000
    """

    lines: Sequence[Line]
    kv_ns: int = 0
    prompt_ns: int = 0
    name: str | None = None
    notes: str | None = None

    def __post_init__(self) -> None:
        fields = vars(self)  # checked as given, before any use
        fields["lines"] = as_lines = tuple(self.lines)
        if not as_lines:
            raise InvalidInput("must hold at least one line", field="lines")
        if not all(isinstance(line, Line) for line in as_lines):
            raise InvalidInput(f"must hold Line objects, got {shown(as_lines)}", field="lines")
        for field in ("name", "notes"):
            if not isinstance(fields[field], str | None):
                raise InvalidInput(f"must be a string, got {shown(fields[field])}", field=field)
        for field in ("kv_ns", "prompt_ns"):
            fields[field] = checked_integer(fields[field], field, 0)

    def round_ns(self, active: int, prompts: int, held: int) -> int:
        """Return the nanoseconds of one round: A, P and H of the module's formula."""
        tokens = active + prompts
        base = max(line.round_ns + line.token_ns * tokens for line in self.lines)
        return base + self.prompt_ns * prompts + self.kv_ns * held

    def stretch_ns(self, active: int, held: int, rounds: int) -> int:
        """Return the nanoseconds of rounds in a row in which no request starts or leaves.

        The first of them ends with ``held`` tokens, and each later one with ``active`` more.
        """
        growth = active * (rounds * (rounds - 1) // 2)
        return rounds * self.round_ns(active, 0, held) + self.kv_ns * growth

    @property
    def least_ns(self) -> int:
        """The shortest round in which anything is active: one request that holds one token."""
        return self.round_ns(active=1, prompts=0, held=1)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of a model file, without its schema."""
        return without_nulls({"name": self.name, "notes": self.notes}) | {
            "lines": [{"round_ns": x.round_ns, "token_ns": x.token_ns} for x in self.lines],
            "kv_ns": self.kv_ns,
            "prompt_ns": self.prompt_ns,
        }
