"""Pictures of single runs and instances against size: ratios and gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from kvopt.experiments.studies.records import Record
from kvopt.reports.context import Context, Section
from kvopt.reports.figures import by_family, figure
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.points import Axis, Chart, Point, as_float, chart, spread
from kvopt.reports.study import Run
from kvopt.reports.summaries import Group
from kvopt.reports.units import latency_of

_ALIKE = 2
"""Times the excess of the best panel up to which the others have its axis."""

_ROOM = 0.7
"""Share of the distance of two sizes over which instances of one size are spread."""

_SEVERAL = 3
"""Instances of a size, on average, from which on medians are joined."""

_HINT = (
    "Point at a run, or move from run to run with the arrow keys; a click keeps what is said of "
    "it, and Enter opens its certificate."
)


def scatter(context: Context) -> Section | None:
    """Return the ratio of every run against the size of its instance."""
    charts: dict[str, list[list[Any]]] = {}
    figures = []
    for family in context.families:
        drawn = [group for group in context.groups if group.family == family and group.are_many]
        runs = [run for group in drawn for run in group.runs if _has_ratio(run)]
        across = _Across.of(context, [run.record for run in runs])
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
        "Each run at the size of its instance, those of one size side by side. A dot is the lower "
        "end of its ratio, a line leads to the upper end. Panels share their axes, but for those "
        "of far worse schedulers. ",
        tag("span", _HINT, class_="screen"),
    )
    body = join(note, by_family(context, figures))
    return Section("runs", "Ratio of every run", body, charts)


def _has_ratio(run: Run) -> bool:
    return run.ratio is not None and bool(run.ratio.least)


@dataclass(frozen=True)
class _Across:
    """Where the instances of a family stand, those of one size side by side."""

    axis: Axis
    places: dict[int, float]

    @classmethod
    def of(cls, context: Context, records: Iterable[Record]) -> _Across:
        sizes: dict[int, list[int]] = {}
        for place, record in sorted({context.study.place(r): r for r in records}.items()):
            sizes.setdefault(record.instance.requests, []).append(place)
        if len(sizes) == 1:
            ((size, places),) = sizes.items()
            axis = Axis(f"instances, {size:,} requests each", 0.5, len(places) + 0.5)
            return cls(axis, {place: float(i) for i, place in enumerate(places, 1)})
        room = _ROOM * min((b - a for a, b in pairwise(sorted(sizes))), default=1)
        found = {
            place: size + room * ((i + 0.5) / len(places) - 0.5)
            for size, places in sizes.items()
            for i, place in enumerate(places)
        }
        return cls(spread("requests", found.values()), found)


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


def _scatter(context: Context, group: Group, across: _Across, up: Axis) -> Chart:
    points = []
    for run in group.runs:
        if run.ratio is None or not run.ratio.least:
            continue
        place = context.study.place(run.record)
        said = f"{latency_of(run.record)}: {run.ratio} times the optimum"
        x, most = across.places[place], as_float(run.ratio.most)
        points.append(Point(x, float(run.ratio.least), most, place, said))
    name = f"{group.label}, {group.family}: ratio of {len(points)} runs, worst {group.worst}"
    return chart(name, points, across.axis, up)


def gaps(context: Context) -> Section | None:
    """Return how far apart both sides of the optimum are, against size."""
    charts: dict[str, list[list[Any]]] = {}
    figures = []
    for family in context.families:
        known = [record for record in context.study.instances if record.instance.family == family]
        known = [record for record in known if record.upper and record.lower is not None]
        if len(known) > 1:
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
    across = _Across.of(context, records)
    points = []
    sizes: dict[float, list[float]] = {}
    for record in records:
        gap = 100 * (1 - _share(record.lower, record.upper))
        place = context.study.place(record)
        points.append(Point(across.places[place], gap, None, place, f"gap {gap:.2f}%"))
        sizes.setdefault(record.instance.requests, []).append(gap)
    up = spread("gap", [0.0, 1.0, *(point.low for point in points)], "%")
    name = f"{family}: gap of {len(points)} instances against their size"
    several = len(sizes) > 1 and len(points) >= _SEVERAL * len(sizes)
    trend = [(size, median(sizes[size])) for size in sorted(sizes)] if several else []
    return chart(name, points, across.axis, up, trend)


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
