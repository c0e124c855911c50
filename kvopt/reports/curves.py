"""Latency over request volume: a line for each scheduler, and where the optimum lies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from kvopt.experiments.studies.records import Record
from kvopt.reports.axes import Frame, Scale, label, line
from kvopt.reports.context import Context, Section, column, table, unfolded
from kvopt.reports.figures import figure
from kvopt.reports.html import Markup, join, number, tag
from kvopt.reports.legend import apart, legend
from kvopt.reports.points import spread
from kvopt.reports.summaries import Group
from kvopt.reports.units import scale_of

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 440.0, 262.0, 52.0, 414.0, 24.0, 224.0
_FEWEST, _MOST = 3, 12
"""Sizes from which on there is a curve to draw, and up to which chance did not choose them."""

_NOTE = (
    "Mean latency of a request against the number of requests. Each letter is a scheduler; the "
    "hatched band holds the optimum, between the proved bound and the best schedule. A scheduler "
    "has no place where not all of its runs completed."
)
_NOTE_IN_SECONDS = (
    "Mean latency of a request in seconds against the number of requests. Each letter is a "
    "scheduler. The dashed line is the proved bound on schedules that are covered, and the "
    "hatched band between it and the best schedule holds the optimum; without certificates there "
    "is neither. A scheduler has no place where not all of its runs completed."
)

Curve = dict[int, float]
"""Mean latency of a request by number of requests."""


@dataclass(frozen=True)
class _Family:
    """The curves of one family."""

    name: str
    schedulers: dict[str, Curve]
    lower: Curve
    upper: Curve
    unit: str = "rounds"

    @property
    def sizes(self) -> list[int]:
        """Sizes to draw; none where they are too few, or were drawn at random."""
        return sorted(self.upper) if _FEWEST <= len(self.upper) <= _MOST else []


def curves(context: Context) -> Section | None:
    """Return a picture for each family with enough sizes, None where there is none."""
    found = [_family(context, name) for name in context.families]
    figures = [_drawn(each, context.letters) for each in found if each.sizes]
    if not figures:
        return None
    note = _NOTE_IN_SECONDS if context.study.in_seconds else _NOTE
    body = join(tag("p", note), tag("div", *figures, class_="figures wide"))
    return Section("volume", "Latency over request volume", body)


def _family(context: Context, name: str) -> _Family:
    known = [record for record in context.study.instances if record.instance.family == name]
    groups = [group for group in context.groups if group.family == name]
    found = {group.label: curve for group in groups if (curve := _of_group(group))}
    lower = _means((record, record.lower) for record in known)
    upper = _means((record, record.upper) for record in known)
    unit = "s" if known and known[0].in_seconds else "rounds"
    return _Family(name, found, lower, upper, unit)


def _of_group(group: Group) -> Curve:
    return _means((run.record, run.record.value) for run in group.runs)


def _means(found: Iterable[tuple[Record, int | None]]) -> Curve:
    """Return the mean of each size; where something is unknown there is none."""
    sizes: dict[int, list[float]] = {}
    unknown: set[int] = set()
    for record, total in found:
        count = record.instance.requests
        if total is None or not count:
            unknown.add(count)
        else:
            sizes.setdefault(count, []).append(total / count / scale_of(record))
    return {size: fmean(values) for size, values in sizes.items() if size not in unknown}


def _drawn(family: _Family, letters: Mapping[str, str]) -> Markup:
    values = [value for curve in family.schedulers.values() for value in curve.values()]
    values += [*family.lower.values(), *family.upper.values()]
    across, up = spread("requests", family.sizes), spread("rounds", values)
    x = Scale(across.low, across.high, _LEFT, _RIGHT - 14, across.logarithmic)
    y = Scale(up.low, up.high, _BOTTOM, _TOP, up.logarithmic)
    frame = Frame(_WIDTH, _HEIGHT, x, y)
    picture = frame.svg(
        f"{family.name}: mean latency of a request against the number of requests",
        frame.left(y.ticks(5), f"mean latency ({family.unit})"),
        frame.bottom(x.ticks(6), "requests"),
        line(_LEFT, _BOTTOM, _RIGHT - 14, _BOTTOM, "axis"),
        tag("path", d=_band(family, x, y), class_="band"),
        _bound(family, x, y) if family.unit == "s" else Markup(""),
        *(_line(curve, x, y) for curve in family.schedulers.values()),
        *_letters(letters, family.schedulers, x, y),
    )
    parts = join(
        picture,
        legend(letters, list(family.schedulers)),
        unfolded("Numbers", _numbers(family, letters)),
    )
    return figure(family.name, None, parts)


def _line(curve: Curve, x: Scale, y: Scale) -> Markup:
    places = [f"{number(x.at(size))} {number(y.at(curve[size]))}" for size in sorted(curve)]
    dots = "".join(f"M{place}h0" for place in places)
    return join(
        tag("path", d="M" + "L".join(places), class_="trace"),
        tag("path", d=dots, class_="dots"),
    )


def _band(family: _Family, x: Scale, y: Scale) -> str:
    """Outline the band of the optimum over the sizes at which both sides are known."""
    sizes = [size for size in family.sizes if size in family.lower]
    over = [f"{number(x.at(size))} {number(y.at(family.upper[size]))}" for size in sizes]
    under = [f"{number(x.at(size))} {number(y.at(family.lower[size]))}" for size in sizes]
    return f"M{'L'.join([*over, *reversed(under)])}z" if sizes else ""


def _bound(family: _Family, x: Scale, y: Scale) -> Markup:
    places = [
        f"{number(x.at(n))} {number(y.at(family.lower[n]))}"
        for n in family.sizes
        if n in family.lower
    ]
    return tag("path", d="M" + "L".join(places), class_="trend") if places else Markup("")


def _letters(
    letters: Mapping[str, str], found: Mapping[str, Curve], x: Scale, y: Scale
) -> list[Markup]:
    """Put each letter beside the end of its line, apart from others that end there."""
    last = max((max(curve) for curve in found.values()), default=0)
    ends: dict[int, list[str]] = {}
    for name, curve in found.items():
        ends.setdefault(max(curve), []).append(name)
    parts = []
    for end, names in sorted(ends.items()):
        right = _RIGHT + 1 if end == last else x.at(end) + 14
        places = [y.at(found[name][end]) for name in names]
        for name, place, moved in zip(names, places, apart(places, _TOP, _BOTTOM - 4), strict=True):
            parts.append(line(x.at(end) + 4, place, right - 2, moved, "leader"))
            parts.append(label(right, moved + 3.5, letters[name]))
    return parts


def _numbers(family: _Family, letters: Mapping[str, str]) -> Markup:
    """Return the curves as a table."""
    head = [column("requests", "number"), column("proved bound", "number")]
    head += [column("best schedule", "number")]
    head += [column(tag("abbr", letters[name], title=name), "number") for name in family.schedulers]
    found = (family.lower, family.upper, *family.schedulers.values())
    rows = [
        tag(
            "tr",
            tag("th", f"{size:,}", scope="row", data_value=size),
            *(_cell(curve.get(size)) for curve in found),
        )
        for size in family.sizes
    ]
    return table(
        f"Mean latency of a request, {family.name}.", head, rows, f"{family.name}: numbers"
    )


def _cell(value: float | None) -> Markup:
    if value is None:
        return tag("td", "-", data_value="")
    return tag("td", f"{value:,.2f}", data_value=f"{value:.9g}")
