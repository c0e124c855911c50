"""Latency against evictions: which schedulers are beaten on both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvopt.reports.axes import Frame, Scale, label, line
from kvopt.reports.context import Context, Section
from kvopt.reports.figures import figure
from kvopt.reports.html import Markup, join, number, tag
from kvopt.reports.letters import apart, legend
from kvopt.reports.points import as_float, spread
from kvopt.reports.summaries import Group

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 440.0, 262.0, 52.0, 420.0, 24.0, 224.0

_NOTE = (
    "Mean ratio to the optimum against evictions for each request that was served: down and left "
    "is better. A dot is the lower end of the ratio, a line leads to the upper end. The stairs "
    "join schedulers that no other one beats on both, judged by lower ends. Schedulers with runs "
    "that did not complete are left out."
)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a scheduler stands."""

    name: str
    evictions: float
    least: float
    most: float | None


def tradeoff(context: Context) -> Section | None:
    """Return a picture for each family in which something was evicted."""
    figures = []
    for family in context.families:
        places = [
            place
            for group in context.groups
            if group.family == family and (place := _place(group)) is not None
        ]
        if any(place.evictions for place in places):
            figures.append(_drawn(family, places, context.letters))
    if not figures:
        return None
    body = join(tag("p", _NOTE), tag("div", *figures, class_="figures wide"))
    return Section("evictions", "Latency against evictions", body)


def _place(group: Group) -> _Place | None:
    served = sum(run.record.instance.requests for run in group.runs)
    average = group.mean
    if average.least is None or not served or group.ended("completed") < len(group.runs):
        return None
    evictions = group.evictions / served
    return _Place(group.label, evictions, float(average.least), as_float(average.most))


def _drawn(family: str, places: Sequence[_Place], letters: Mapping[str, str]) -> Markup:
    ends = [end for place in places for end in (place.least, place.most) if end is not None]
    across = spread("evictions", [0.0, *(place.evictions for place in places)])
    up = spread("ratio", ends, floor=1)
    x = Scale(across.low, across.high, _LEFT, _RIGHT - 16)
    y = Scale(up.low, up.high, _BOTTOM, _TOP, up.logarithmic)
    frame = Frame(_WIDTH, _HEIGHT, x, y)
    picture = frame.svg(
        f"{family}: mean ratio against evictions of {len(places)} schedulers",
        frame.left(y.ticks(5), "mean ratio to the optimum"),
        frame.bottom(x.ticks(6), "evictions per request"),
        line(_LEFT, _BOTTOM, _RIGHT - 16, _BOTTOM, "axis"),
        tag("path", d=_stairs(places, x, y), class_="trend"),
        tag("path", d="".join(_span(place, x, y) for place in places), class_="span"),
        tag("path", d="".join(_dot(place, x, y) for place in places), class_="dots"),
        *_letters(letters, places, x, y),
    )
    return figure(family, None, join(picture, legend(letters, [place.name for place in places])))


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
