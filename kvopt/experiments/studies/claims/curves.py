"""One scheduler beside another, instance by instance, where a paper prints curves and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from kvopt.experiments.studies.claims.verdict import Verdict, certificates_of
from kvopt.experiments.studies.intervals import rounded
from kvopt.experiments.studies.records import Record

CLOSE = Fraction("1.05")
"""Factor up to which two curves are what papers call "nearly identical"."""

Runs = Mapping[str, Record]
"""The completed runs on one instance, by policy."""


def by_instance(records: Sequence[Record]) -> list[Runs]:
    """Return the completed runs of each instance."""
    groups: dict[str, dict[str, Record]] = {}
    for record in records:
        if record.policy is not None and record.value is not None:
            groups.setdefault(record.instance.hash, {})[record.policy] = record
    return list(groups.values())


def compared(
    groups: Sequence[Runs],
    policy: str,
    other: str,
    *,
    least: Fraction = Fraction(),
    most: Fraction | None = None,
    claim: str,
    source: str,
    published: str,
) -> list[Verdict]:
    """Judge whether one policy's total latency is ``least .. most`` times another's everywhere.

    Instances on which all policies are the same, because nothing has to wait, are left out.  The
    papers measured seconds on data that cannot be had; a claim that does not show on the
    stand-in is left open, not refuted.
    """
    busy = [group for group in groups if len({record.value for record in group.values()}) > 1]
    pairs = [(group[policy], group[other]) for group in busy if {policy, other} <= group.keys()]
    shares = [_share(mine, its) for mine, its in pairs]
    if not shares:
        return []
    low, high = min(shares), max(shares)
    holds = least <= low and (most is None or high <= most)
    ends = f"{rounded(low, up=False)} to {rounded(high, up=True)}"
    first = sorted(pairs, key=lambda pair: -_share(*pair))
    clock = "seconds" if first[0][0].in_seconds else "rounds"
    return [
        Verdict(
            claim=claim,
            source=source,
            published=published,
            found=f"{policy} is {ends} times {other}, in {clock}, on {len(shares)} instances",
            verdict="reproduced" if holds else "undecided",
            certificates=certificates_of(mine for mine, _ in first),
        )
    ]


def _share(mine: Record, its: Record) -> Fraction:
    assert mine.value is not None, "runs without a value are left out"
    assert its.value, "every request takes a round at least"
    return Fraction(mine.value, its.value)
