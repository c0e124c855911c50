"""A claim, the result, and the verdict."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeVar

from kvopt.studies import Record

Judgement = Literal["reproduced", "not reproduced as printed", "refuted", "undecided", "measured"]

Key = TypeVar("Key", bound=Hashable)

PRINTED: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "printed.toml").read_text(encoding="utf-8")
)
"""Claims of papers, in ``claims``, and printed values."""

_SHOWN = 5
"""Certificates that a verdict names, at most."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a published claim.

    Parameters
    ----------
    claim, source, published
        The claim, its place in the paper, and its numbers.
    found
        The result, with numbers that certificates prove.
    verdict
        ``reproduced``; ``not reproduced as printed``; ``refuted``; ``undecided`` if the
        intervals allow both; ``measured`` if there is no claim that could fail.
    certificates
        Paths of the certificates that show it.
    """

    claim: str
    source: str
    published: str
    found: str
    verdict: Judgement
    certificates: Sequence[str] = ()

    def __str__(self) -> str:
        said = f"{self.verdict}: {self.claim} ({self.source})"
        return f"{said}\n  published: {self.published}\n  found:     {self.found}"


def verdict_on(
    name: str, found: str, verdict: Judgement, records: Iterable[Record], **facts: object
) -> Verdict:
    """Return the verdict on a claim of ``printed.toml``, whose texts name some facts."""
    said = {key: text.format(**facts) for key, text in PRINTED["claims"][name].items()}
    return Verdict(**said, found=found, verdict=verdict, certificates=certificates_of(records))


def settled(*, agrees: bool, contradicts: bool = False) -> Judgement:
    """Return the verdict on printed numbers, given certain values."""
    if contradicts:
        return "not reproduced as printed"
    return "reproduced" if agrees else "undecided"


def certificates_of(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the certificates of the first few of some records, each once."""
    found = dict.fromkeys(r.certificate for r in records if r.certificate is not None)
    return tuple(found)[:_SHOWN]


def beaten(records: Iterable[Record]) -> list[Record]:
    """Return the runs that are certainly not optimal: a schedule is better."""
    return [r for r in records if r.value is not None and r.upper is not None and r.value > r.upper]


def grouped(records: Iterable[Record], key: Callable[[Record], Key]) -> dict[Key, list[Record]]:
    """Return records by the value of a function, in the order of first appearance."""
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def rounded(value: Fraction, *, up: bool) -> str:
    """Return a ratio to four places, rounded in one direction: ends of intervals stay true."""
    scaled = value * 10**4
    whole = -(-scaled.numerator // scaled.denominator) if up else scaled.__floor__()
    return f"{whole // 10**4:,}.{whole % 10**4:04}"
