"""Single runs and instances against size: ratios and gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from kvopt.experiments.studies.records import Record
from kvopt.reports.charts.axes import Axis, spread
from kvopt.reports.charts.points import Drawn, Point, chart
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.layout import by_family, figure, gallery, said_of
from kvopt.reports.registry import Charts, Context, Section, register
from kvopt.reports.summaries import Group
from kvopt.reports.words import latency_of

_ALIKE = 2
"""Times the excess of the best panel up to which the others have its axis."""

_ROOM = 0.7
"""Share of the distance of two sizes over which instances of one size are spread."""

_SEVERAL = 3
"""Instances of a size, on average, from which on medians are joined."""


@register("runs")
def runs(context: Context) -> Section | None:
    """Return the ratio of every run against the size of its instance."""
    charts: Charts = {}
    figures: dict[str, list[Markup]] = {}
    for family in context.families:
        drawn = [group for group in family.groups if group.are_many]
        judged = [run.record for group in drawn for run in group.runs if run.ratio is not None]
        across, places = _across(context, judged)
        figures[family.name] = []
        for group, up in zip(drawn, _upwards(drawn), strict=True):
            points = []
            for run, ratio in ((run, run.ratio) for run in group.runs if run.ratio is not None):
                place = context.study.place(run.record)
                said = f"{latency_of(run.record)}: {ratio} times the optimum"
                most = None if ratio.most is None else float(ratio.most)
                points.append(Point(places[place], float(run.least), most, place, said))
            title = f"{group.label}, {group.family}: ratio of {len(points)} runs"
            picture = chart(f"{title}, worst {group.worst}", points, across, up)
            figures[family.name].append(
                _pointed(group.label, charts, f"runs-{len(charts)}", picture)
            )
    return by_family("Ratio of every run", _note("runs"), figures, charts)


def _across(context: Context, records: Iterable[Record]) -> tuple[Axis, dict[int, float]]:
    """Return where the instances of a family stand, those of one size side by side."""
    sizes: dict[int, list[int]] = {}
    for place, record in sorted({context.study.place(r): r for r in records}.items()):
        sizes.setdefault(record.instance.requests, []).append(place)
    if len(sizes) == 1:
        ((size, places),) = sizes.items()
        axis = Axis(f"instances, {size:,} requests each", 0.5, len(places) + 0.5)
        return axis, {place: float(i) for i, place in enumerate(places, 1)}
    room = _ROOM * min((b - a for a, b in pairwise(sorted(sizes))), default=1)
    found = {
        place: size + room * ((i + 0.5) / len(places) - 0.5)
        for size, places in sizes.items()
        for i, place in enumerate(places)
    }
    return spread("requests", found.values()), found


def _upwards(drawn: Sequence[Group]) -> list[Axis]:
    """Return an axis for each group: the same for all that are not far worse than the best."""
    ends = [
        [float(end) for ratio in group.ratios for end in (ratio.least, ratio.most) if end]
        for group in drawn
    ]
    alike = 1 + _ALIKE * max(min(map(max, ends), default=1.0) - 1, 0.1)
    shared = [end for known in ends if max(known) <= alike for end in known]
    return [
        spread("ratio to the optimum", shared if max(known) <= alike else known, floor=1)
        for known in ends
    ]


@register("gaps")
def gaps(context: Context) -> Section | None:
    """Return how far apart both sides of the optimum are, against size."""
    charts: Charts = {}
    figures = []
    for family in context.families:
        known = [
            (record, 100 * (1 - record.lower / record.upper))
            for record in family.instances
            if record.upper and record.lower is not None
        ]
        if len(known) > 1:
            proved = sum(record.proved for record, _ in known)
            title = f"{family.name}: {proved:,} of {len(known):,} proved"
            picture = _gaps(context, family.name, known)
            figures.append(_pointed(title, charts, f"gaps-{len(charts)}", picture))
    return gallery("Gap against size", _note("gaps"), figures, "figures", charts)


def _gaps(context: Context, family: str, known: Sequence[tuple[Record, float]]) -> Drawn:
    across, places = _across(context, [record for record, _ in known])
    points = []
    sizes: dict[float, list[float]] = {}
    for record, gap in known:
        place = context.study.place(record)
        points.append(Point(places[place], gap, None, place, f"gap {gap:.2f}%"))
        sizes.setdefault(record.instance.requests, []).append(gap)
    up = spread("gap", [0.0, 1.0, *(gap for _, gap in known)], "%")
    several = len(sizes) > 1 and len(points) >= _SEVERAL * len(sizes)
    trend = [(size, median(found)) for size, found in sorted(sizes.items())] if several else []
    name = f"{family}: gap of {len(points)} instances against their size"
    return chart(name, points, across, up, trend)


def _pointed(title: str, charts: Charts, name: str, drawn: Drawn) -> Markup:
    """Return a picture whose points are among the charts of the section."""
    picture, charts[name] = drawn
    said = f"{title}: points; arrow keys move from one to the next"
    box = tag(
        "div", picture, class_="points", data_chart=name, tabindex=0, role="group", aria_label=said
    )
    return figure(title, None, box)


def _note(name: str) -> Markup:
    hint = tag("span", said_of("points"), class_="screen")
    return join(said_of(name), " ", hint)
