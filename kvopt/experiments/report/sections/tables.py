"""Tables: results of each scheduler, deadlines, and gains by a wider scope."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor
from statistics import fmean

from kvopt.experiments.report.layout import Cell, pieces
from kvopt.experiments.report.registry import TABLE, Context, section
from kvopt.experiments.report.words import mean_width, quantile_of
from kvopt.experiments.studies.intervals import Interval, Runs, by_family, percents, worths
from kvopt.experiments.studies.records import grouped
from kvopt.show.summary import percent

_OF_SEVERAL = ("runs", "median", "95%", "worst", "optimal", "not optimal")
"""Columns that repeat the ratio if each scheduler has a single run."""

_SINGLE = {"mean": "ratio", "mean width": "width"}
"""Names of columns of means if each scheduler has a single run."""


@section("schedulers")
def schedulers(context: Context) -> str:
    """Return the table, empty if no scheduler ran."""
    groups = context.groups
    single = all(len(group.records) == 1 for group in groups)
    # Columns without data in this study are left out.
    shown = {
        "family": len(context.families) > 1,
        "not completed": not all(group.completed for group in groups),
        "evictions": any(group.evictions for group in groups),
        **dict.fromkeys(_OF_SEVERAL, not single),
    }
    rows = [{k: c for k, c in _row(group).items() if shown.get(k, True)} for group in groups]
    said = TABLE["schedulers"]["single" if single else "said"]
    head = [_SINGLE.get(name, name) if single else name for row in rows[:1] for name in row]
    cells = [row.values() for row in rows]
    return pieces.table(said, head, cells, 1 + shown["family"]) if rows else ""


def _row(group: Runs) -> dict[str, object]:
    """Return the cells of a row under their headings."""
    width = mean_width(group.ratios)
    lost = {name: group.ended(name) for name in ("livelock", "unfinished", "error")}
    said = ", ".join(f"{number:,} {name}" for name, number in lost.items() if number)
    return {
        "family": group.family,
        "scheduler": group.policy,
        "runs": len(group.records),
        "mean": group.mean,
        "median": quantile_of(group.ratios, Fraction(1, 2)),
        "95%": quantile_of(group.ratios, Fraction(95, 100)),
        "worst": group.worst,
        "mean width": Cell(percent(width), width),
        "optimal": sum(ratio.most == 1 for ratio in group.ratios),
        "not optimal": sum((ratio.least or 0) > 1 for ratio in group.ratios),
        "not completed": Cell(said or "0", sum(lost.values())),
        "evictions": group.evictions,
    }


@section("deadlines", led=True)
def deadlines(context: Context) -> str:
    """Return a table of shares for each family, empty for a study without deadlines."""
    body = ""
    for family in context.families:
        known = [run for run in family.runs if run.ceiling is not None]
        places = grouped(known, lambda r: (str(r.limits.get("deadline")), r.instance.requests))
        policies = [*dict.fromkeys(run.policy for run in known)]
        rows = [
            [
                deadline,
                size,
                *(_share((r.attained for r in some if r.policy == p), size) for p in policies),
                _share((r.best_attained for r in some), size),
                _share((r.ceiling for r in some), size, up=True),
            ]
            for (deadline, size), some in places.items()
        ]
        if rows:
            head = ("Deadline", "Requests", *policies, "best run", "ceiling")
            body += pieces.table(f"{family.name}: share of the requests in time", head, rows)
    return body


def _share(counts: Iterable[int | None], size: int, *, up: bool = False) -> Cell:
    """Return the mean share, rounded outward, a dash if one is unknown."""
    some = [*counts]
    known = [number for number in some if number is not None]
    if not known or len(known) < len(some) or not size:
        return Cell("-", None)
    share = 1e4 * fmean(known) / size
    return Cell(f"{(ceil if up else floor)(share) / 100:.2f}%", share)


@section("worth")
def worth(context: Context) -> str:
    """Return both optima of each instance, empty if no instance has two."""
    found = worths(context.study.runs)
    rows = [
        [f.family, f.scope, len(f.instances), _percents(f.mean), _percents(f.largest)]
        for f in by_family(found)
    ]
    head = ("family", "scope", "instances", "mean share", "largest share")
    singles = []
    for each in found:
        optima = []
        for side, path in zip((each.runs, each.wider), each.certificates, strict=True):
            ends = ("-" if end is None else f"{int(end):,}" for end in (side.least, side.most))
            said = " to ".join(dict.fromkeys(ends))
            optima.append(Cell(context.link(path, said) if path else said, side.least))
        one, share = each.instance, _percents(each.share)
        singles.append([one.name, each.scope, one.requests, one.memory, *optima, share])
    single = pieces.table(
        "The optima of each instance, as intervals that hold them for certain.",
        ("instance", "scope", "requests", "cache", "of runs", "with the scope", "share"),
        singles,
        2,
    )
    whole = pieces.table(context.said("worth"), head, rows, 2)
    said = f"{len(found):,} instances" if len(found) > 1 else "the instance"
    return whole + pieces.unfolded(said, single) if found else ""


def _percents(share: Interval) -> Cell:
    return Cell(percents(share), share.least)
