"""What a study found, policy by policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvopt.experiments.studies.intervals import Interval, largest_of, mean_of, ratio_of
from kvopt.experiments.studies.records import Record
from kvopt.model.batch_time import NANOSECONDS


@dataclass(frozen=True)
class PolicyRow:
    """A policy over all instances of a study.

    Parameters
    ----------
    policy
        As it was given.
    runs, completed, proved
        Records; those with a total latency; those of them whose optimum is known.
    mean, worst
        Of value / optimum over what completed.
    latency
        Seconds that a request took, on average; None where not every run completed, and in rounds.
    """

    policy: str
    runs: int
    completed: int
    proved: int
    mean: Interval
    worst: Interval
    latency: float | None = None


def by_policy(records: Iterable[Record]) -> list[PolicyRow]:
    """Return a row for each policy, in the order of the records."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record.policy is not None:
            groups.setdefault(record.policy, []).append(record)
    return [_row(policy, group) for policy, group in groups.items()]


def _row(policy: str, records: list[Record]) -> PolicyRow:
    completed = [record for record in records if record.value is not None]
    ratios = [ratio_of(record) for record in completed]
    return PolicyRow(
        policy=policy,
        runs=len(records),
        completed=len(completed),
        proved=sum(record.proved for record in completed),
        mean=mean_of(ratios),
        worst=largest_of(ratios),
        latency=mean_seconds(completed) if len(completed) == len(records) else None,
    )


def mean_seconds(records: Iterable[Record]) -> float | None:
    """Return the mean latency of a request in seconds, over runs that completed on that clock."""
    runs = [record for record in records if record.in_seconds and record.value is not None]
    served = sum(record.instance.requests for record in runs)
    return sum(r.value or 0 for r in runs) / served / NANOSECONDS if served else None
