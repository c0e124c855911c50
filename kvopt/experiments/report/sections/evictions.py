"""Mean latencies against evictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from kvopt.experiments.report.layout import BOUND, note, picture, sign
from kvopt.experiments.report.registry import Context, Section, gallery, register
from kvopt.experiments.report.summaries import Family, Group, mean_latencies
from kvopt.experiments.studies.intervals import mean_seconds
from kvopt.show.plots import style
from kvopt.show.plots.charts import points, spread, stairs
from kvopt.show.plots.embedding import panels

_MOST_NAMED = 16
"""Schedulers up to which each is named; beyond, only those that stand out."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a scheduler stands."""

    name: str
    evictions: float
    least: float
    most: float | None


@register("evictions")
def evictions(context: Context) -> Section | None:
    """Return a picture for each family in which something was evicted."""
    figures = {family.name: _tradeoff(family, context.looks) for family in context.families}
    said = note("evictions-seconds" if context.study.in_seconds else "evictions")
    return gallery("Latency against evictions", said, figures, wide=True)


def _tradeoff(family: Family, looks: Mapping[str, int]) -> list[Markup]:
    """Draw a family, in seconds at the largest size with evictions; ratios of all sizes at once."""
    in_seconds = any(record.in_seconds for record in family.instances)
    sizes = sorted({record.instance.requests for record in family.instances}, reverse=True)
    for size in sizes if in_seconds else [0]:
        groups = _comparable(family.groups, size) if in_seconds else family.groups
        places = [place for group in groups if (place := _place(group)) is not None]
        if any(place.evictions for place in places):
            title = f"{family.name}, {size:,} requests" if in_seconds else family.name
            bounds = mean_latencies((record, record.lower) for record in family.instances)
            return [_scatter(title, places, looks, bounds.get(size), in_seconds)]
    return []


def _comparable(groups: Sequence[Group], size: int) -> list[Group]:
    """Return the runs on instances of one size that all schedulers met: seconds are no ratios."""
    groups = [group.sized(size) for group in groups]
    met = [{run.record.instance.hash for run in group.runs} for group in groups]
    common = set.intersection(*(found for found in met if found))
    return [
        replace(group, runs=tuple(r for r in group.runs if r.record.instance.hash in common))
        for group in groups
    ]


def _place(group: Group) -> _Place | None:
    served = sum(run.record.instance.requests for run in group.runs)
    least, most = group.mean.least, group.mean.most
    if least is None or not served or not group.completed:
        return None
    rate = group.evictions / served
    mean = mean_seconds(run.record for run in group.runs)
    if mean is not None:
        return _Place(group.label, rate, mean, None)
    return _Place(group.label, rate, float(least), None if most is None else float(most))


def _scatter(
    title: str, places: list[_Place], looks: Mapping[str, int], bound: float | None, seconds: bool
) -> Markup:
    what, unit = ("mean latency", " (s)") if seconds else ("mean ratio", " to the optimum")
    many = seconds and len(places) > _MOST_NAMED
    named = _notable(places) if many else places
    figure, (ax,) = panels(2.4)
    for place in places:
        points([(place.evictions, place.least, place.most)], ax, looks[place.name])
    stairs([(place.evictions, place.least) for place in places], ax)
    legend = [sign(looks[place.name], place.name) for place in named]
    ends = [end for place in places for end in (place.least, place.most) if end is not None]
    if seconds and bound is not None:
        ax.axhline(bound, color=style.BOUND, linewidth=1.2, linestyle="--")
        legend.append(BOUND)
        ends.append(bound)
    spread(ax.xaxis, [0.0, *(place.evictions for place in places)])
    spread(ax.yaxis, ends, 0 if seconds else 1)
    ax.set_xlabel("evictions per request")
    ax.set_ylabel(what + unit)
    name = f"{title}: {what} against evictions of {len(places)} schedulers"
    return picture(title, figure, name, legend=legend)


def _notable(places: Sequence[_Place]) -> list[_Place]:
    """Return the fastest and the slowest of those that never evict, and all that do."""
    calm = sorted((p for p in places if not p.evictions), key=lambda each: each.least)
    return [*calm[:1], *calm[1:][-1:], *(place for place in places if place.evictions)]
