"""Latency against evictions: which schedulers are beaten on both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kvopt.experiments.studies.intervals import mean_seconds
from kvopt.model.batch_time import NANOSECONDS
from kvopt.reports.axes import Frame, Scale, label, line
from kvopt.reports.context import Context, Section
from kvopt.reports.figures import figure
from kvopt.reports.html import Markup, join, number, tag
from kvopt.reports.legend import apart, legend
from kvopt.reports.points import as_float, spread
from kvopt.reports.summaries import Group

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 440.0, 262.0, 52.0, 420.0, 24.0, 224.0

_NOTE = (
    "Mean ratio to the optimum against evictions for each request that was served: down and left "
    "is better. A dot is the lower end of the ratio, a line leads to the upper end. The stairs "
    "join schedulers that no other one beats on both, judged by lower ends. Schedulers with runs "
    "that did not complete are left out."
)
_NOTE_IN_SECONDS = (
    "Mean latency of a request in seconds against evictions for each request, at the largest "
    "number of requests at which a scheduler evicted and completed: down and left is better. The "
    "stairs join schedulers that no other one beats on both; the dashed line is the proved bound, "
    "where there is one. Only instances that all schedulers met count, and schedulers with runs "
    "that did not complete are left out. Of very many, those stand with a letter that evict, and "
    "the fastest and the slowest of the others."
)


_MOST_NAMED = 16
"""Schedulers up to which each has its letter; beyond, only those that stand out."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a scheduler stands."""

    name: str
    evictions: float
    least: float
    most: float | None


@dataclass(frozen=True, slots=True)
class _Bound:
    """What is drawn upwards, from where on, and the proved bound."""

    name: str
    title: str
    floor: int
    value: float | None = None


def tradeoff(context: Context) -> Section | None:
    """Return a picture for each family in which something was evicted."""
    figures = []
    for family in context.families:
        for size in _sizes(context, family):
            groups = _comparable([g for g in context.groups if g.family == family], size)
            places = [place for group in groups if (place := _place(group)) is not None]
            if any(place.evictions for place in places):
                bound = _bound(context, family, size)
                title = family if size is None else f"{family}, {size:,} requests"
                many = size is not None and len(places) > _MOST_NAMED
                named = _notable(places) if many else places
                letters = {place.name: context.letters[place.name] for place in named}
                figures.append(_drawn(title, places, letters, bound))
                break
    if not figures:
        return None
    note = _NOTE_IN_SECONDS if context.study.in_seconds else _NOTE
    body = join(tag("p", note), tag("div", *figures, class_="figures wide"))
    return Section("evictions", "Latency against evictions", body)


def _sizes(context: Context, family: str) -> Sequence[int | None]:
    """Return the sizes to try, the largest first; ratios of all sizes are looked at together."""
    known = [r for r in context.study.instances if r.instance.family == family]
    if not any(record.in_seconds for record in known):
        return [None]
    return sorted({record.instance.requests for record in known}, reverse=True)


def _comparable(groups: Sequence[Group], size: int | None) -> list[Group]:
    """Return the runs on instances of one size that all schedulers met: seconds are no ratios."""
    if size is None:
        return list(groups)
    met = [
        {run.record.instance.hash for run in group.runs if run.record.instance.requests == size}
        for group in groups
    ]
    common = set.intersection(*(found for found in met if found))
    return [
        replace(group, runs=tuple(r for r in group.runs if r.record.instance.hash in common))
        for group in groups
    ]


def _place(group: Group) -> _Place | None:
    served = sum(run.record.instance.requests for run in group.runs)
    average = group.mean
    if average.least is None or not served or group.ended("completed") < len(group.runs):
        return None
    evictions = group.evictions / served
    mean = mean_seconds(run.record for run in group.runs)
    if mean is not None:
        return _Place(group.label, evictions, mean, None)
    return _Place(group.label, evictions, float(average.least), as_float(average.most))


