"""What it is worth that schedules may do more than run each request to its end."""

from __future__ import annotations

from kvopt.experiments.studies.intervals import Interval, percents
from kvopt.experiments.studies.worth import Worth, by_family, worths
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.layout import cell, count, said_of, table, unfolded
from kvopt.reports.registry import Context, Section, register


@register("worth")
def worth(context: Context) -> Section | None:
    """Return both optima of each instance, None where no instance has two."""
    found = worths(run.record for run in context.study.runs)
    if not found:
        return None
    rows = [
        [
            tag("th", each.family, scope="row"),
            tag("td", str(each.scope)),
            count(len(each.instances)),
            _share(each.mean),
            _share(each.largest),
        ]
        for each in by_family(found)
    ]
    head = ("family", "scope", "instances", "mean share", "largest share")
    whole = table(said_of("worth"), head, rows, "Table of families with two scopes", 2)
    single = table(
        "The optima of each instance, as intervals that hold them for certain.",
        ("instance", "scope", "requests", "cache", "of runs", "with the scope", "share"),
        [_instance(context, each) for each in found],
        "Table of instances with two scopes",
        2,
    )
    said = f"{len(found):,} instances" if len(found) > 1 else "the instance"
    return Section("What a wider scope is worth", join(whole, unfolded(said, single)))


def _instance(context: Context, found: Worth) -> list[Markup]:
    sides = zip((found.runs, found.wider), found.certificates, strict=True)
    optima = [
        cell(context.link(path, _ends(side)) if path else _ends(side), side.least)
        for side, path in sides
    ]
    return [
        tag("th", found.instance.name, scope="row"),
        tag("td", str(found.scope)),
        count(found.instance.requests),
        count(found.instance.memory),
        *optima,
        _share(found.share),
    ]


def _share(share: Interval) -> Markup:
    return cell(percents(share), share.least)


def _ends(side: Interval) -> str:
    """Return the ends of an optimum, which are whole."""
    least, most = ("-" if end is None else f"{int(end):,}" for end in (side.least, side.most))
    return least if least == most else f"{least} to {most}"
