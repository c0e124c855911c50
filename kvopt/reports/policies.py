"""The table of schedulers: what all runs of each come to."""

from __future__ import annotations

from fractions import Fraction

from kvopt.experiments.studies.intervals import Interval
from kvopt.reports.context import Context, Section, column, table
from kvopt.reports.html import Markup, Node, breakable, tag
from kvopt.reports.quantiles import percent
from kvopt.reports.summaries import Group

_RATIOS = ("mean", "median", "95%", "worst")

_CAPTION = (
    "Ratio to the optimum over the runs that completed; 95% is the ratio that 95% of them do not "
    "exceed. Columns of intervals are sorted by the lower end."
)


def policies(context: Context) -> Section | None:
    """Return the table, None where no scheduler ran."""
    if not context.groups:
        return None
    several = len(context.families) > 1
    lost = any(group.ended("completed") < len(group.runs) for group in context.groups)
    evicted = any(group.evictions for group in context.groups)
    head = [
        *([column("family", sort="text")] if several else []),
        column("scheduler", sort="text"),
        column("runs", sort="number"),
        *(column(name, sort="number") for name in _RATIOS),
        column("mean width", sort="number"),
        column("optimal", sort="number"),
        column("not optimal", sort="number"),
        *([column("not completed", sort="number")] if lost else []),
        *([column("evictions", sort="number")] if evicted else []),
    ]
    rows = [_row(group, several, lost, evicted) for group in context.groups]
    return Section("schedulers", "Schedulers", table(_CAPTION, head, rows, "Table of schedulers"))


def _row(group: Group, several: bool, lost: bool, evicted: bool) -> Markup:
    ratios = (group.mean, group.median, group.high, group.worst)
    return tag(
        "tr",
        tag("td", group.family, class_="family") if several else None,
        tag("th", breakable(group.label, ":,{"), scope="row"),
        _number(len(group.runs)),
        *(_interval(ratio) for ratio in ratios),
        _cell(percent(group.width), group.width),
        _number(group.optimal),
        _number(group.beaten),
        _not_completed(group) if lost else None,
        _number(group.evictions) if evicted else None,
    )


def _interval(found: Interval) -> Markup:
    if found.least is None and found.most is None:
        return _cell("-", None)
    return _cell(str(found), found.least)


def _not_completed(group: Group) -> Markup:
    counts = {name: group.ended(name) for name in ("livelock", "unfinished", "error")}
    said = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return _cell(said or "0", Fraction(sum(counts.values())))


def _number(value: int) -> Markup:
    return _cell(f"{value:,}", Fraction(value))


def _cell(shown: Node, value: Fraction | None) -> Markup:
    """Return a cell that is sorted by a value; what is unknown comes last."""
    return tag("td", shown, data_value="" if value is None else f"{float(value):.9g}")
