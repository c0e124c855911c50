"""Pictures of ratios and gaps: means, histograms, and single runs against size."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from statistics import median

from markupsafe import Markup
from matplotlib.axes import Axes

from kvopt.experiments.report.layout import note, picture
from kvopt.experiments.report.registry import Context, Section, gallery, register
from kvopt.experiments.report.summaries import Family, Group
from kvopt.experiments.report.words import counted, latency_of, optimum_of, size_of
from kvopt.experiments.studies.records import Record
from kvopt.show.plots import style
from kvopt.show.plots.charts import Bar, Ends, histogram, intervals, points, spread
from kvopt.show.plots.embedding import Link, panels

_RATIO = "ratio to the optimum"
_ALIKE = 2
"""Times the excess of the best panel up to which the others have its axis."""
_ROOM = 0.7
"""Share of the distance of two sizes over which instances of one size are spread."""
_SEVERAL = 3
"""Instances of a size, on average, from which on medians are joined."""


@register("ranking")
def ranking(context: Context) -> Section | None:
    """Return a picture of the mean ratios for each family."""
    figures = {family.name: _ranking(family) for family in context.families}
    return gallery("Mean ratios", note("ranking"), figures, wide=True)


def _ranking(family: Family) -> list[Markup]:
    bars = []
    for group in family.groups:
        judged, runs = len(group.ratios), len(group.runs)
        if judged:
            name = group.label + (f" ({judged:,} of {runs:,} runs)" if judged < runs else "")
            mean, far = group.mean, group.worst.most
            bars.append(Bar(name, mean.least, mean.most, str(mean), far=far or math.inf))
    if not bars:
        return []
    figure, (ax,) = panels(0.36 * len(bars))
    intervals(bars, ax, f"mean {_RATIO}")
    return [picture(family.name, figure, f"{family.name}: mean ratios of {len(bars)} schedulers")]


@register("histograms")
def histograms(context: Context) -> Section | None:
    """Return a histogram of the ratios for each family and scheduler."""
    figures = {f.name: [_histogram(g) for g in f.groups if g.are_many] for f in context.families}
    return gallery("Histograms of ratios", note("histograms"), figures)


def _histogram(group: Group) -> Markup:
    ratios = group.ratios
    counts = {
        "proved optimal": sum(ratio.most == 1 for ratio in ratios),
        "without a ratio": len(group.runs) - len(ratios),
        "without an upper end": sum(ratio.most is None for ratio in ratios),
    }
    said = [counted(len(ratios), "run"), f"mean {group.mean}"]
    said += [f"{number:,} {name}" for name, number in counts.items() if number]
    lows, highs = (
        [float(end) for end in ends if end is not None]
        for ends in ([r.least for r in ratios], [r.most for r in ratios])
    )
    figure, (ax,) = panels(1.8)
    histogram(lows, highs, ax, _RATIO)
    name = f"{group.label}, {group.family}: histogram of {len(ratios)} ratios, mean {group.mean}"
    return picture(group.label, figure, name, ", ".join(said))


@register("runs")
def runs(context: Context) -> Section | None:
    """Return the ratio of every run against the size of its instance."""
    figures = {}
    for family in context.families:
        drawn = [group for group in family.groups if group.are_many]
        ends = [[float(end) for r in g.ratios for end in (r.least, r.most) if end] for g in drawn]
        alike = 1 + _ALIKE * max(min(map(max, ends), default=1.0) - 1, 0.1)
        shared = [end for known in ends if max(known) <= alike for end in known]
        places = _places(context, [run.record for group in drawn for run in group.runs])
        figures[family.name] = [
            _runs(context, group, places, shared if max(known) <= alike else known)
            for group, known in zip(drawn, ends, strict=True)
        ]
    return gallery("Ratio of every run", f"{note('runs')} {note('points')}", figures)


def _runs(context: Context, group: Group, places: dict[int, float], up: list[float]) -> Markup:
    found: list[Ends] = []
    links: list[Link] = []
    for run in group.runs:
        if (ratio := run.ratio) is not None:
            most = None if ratio.most is None else float(ratio.most)
            found.append((places[context.study.place(run.record)], float(run.least), most))
            said = f"{latency_of(run.record)}: {ratio} times the optimum"
            links.append(_link(context, run.record, said))
    figure, (ax,) = panels(1.8)
    points(found, ax, context.looks[group.label], [*map(str, range(len(links)))])
    _sizes(context, group.runs[0].record, places, ax)
    spread(ax.yaxis, up, 1)
    ax.set_ylabel(_RATIO)
    name = f"{group.label}, {group.family}: ratio of {len(found)} runs, worst {group.worst}"
    return picture(group.label, figure, name, links=links)


def _link(context: Context, record: Record, said: str) -> Link:
    """Return what is said of an instance, and its certificate."""
    seed = "" if record.instance.seed is None else f", seed {record.instance.seed}"
    lines = [record.instance.name, f"{size_of(record)}{seed}", optimum_of(record), said]
    return "\n".join(lines), context.certificate(record.certificate)


def _places(context: Context, records: Iterable[Record]) -> dict[int, float]:
    """Return where instances stand: at their sizes, those of one size side by side."""
    sizes: dict[int, list[int]] = {}
    for place, record in sorted({context.study.place(r): r for r in records}.items()):
        sizes.setdefault(record.instance.requests, []).append(place)
    room = _ROOM * min((b - a for a, b in pairwise(sorted(sizes))), default=1)
    return {
        place: size + room * ((i + 0.5) / len(mine) - 0.5) if len(sizes) > 1 else i + 1.0
        for size, mine in sizes.items()
        for i, place in enumerate(mine)
    }


def _sizes(context: Context, record: Record, places: dict[int, float], ax: Axes) -> None:
    """Label the axis on which instances stand."""
    spread(ax.xaxis, [*places.values()])
    style.whole_numbers(ax.xaxis, max(places.values(), default=1))
    sizes = {context.study.instances[place].instance.requests for place in places}
    alone = f"instances, {record.instance.requests:,} requests each"
    ax.set_xlabel("requests" if len(sizes) > 1 else alone)


@register("gaps")
def gaps(context: Context) -> Section | None:
    """Return how far apart both sides of the optimum are, against size."""
    figures = []
    for family in context.families:
        known = [
            (record, 100 * (1 - record.lower / record.upper))
            for record in family.instances
            if record.upper and record.lower is not None
        ]
        if len(known) > 1:
            figures.append(_gaps(context, family.name, known))
    return gallery("Gap against size", f"{note('gaps')} {note('points')}", {"": figures})


def _gaps(context: Context, family: str, known: list[tuple[Record, float]]) -> Markup:
    places = _places(context, [record for record, _ in known])
    sizes: dict[float, list[float]] = {}
    for record, gap in known:
        sizes.setdefault(record.instance.requests, []).append(gap)
    figure, (ax,) = panels(1.8)
    if len(sizes) > 1 and len(known) >= _SEVERAL * len(sizes):
        medians = [median(sizes[size]) for size in sorted(sizes)]
        ax.plot(sorted(sizes), medians, color=style.INK, linewidth=0.8, linestyle=":")
    found = [(places[context.study.place(record)], gap, None) for record, gap in known]
    points(found, ax, 0, [*map(str, range(len(found)))])
    _sizes(context, known[0][0], places, ax)
    spread(ax.yaxis, [0.0, 1.0, *(gap for _, gap in known)])
    ax.set_ylabel("gap (%)")
    proved = sum(record.proved for record, _ in known)
    links = [_link(context, record, f"gap {gap:.2f}%") for record, gap in known]
    name = f"{family}: gap of {len(known)} instances against their size"
    title = f"{family}: {proved:,} of {len(known):,} proved"
    return picture(title, figure, name, links=links)
