"""Mean latencies against evictions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from markupsafe import Markup

from kvopt.experiments.report.layout import BOUND, picture, sign
from kvopt.experiments.report.registry import Context, pictures
from kvopt.experiments.report.summaries import Family, mean_latencies
from kvopt.experiments.studies.intervals import Runs, mean_seconds
from kvopt.show.plots import style
from kvopt.show.plots.charts import points, spread, stairs
from kvopt.show.plots.embedding import panels

_MOST_NAMED = 16
"""Up to so many schedulers each is named; of more, only the extreme ones."""


class _Place(NamedTuple):
    """Position of a scheduler."""

    name: str
    evictions: float
    least: float
    most: float | None


@pictures("evictions")
def evictions(context: Context, family: Family) -> list[Markup]:
    """Draw a family, in seconds at the largest size with evictions; ratios of all sizes."""
    in_seconds = context.study.in_seconds
    sizes = sorted({record.instance.requests for record in family.instances}, reverse=True)
    for size in sizes if in_seconds else [0]:
        groups = _comparable(family.groups, size) if in_seconds else family.groups
        places = [place for group in groups if (place := _place(group)) is not None]
        if any(place.evictions for place in places):
            title = f"{family.name}, {size:,} requests" if in_seconds else family.name
            bounds = mean_latencies((record, record.lower) for record in family.instances)
            return [_scatter(context, title, places, bounds.get(size) if in_seconds else None)]
    return []


def _comparable(groups: Sequence[Runs], size: int) -> list[Runs]:
    """Return runs on the instances of one size that all schedulers ran: seconds are not ratios."""
    met = [{run.instance.hash for run in group.sized(size).records} for group in groups]
    common = set.intersection(*filter(None, met))
    return [group.sized(size, common) for group in groups]


def _place(group: Runs) -> _Place | None:
    served = sum(run.instance.requests for run in group.records)
    least: float | Fraction | None = group.mean.least
    most = group.mean.most
    if least is None or not served or not group.completed:
        return None
    mean = mean_seconds(group.records)
    if mean is not None:
        least, most = mean, None
    ends = float(least), None if most is None else float(most)
    return _Place(group.policy, group.evictions / served, *ends)


def _scatter(context: Context, title: str, places: Sequence[_Place], bound: float | None) -> Markup:
    seconds, looks = context.study.in_seconds, context.looks
    what, unit = ("mean latency", " (s)") if seconds else ("mean ratio", " to the optimum")
    figure, (ax,) = panels(2.4)
    for place in places:
        points([place[1:]], ax, looks[place.name])
    stairs([(place.evictions, place.least) for place in places], ax)
    many = seconds and len(places) > _MOST_NAMED
    named = _notable(places) if many else places
    legend = [sign(looks[place.name], place.name) for place in named]
    ends = [end for place in places for end in (place.least, place.most) if end is not None]
    if bound is not None:
        ax.axhline(bound, color=style.BOUND, linewidth=1.2, linestyle="--")
        legend.append(BOUND)
        ends.append(bound)
    spread(ax.xaxis, [0.0, *(place.evictions for place in places)])
    spread(ax.yaxis, ends, 0 if seconds else 1)
    ax.set(xlabel="evictions per request", ylabel=what + unit)
    name = f"{title}: {what} against evictions of {len(places)} schedulers"
    return picture(title, figure, name, legend=legend)


def _notable(places: Sequence[_Place]) -> list[_Place]:
    """Return the fastest and the slowest of those that never evict, and all that do."""
    calm = sorted((p for p in places if not p.evictions), key=lambda each: each.least)
    return [*calm[:1], *calm[1:][-1:], *(place for place in places if place.evictions)]
