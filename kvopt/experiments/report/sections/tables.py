"""Tables: what all runs of a scheduler come to, deadlines, and what a wider scope is worth."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor
from statistics import fmean

from kvopt.experiments.report.layout import UNKNOWN, Cell, note, pieces
from kvopt.experiments.report.registry import Context, Section, register
from kvopt.experiments.report.summaries import Group, mean_width, quantile_of
from kvopt.experiments.report.words import percent
from kvopt.experiments.studies.intervals import Interval, percents
from kvopt.experiments.studies.records import Record, grouped
from kvopt.experiments.studies.worth import Worth, by_family, worths

_OF_SEVERAL = ("runs", "median", "95%", "worst", "optimal", "not optimal")
"""Columns that repeat the ratio where each scheduler has a single run."""

_SINGLE = {"mean": "ratio", "mean width": "width"}
"""What columns of means are called where each scheduler has a single run."""


@register("schedulers")
def schedulers(context: Context) -> Section | None:
    """Return the table, None where no scheduler ran."""
    groups = context.groups
    if not groups:
        return None
    single = all(len(group.runs) == 1 for group in groups)
    # Columns that say nothing in this study are left out.
    shown = {
        "family": len(context.families) > 1,
        "not completed": not all(group.completed for group in groups),
        "evictions": any(group.evictions for group in groups),
        "x slower": any(group.machine for group in groups),
        **dict.fromkeys(_OF_SEVERAL, not single),
    }
    rows = [{k: c for k, c in _row(group).items() if shown.get(k, True)} for group in groups]
    head = [_SINGLE.get(name, name) if single else name for name in rows[0]]
    said = note("schedulers-single" if single else "schedulers")
    if shown["x slower"]:
        said += f" {note('slower')}"
    cells = [[*row.values()] for row in rows]
    return Section("Schedulers", pieces.table(said, head, cells, 1 + shown["family"]))


def _row(group: Group) -> dict[str, object]:
    """Return the cells of a row under their headings."""
    width, machine = mean_width(group.ratios), group.machine or UNKNOWN
    lost = {name: group.ended(name) for name in ("livelock", "unfinished", "error")}
    said = ", ".join(f"{number:,} {name}" for name, number in lost.items() if number)
    return {
        "family": group.family,
        "scheduler": group.label,
        "runs": len(group.runs),
        "mean": group.mean,
        "median": quantile_of(group.ratios, Fraction(1, 2)),
        "95%": quantile_of(group.ratios, Fraction(95, 100)),
        "worst": group.worst,
        "mean width": Cell(percent(width), width),
        "x slower": Cell(machine, machine.most),
        "optimal": sum(ratio.most == 1 for ratio in group.ratios),
        "not optimal": sum(run.least > 1 for run in group.runs),
        "not completed": Cell(said or "0", sum(lost.values())),
        "evictions": group.evictions,
    }


@register("deadlines")
def deadlines(context: Context) -> Section | None:
    """Return a table of shares for each family, None for a study without deadlines."""
    body = pieces.paragraphs([note("deadlines")])
    found = False
    for family in context.families:
        judged = [run.record for group in family.groups for run in group.runs]
        known = [record for record in judged if record.ceiling is not None]
        if known:
            found = True
            policies = list(dict.fromkeys(record.policy or "" for record in known))
            head = ("Deadline", "Requests", *policies, "best run", "ceiling")
            rows = [
                [deadline, size, *_shares(some, policies, size)]
                for (deadline, size), some in grouped(known, _place).items()
            ]
            body += pieces.table(f"{family.name}: share of the requests in time", head, rows)
    return Section("Deadlines", body) if found else None


def _place(record: Record) -> tuple[str, int]:
    return str(record.limits.get("deadline")), record.instance.requests


def _shares(some: list[Record], policies: list[str], size: int) -> Iterable[Cell]:
    for policy in policies:
        yield _share((r.attained for r in some if r.policy == policy), size, up=False)
    yield _share((record.best_attained for record in some), size, up=False)
    yield _share((record.ceiling for record in some), size, up=True)


def _share(counts: Iterable[int | None], size: int, *, up: bool) -> Cell:
    """Return the mean share, rounded outward, a dash where one is unknown."""
    known = list(counts)
    some = [number for number in known if number is not None]
    if not some or len(some) < len(known) or not size:
        return Cell("-", None)
    share = 1e4 * fmean(some) / size
    return Cell(f"{(ceil if up else floor)(share) / 100:.2f}%", share)


@register("worth")
def worth(context: Context) -> Section | None:
    """Return both optima of each instance, None where no instance has two."""
    found = worths(run.record for run in context.study.runs)
    if not found:
        return None
    rows = [
        [f.family, f.scope, len(f.instances), _percents(f.mean), _percents(f.largest)]
        for f in by_family(found)
    ]
    head = ("family", "scope", "instances", "mean share", "largest share")
    whole = pieces.table(note("worth"), head, rows, 2)
    single = pieces.table(
        "The optima of each instance, as intervals that hold them for certain.",
        ("instance", "scope", "requests", "cache", "of runs", "with the scope", "share"),
        [_instance(context, each) for each in found],
        2,
    )
    said = f"{len(found):,} instances" if len(found) > 1 else "the instance"
    return Section("What a wider scope is worth", whole + pieces.unfolded(said, single))


def _instance(context: Context, found: Worth) -> list[object]:
    sides = zip((found.runs, found.wider), found.certificates, strict=True)
    optima = [
        Cell(context.link(path, _ends(side)) if path else _ends(side), side.least)
        for side, path in sides
    ]
    one = found.instance
    return [one.name, found.scope, one.requests, one.memory, *optima, _percents(found.share)]


def _percents(share: Interval) -> Cell:
    return Cell(percents(share), share.least)


def _ends(side: Interval) -> str:
    """Return the ends of an optimum, which are whole."""
    least, most = ("-" if end is None else f"{int(end):,}" for end in (side.least, side.most))
    return least if least == most else f"{least} to {most}"
