"""Mean latencies against evictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kvopt.experiments.studies.intervals import mean_seconds
from kvopt.reports.charts.axes import Box, Frame, path, spread
from kvopt.reports.charts.legend import beside, legend
from kvopt.reports.charts.points import span
from kvopt.reports.html import Markup, join, number
from kvopt.reports.layout import figure, gallery, said_of
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.summaries import Family, Group, mean_latencies

_BOX = Box(440.0, 262.0, 52.0, 400.0, 24.0, 224.0)
_MOST_NAMED = 16
"""Schedulers up to which each has its letter; beyond, only those that stand out."""


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
    figures = [_tradeoff(family, context.letters) for family in context.families]
    note = said_of("evictions-seconds" if context.study.in_seconds else "evictions")
    return gallery("Latency against evictions", note, figures)


def _tradeoff(family: Family, letters: Mapping[str, str]) -> Markup | None:
    """Draw a family, in seconds at the largest size with evictions; ratios of all sizes at once."""
    in_seconds = any(record.in_seconds for record in family.instances)
    sizes = sorted({record.instance.requests for record in family.instances}, reverse=True)
    for size in sizes if in_seconds else [0]:
        groups = _comparable(family.groups, size) if in_seconds else family.groups
        places = [place for group in groups if (place := _place(group)) is not None]
        if any(place.evictions for place in places):
            title = f"{family.name}, {size:,} requests" if in_seconds else family.name
            many = in_seconds and len(places) > _MOST_NAMED
            named = {p.name: letters[p.name] for p in (_notable(places) if many else places)}
            bounds = mean_latencies((record, record.lower) for record in family.instances)
            bound = bounds.get(size) if in_seconds else None
            picture = _scatter(title, places, named, bound, in_seconds)
            return figure(title, None, join(picture, legend(letters, list(named))))
    return None


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
    title: str, places: list[_Place], letters: dict[str, str], bound: float | None, seconds: bool
) -> Markup:
    what, unit = ("mean latency", " (s)") if seconds else ("mean ratio", " to the optimum")
    ends = (end for place in places for end in (place.least, place.most, bound))
    known = [end for end in ends if end is not None]
    across = spread("evictions per request", [0.0, *(place.evictions for place in places)])
    frame = Frame(_BOX, across, spread(what + unit, known, floor=0 if seconds else 1))
    named = {p.name: (p.evictions, p.least) for p in places if p.name in letters}
    spans = (span(frame, place.evictions, place.least, place.most) for place in places)
    return frame.svg(
        f"{title}: {what} against evictions of {len(places)} schedulers",
        frame.axes(),
        None if bound is None else frame.level(bound, "capacity"),
        path(_stairs(places, frame), "trend"),
        path("".join(spans), "span"),
        frame.dots((place.evictions, place.least) for place in places),
        *beside(frame, named, letters),
    )


def _notable(places: Sequence[_Place]) -> list[_Place]:
    """Return the fastest and the slowest of those that never evict, and all that do."""
    calm = sorted((p for p in places if not p.evictions), key=lambda each: each.least)
    return [*calm[:1], *calm[1:][-1:], *(place for place in places if place.evictions)]


def _stairs(places: Sequence[_Place], frame: Frame) -> str:
    """Join, from left to right, schedulers that none beats on evictions and latency."""
    steps, best = "", float("inf")
    for place in sorted(places, key=lambda each: (each.evictions, each.least)):
        if place.least < best:
            best = place.least
            across, up = number(frame.x.at(place.evictions)), number(frame.y.at(best))
            steps += f"H{across}V{up}" if steps else f"M{across} {up}"
    return steps + f"H{number(frame.x.end)}" if steps else ""