def _bound(context: Context, family: str, size: int | None) -> _Bound:
    """Return what is drawn upwards, in seconds with the mean latency that is proved to be least."""
    if size is None:
        return _Bound("mean ratio", "mean ratio to the optimum", 1)
    here = [r for r in context.study.instances if r.instance.family == family]
    known = [record for record in here if record.instance.requests == size]
    served = size * len(known)
    totals = [record.lower for record in known if record.lower is not None]
    least = sum(totals) / served / NANOSECONDS if served and len(totals) == len(known) else None
    return _Bound("mean latency", "mean latency (s)", 0, least)


def _drawn(
    family: str, places: Sequence[_Place], letters: Mapping[str, str], bound: _Bound
) -> Markup:
    ends = [end for place in places for end in (place.least, place.most) if end is not None]
    ends += [] if bound.value is None else [bound.value]
    across = spread("evictions", [0.0, *(place.evictions for place in places)])
    up = spread(bound.name, ends, floor=bound.floor)
    x = Scale(across.low, across.high, _LEFT, _RIGHT - 16)
    y = Scale(up.low, up.high, _BOTTOM, _TOP, up.logarithmic)
    frame = Frame(_WIDTH, _HEIGHT, x, y)
    named = [place for place in places if place.name in letters]
    picture = frame.svg(
        f"{family}: {bound.name} against evictions of {len(places)} schedulers",
        frame.left(y.ticks(5), bound.title),
        frame.bottom(x.ticks(6), "evictions per request"),
        line(_LEFT, _BOTTOM, _RIGHT - 16, _BOTTOM, "axis"),
        *_across(bound, x, y),
        tag("path", d=_stairs(places, x, y), class_="trend"),
        tag("path", d="".join(_span(place, x, y) for place in places), class_="span"),
        tag("path", d="".join(_dot(place, x, y) for place in places), class_="dots"),
        *_letters(letters, named, x, y),
    )
    return figure(family, None, join(picture, legend(letters, [place.name for place in named])))


def _across(bound: _Bound, x: Scale, y: Scale) -> list[Markup]:
    if bound.value is None:
        return []
    return [line(x.start, y.at(bound.value), x.end, y.at(bound.value), "capacity")]


def _notable(places: Sequence[_Place]) -> list[_Place]:
    """Return the fastest and the slowest of those that never evict, and all that do."""
    calm = sorted((p for p in places if not p.evictions), key=lambda each: each.least)
    return [*calm[:1], *calm[1:][-1:], *(place for place in places if place.evictions)]


def _stairs(places: Sequence[_Place], x: Scale, y: Scale) -> str:
    """Join, from left to right, schedulers that none beats on evictions and latency."""
    path, best = "", float("inf")
    for place in sorted(places, key=lambda each: (each.evictions, each.least)):
        if place.least < best:
            best = place.least
            across, up = number(x.at(place.evictions)), number(y.at(best))
            path += f"H{across}V{up}" if path else f"M{across} {up}"
    return path + f"H{number(x.end)}" if path else ""


def _span(place: _Place, x: Scale, y: Scale) -> str:
    if place.most is None or place.most == place.least:
        return ""
    return (
        f"M{number(x.at(place.evictions))} {number(y.at(place.least))}V{number(y.at(place.most))}"
    )


def _dot(place: _Place, x: Scale, y: Scale) -> str:
    return f"M{number(x.at(place.evictions))} {number(y.at(place.least))}h0"


def _letters(
    letters: Mapping[str, str], places: Sequence[_Place], x: Scale, y: Scale
) -> list[Markup]:
    """Put a letter right of each dot; those above one another are moved apart."""
    columns: dict[int, list[int]] = {}
    for i, place in enumerate(places):
        columns.setdefault(round(x.at(place.evictions) / 16), []).append(i)
    parts = []
    for members in columns.values():
        heights = apart([y.at(places[i].least) for i in members], _TOP, _BOTTOM - 4)
        for i, height in zip(members, heights, strict=True):
            parts.append(
                label(x.at(places[i].evictions) + 6, height + 3.5, letters[places[i].name])
            )
    return parts
