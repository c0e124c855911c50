"""How many requests attain their deadlines: schedulers, the best run known, and the ceiling."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor
from statistics import fmean

from kvopt.experiments.studies.records import Record, grouped
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.layout import cell, count, said_of, table
from kvopt.reports.registry import Context, Section, register


@register("deadlines")
def deadlines(context: Context) -> Section | None:
    """Return a table of shares for each family, None for a study without deadlines."""
    parts = []
    for family in context.families:
        judged = [run.record for group in family.groups for run in group.runs]
        known = [record for record in judged if record.ceiling is not None]
        if known:
            parts.append(_table(family.name, known))
    return Section("Deadlines", join(tag("p", said_of("deadlines")), *parts)) if parts else None


def _table(name: str, records: list[Record]) -> Markup:
    """Return a row for each deadline and number of requests."""
    policies = list(dict.fromkeys(record.policy or "" for record in records))
    head = ("Deadline", "Requests", *policies, "best run", "ceiling")
    rows = []
    for (deadline, size), some in grouped(records, _place).items():
        cells = [tag("td", deadline), count(size)]
        for policy in policies:
            own = [record for record in some if record.policy == policy]
            cells.append(_share((record.attained for record in own), size, up=False))
        cells.append(_share((record.best_attained for record in some), size, up=False))
        cells.append(_share((record.ceiling for record in some), size, up=True))
        rows.append(cells)
    return table(f"{name}: share of the requests in time", head, rows, f"{name} in time")


def _place(record: Record) -> tuple[str, int]:
    return str(record.limits.get("deadline")), record.instance.requests


def _share(counts: Iterable[int | None], size: int, *, up: bool) -> Markup:
    """Return the mean share, rounded outward, a dash where one is unknown."""
    known = list(counts)
    some = [number for number in known if number is not None]
    if not some or len(some) < len(known) or not size:
        return cell("-", None)
    share = 1e4 * fmean(some) / size
    return cell(f"{(ceil if up else floor)(share) / 100:.2f}%", share)
