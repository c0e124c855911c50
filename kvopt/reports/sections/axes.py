"""Mean latencies beside the optimum: over the number of requests, the cache and the rate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kvopt.experiments.studies.intervals import four_digits
from kvopt.experiments.studies.records import Record
from kvopt.reports.charts.axes import Box, Frame, path, spread
from kvopt.reports.charts.legend import beside, legend
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.layout import cell, figure, gallery, said_of, table, unfolded
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.study import COUNTS, differing, settings
from kvopt.reports.summaries import Curve, mean_latencies
from kvopt.reports.words import natural

_BOX = Box(440.0, 262.0, 52.0, 400.0, 24.0, 224.0)
_FEWEST, _MOST = 3, 12
"""Numbers of requests from which on there is a curve, and up to which chance did not choose."""


@dataclass(frozen=True)
class _Axis:
    """What a picture goes along: its title, and where an instance stands, None for nowhere."""

    title: str
    key: str
    at: Callable[[Record], float | None]


def _memory(record: Record) -> float | None:
    """Return the size of the cache, None where it was drawn at random."""
    instance = record.instance
    is_drawn = instance.seed is not None and "memory" not in instance.parameters
    return None if is_drawn else instance.memory


_REQUESTS = _Axis("requests", "n", lambda record: record.instance.requests)
_CACHE = _Axis("cache (tokens)", "memory", _memory)
_RATE = _Axis("rate of arrivals (times)", "rate", lambda r: r.instance.parameters.get("rate", 1))
_WORKERS = _Axis("machines", "workers", lambda r: r.instance.parameters.get("workers", 1))


@register("volume")
def volume(context: Context) -> Section | None:
    """Return a picture for each family with enough sizes that were not drawn at random."""
    figures = []
    for family in context.families:
        runs = {group.label: [run.record for run in group.runs] for group in family.groups}
        sizes = {record.instance.requests for record in family.instances}
        if _FEWEST <= len(sizes) <= _MOST:
            drawn = _measured(family.name, runs, _REQUESTS)
            figures.append(_figure(drawn, _REQUESTS, context.letters, drawn.values))
    note = said_of("volume-seconds" if context.study.in_seconds else "volume")
    return gallery("Latency over request volume", note, figures)


@register("by-memory")
def by_memory(context: Context) -> Section | None:
    """Return a picture for each trace or family that met several sizes of the cache."""
    return _along(context, _CACHE, "Latency against memory", "by-memory")


@register("by-rate")
def by_rate(context: Context) -> Section | None:
    """Return a picture for each trace or family that arrived at several rates."""
    return _along(context, _RATE, "Latency against the rate of arrivals", "by-rate")


@register("by-workers")
def by_workers(context: Context) -> Section | None:
    """Return a picture for each trace or family that met several numbers of machines."""
    return _along(context, _WORKERS, "Latency against the number of machines", "by-workers")


def _along(context: Context, axis: _Axis, title: str, name: str) -> Section | None:
    """Return a picture for all that differs in one axis alone."""
    original = {record.key: record for record in context.study.records}
    rows = [
        (group.label, original[run.record.key]) for group in context.groups for run in group.runs
    ]
    found: dict[tuple[str, str], dict[str, list[Record]]] = {}
    rest: dict[str, list[Mapping[str, object]]] = {}
    for label, record in rows:
        if axis.at(record) is not None:
            source = record.instance.family or record.instance.name
            others = {
                key: value
                for key, value in record.instance.parameters.items()
                if key not in (axis.key, *COUNTS)
            }
            rest.setdefault(source, []).append(others)
            place = source, json.dumps(others, sort_keys=True)
            found.setdefault(place, {}).setdefault(label, []).append(record)
    drawn: dict[str, list[_Curves]] = {}
    for (source, said), runs in sorted(found.items(), key=lambda each: natural(" ".join(each[0]))):
        if len({axis.at(record) for mine in runs.values() for record in mine}) > 1:
            keys = settings(json.loads(said), differing(rest[source]))
            heading = context.study.portable(", ".join([source, *keys]))
            drawn.setdefault(source, []).append(_measured(heading, runs, axis))
    figures = [
        _figure(each, axis, context.letters, [v for other in alike for v in other.values])
        for alike in drawn.values()
        for each in alike
    ]
    return gallery(title, said_of(name), figures)


@dataclass(frozen=True)
class _Curves:
    """What a picture shows: a curve for each scheduler, and both sides of the optimum."""

    title: str
    places: Sequence[float]
    unit: str
    found: Mapping[str, Curve]
    lower: Curve
    upper: Curve

    @property
    def values(self) -> list[float]:
        """Every mean latency."""
        curves = (*self.found.values(), self.lower, self.upper)
        return [value for curve in curves for value in curve.values()]


def _measured(title: str, runs: Mapping[str, Sequence[Record]], axis: _Axis) -> _Curves:
    """Return mean latencies along an axis; a scheduler has no place without all of its runs."""

    def curve(found: Iterable[tuple[Record, int | None]]) -> Curve:
        return mean_latencies(found, lambda record: axis.at(record) or 0)

    every = [record for mine in runs.values() for record in mine]
    lower, upper = map(curve, _sides(every))
    found = {
        label: means
        for label, mine in runs.items()
        if (means := curve((record, record.value) for record in mine))
    }
    places = sorted({axis.at(record) or 0 for record in every})
    return _Curves(title, places, "s" if every[0].in_seconds else "rounds", found, lower, upper)


def _figure(
    drawn: _Curves, axis: _Axis, letters: Mapping[str, str], values: Sequence[float]
) -> Markup:
    """Return a picture, whose axis holds some values, with a table of its numbers."""
    head = [axis.title, "proved bound", "best schedule"]
    head += [tag("abbr", letters[name], title=name) for name in drawn.found]
    rows = []
    for place in drawn.places:
        found = [means.get(place) for means in (drawn.lower, drawn.upper, *drawn.found.values())]
        cells = [cell("-" if value is None else four_digits(value), value) for value in found]
        rows.append([tag("th", f"{place:,}", scope="row", data_value=str(place)), *cells])
    unit = "seconds" if drawn.unit == "s" else drawn.unit
    caption = f"Mean latency of a request in {unit}, {drawn.title}."
    numbers = table(caption, head, rows, f"{drawn.title}: numbers", words=0)
    up = spread(f"mean latency ({drawn.unit})", values)
    picture = _picture(drawn, Frame(_BOX, spread(axis.title, drawn.places), up), letters)
    parts = join(picture, legend(letters, list(drawn.found)), unfolded("Numbers", numbers))
    return figure(drawn.title, None, parts)


def _sides(records: Sequence[Record]) -> list[list[tuple[Record, int | None]]]:
    """Return the best bound and the best schedule of each instance, whatever its limits were."""
    instances: dict[str, list[Record]] = {}
    for record in records:
        instances.setdefault(record.instance.hash, []).append(record)
    sides = []
    for name, best in (("lower", max), ("upper", min)):
        ends = (
            (mine[0], [end for each in mine if (end := getattr(each, name)) is not None])
            for mine in instances.values()
        )
        sides.append([(record, best(known, default=None)) for record, known in ends])
    return sides


def _picture(drawn: _Curves, frame: Frame, letters: Mapping[str, str]) -> Markup:
    """Draw the band that holds the optimum, and a line with a letter for each scheduler."""
    lower, upper = drawn.lower, drawn.upper
    over, bound = ([(n, curve[n]) for n in sorted(upper) if n in lower] for curve in (upper, lower))
    band = "L".join(frame.at(*corner) for corner in (*over, *reversed(bound)))
    ends = {name: max(curve.items()) for name, curve in drawn.found.items()}
    return frame.svg(
        f"{drawn.title}: mean latency of a request against {frame.x.title}",
        frame.axes(),
        path(f"M{band}z" if band else "", "band"),
        frame.line(bound, "trend") if drawn.unit == "s" else None,
        *(
            join(frame.line(sorted(curve.items()), "trace"), frame.dots(sorted(curve.items())))
            for curve in drawn.found.values()
        ),
        *beside(frame, ends, letters, led=True),
    )
