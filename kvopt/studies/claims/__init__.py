"""Published claims beside what was found: certified values only, as intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvopt.studies.claims.verdict import Verdict
from kvopt.studies.records import Record

__all__ = ["CLAIMS", "Claim", "Verdict"]

Claim = Callable[[Sequence[Record]], list[Verdict]]

CLAIMS: dict[str, Claim] = {}
