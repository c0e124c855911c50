"""Mean latencies beside the optimum: over the number of requests, the cache and the rate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kvopt.experiments.studies.intervals import four_digits
from kvopt.experiments.studies.records import Record
from kvopt.reports.charts.axes import Box, Frame, path, spread
from kvopt.reports.charts.letters import beside, legend
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


@register("volume")
def volume(context: Context) -> Section | None:
    """Return a picture for each family with enough sizes that were not drawn at random."""
    figures = []
    for family in context.families:
        runs = {group.label: [run.record for run in group.runs] for group in family.groups}
        sizes = {record.instance.requests for record in family.instances}
        if _FEWEST <= len(sizes) <= _MOST:
            figures.append(_figure(family.name, runs, _REQUESTS, context.letters))
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
    figures = []
    for (source, said), runs in sorted(found.items(), key=lambda each: natural(" ".join(each[0]))):
        if len({axis.at(record) for mine in runs.values() for record in mine}) > 1:
            keys = settings(json.loads(said), differing(rest[source]))
            figures.append(_figure(", ".join([source, *keys]), runs, axis, context.letters))
    return gallery(title, said_of(name), figures)


def _figure(
    title: str, runs: Mapping[str, Sequence[Record]], axis: _Axis, letters: Mapping[str, str]
) -> Markup:
    """Return a picture with a table of its numbers; a scheduler has no place without its runs."""

    def curve(found: Iterable[tuple[Record, int | None]]) -> Curve:
        return mean_latencies(found, lambda record: axis.at(record) or 0)

    every = [record for mine in runs.values() for record in mine]
    lower, upper = map(curve, _sides(every))
    found = {
        label: means
        for label, mine in runs.items()
        if (means := curve((record, record.value) for record in mine))
    }
    unit = "s" if every[0].in_seconds else "rounds"
    head = [axis.title, "proved bound", "best schedule"]
    head += [tag("abbr", letters[name], title=name) for name in found]
    rows = []
    for place in sorted({axis.at(record) or 0 for record in every}):
        values = [means.get(place) for means in (lower, upper, *found.values())]
        cells = [cell("-" if value is None else four_digits(value), value) for value in values]
        rows.append([tag("th", f"{place:,}", scope="row", data_value=str(place)), *cells])
    caption = f"Mean latency of a request in {'seconds' if unit == 's' else unit}, {title}."
    numbers = table(caption, head, rows, f"{title}: numbers", words=0)
    picture = _curves(title, found, lower, upper, axis.title, unit, letters)
    parts = join(picture, legend(letters, list(found)), unfolded("Numbers", numbers))
    return figure(title, None, parts)


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


def _curves(
    title: str,
    found: Mapping[str, Curve],
    lower: Curve,
    upper: Curve,
    across: str,
    unit: str,
    letters: Mapping[str, str],
) -> Markup:
    values = [value for curve in (*found.values(), lower, upper) for value in curve.values()]
    places = {place for curve in (*found.values(), lower, upper) for place in curve}
    frame = Frame(_BOX, spread(across, places), spread(f"mean latency ({unit})", values))
    over, bound = ([(n, curve[n]) for n in sorted(upper) if n in lower] for curve in (upper, lower))
    band = "L".join(frame.at(*corner) for corner in (*over, *reversed(bound)))
    return frame.svg(
        f"{title}: mean latency of a request against {across}",
        frame.axes(),
        path(f"M{band}z" if band else "", "band"),
        frame.line(bound, "trend") if unit == "s" else None,
        *(
            join(frame.line(sorted(curve.items()), "trace"), frame.dots(sorted(curve.items())))
            for curve in found.values()
        ),
        *beside(frame, {name: max(c.items()) for name, c in found.items()}, letters, led=True),
    )
