"""Mean latencies in seconds, as claims about traffic compare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from kvopt.experiments.studies.claims.verdict import Verdict, certificates_of
from kvopt.experiments.studies.records import Record
from kvopt.model.batch_time import NANOSECONDS

SOURCE = "jaillet-2025-v2 section 5.2"

ABOUT = Fraction(1, 5)
"""Share by which ratios may differ from printed ones, which are read off pictures, and agree."""


def latency(record: Record) -> Fraction | None:
    """Return the mean latency of a run in seconds, None unless it completed."""
    if record.value is None or not record.instance.requests:
        return None
    return Fraction(record.value, record.instance.requests * NANOSECONDS)


def rate_of(record: Record) -> float | None:
    """Return how many requests arrive in a second, None for other instances and for rounds."""
    rate = record.instance.parameters.get("per_second")
    return float(rate) if record.in_seconds and isinstance(rate, (int, float)) else None


def keys_of(policy: str | None) -> tuple[str, dict[str, str]]:
    """Return the name of a policy and its keys."""
    name, _, keys = (policy or "").partition(":")
    return name, dict(part.partition("=")[::2] for part in keys.split(",") if part)


def at_rate(records: Iterable[Record], rate: float) -> list[Record]:
    """Return the runs of policies on traffic of one rate."""
    return [r for r in records if r.policy is not None and rate_of(r) == rate]


def rates_of(records: Iterable[Record]) -> list[float]:
    """Return the rates of some records, the highest first."""
    found = {rate_of(record) for record in records if record.policy is not None}
    return sorted((rate for rate in found if rate is not None), reverse=True)


def is_about(found: Fraction, printed: Fraction, share: Fraction = ABOUT) -> bool:
    """Whether a number is within a share of a printed one."""
    return abs(found - printed) <= share * printed


def slope(curve: Mapping[int, Fraction]) -> Fraction:
    """Return the slope of the line of least squares through a curve of two places or more."""
    count = len(curve)
    middle, level = Fraction(sum(curve), count), sum(curve.values(), Fraction()) / count
    up = sum(((x - middle) * (y - level) for x, y in curve.items()), Fraction())
    return up / sum(((x - middle) ** 2 for x in curve), Fraction())


def told(claim: str, published: str, found: str, holds: bool, records: Sequence[Record]) -> Verdict:
    """Return a verdict on a claim about data that cannot be had.

    What does not show on the stand-in is left open: the lengths and the server differ.
    """
    return Verdict(
        claim=claim,
        source=SOURCE,
        published=published,
        found=f"{found}, on the stand-in" + ("" if holds else ": does not agree"),
        verdict="reproduced" if holds else "undecided",
        certificates=certificates_of(records),
    )
