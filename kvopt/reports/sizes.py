"""Pictures of single runs and instances against size: ratios and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvopt.reports.context import Context, Section
from kvopt.reports.figures import by_family, figure
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.points import Axis, Chart, Point, as_float, chart, spread
from kvopt.reports.study import Run
from kvopt.reports.summaries import Group
from kvopt.studies.records import Record

_ALIKE = 2
"""Times the excess of the best panel up to which the others have its axis."""

_HINT = (
    "Point at a run, or move from run to run with the arrow keys; a click keeps what is said of "
    "it, and Enter opens its certificate."
)


def scatter(context: Context) -> Section | None:
    """Return the ratio of every run against the size of its instance."""
    charts: dict[str, list[list[Any]]] = {}
    figures = []
    for family in context.families:
        drawn = [group for group in context.groups if group.family == family and group.ratios]
        runs = [run for group in drawn for run in group.runs if _has_ratio(run)]
        across = _across(context, [run.record for run in runs])
        ups = _upwards(drawn)
        for group, up in zip(drawn, ups, strict=True):
            place = f"runs-{len(charts)}"
            made = _scatter(context, group, across, up)
            charts[place] = made.data
            figures.append((family, _pointed(group.label, place, made)))
    if not figures:
        return None
    note = tag(
        "p",
        "Each run at the size of its instance. A dot is the lower end of its ratio, a line leads "
        "to the upper end. Panels share their axes, but for those of far worse schedulers. ",
        tag("span", _HINT, class_="screen"),
    )
    body = join(note, by_family(context, figures))
    return Section("runs", "Ratio of every run", body, charts)


def _has_ratio(run: Run) -> bool:
    return run.ratio is not None and bool(run.ratio.least)


def _across(context: Context, records: Sequence[Record]) -> Axis:
    sizes = {record.instance.requests for record in records}
    if len(sizes) > 1:
        return spread("requests", sizes)
    places = [context.study.place(record) for record in records]
    return Axis(f"instance, {', '.join(map(str, sizes))} requests each", *_ends(places))


def _ends(places: Sequence[int]) -> tuple[float, float]:
    return min(places, default=0) - 0.5, max(places, default=1) + 0.5


def _upwards(drawn: Sequence[Group]) -> list[Axis]:
    """Return an axis for each group: the same for all that are not far worse than the best."""
    ends = [
        [float(end) for ratio in group.ratios for end in (ratio.least, ratio.most) if end]
        for group in drawn
    ]
    alike = 1 + _ALIKE * (min(map(max, ends), default=1.0) - 1)
    shared = [end for known in ends if max(known) <= alike for end in known]
    return [
        spread("ratio to the optimum", shared if max(known) <= alike else known, floor=1)
        for known in ends
    ]


def _scatter(context: Context, group: Group, across: Axis, up: Axis) -> Chart:
    sized = across.title == "requests"
    points = []
    for run in group.runs:
        if run.ratio is None or not run.ratio.least:
            continue
        place = context.study.place(run.record)
        x = run.record.instance.requests if sized else place
        said = f"total latency {run.record.value:,}: {run.ratio} times the optimum"
        points.append(Point(x, float(run.ratio.least), as_float(run.ratio.most), place, said))
    name = f"{group.label}, {group.family}: ratio of {len(points)} runs, worst {group.worst}"
    return chart(name, points, across, up, trend=False)


def gaps(context: Context) -> Section | None:
    """Return how far apart both sides of the optimum are, against size."""
    charts: dict[str, list[list[Any]]] = {}
    figures = []
    for family in context.families:
        known = [record for record in context.study.instances if record.instance.family == family]
        known = [record for record in known if record.upper and record.lower is not None]
        if known:
            place = f"gaps-{len(charts)}"
            made = _gaps(context, family, known)
            charts[place] = made.data
            proved = sum(record.proved for record in known)
            figures.append(_pointed(f"{family}: {proved:,} of {len(known):,} proved", place, made))
    if not figures:
        return None
    note = tag(
        "p",
        "How much is open: the distance from the proved bound to the best schedule, as a share of "
        "the schedule. At 0 the optimum is proved. A line joins the medians of equal sizes. ",
        tag("span", _HINT, class_="screen"),
    )
    body = join(note, tag("div", *figures, class_="figures"))
    return Section("gaps", "Gap against size", body, charts)


def _gaps(context: Context, family: str, records: Sequence[Record]) -> Chart:
    across = _across(context, records)
    points = []
    for record in records:
        gap = 1 - _share(record.lower, record.upper)
        place = context.study.place(record)
        x = record.instance.requests if across.title == "requests" else place
        points.append(Point(x, 100 * gap, None, place, f"gap {100 * gap:.2f}%"))
    up = spread("gap", [0.0, *(point.low for point in points)], "%")
    name = f"{family}: gap of {len(points)} instances against their size"
    return chart(name, points, across, up, trend=True)


def _share(lower: int | None, upper: int | None) -> float:
    return (lower or 0) / upper if upper else 1.0


def _pointed(title: str, place: str, made: Chart) -> Markup:
    box = tag(
        "div",
        made.svg,
        class_="points",
        data_chart=place,
        tabindex=0,
        role="group",
        aria_label=f"{title}: points; arrow keys move from one to the next",
    )
    return figure(title, None, box)
