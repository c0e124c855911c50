"""Mean latencies beside the optimum: over the number of requests, the cache and the rate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kvopt.experiments.report.layout import BOUND, OPTIMUM, note, picture, pieces, sign
from kvopt.experiments.report.registry import Context, Section, gallery, register
from kvopt.experiments.report.study import COUNTS, differing, settings
from kvopt.experiments.report.summaries import Curve, mean_latencies
from kvopt.experiments.report.words import natural
from kvopt.experiments.studies.records import Record, grouped
from kvopt.show.plots.charts import along, spread
from kvopt.show.plots.embedding import panels

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
_AXES = {
    "by-memory": ("memory", _Axis("cache (tokens)", "memory", _memory)),
    "by-rate": (
        "the rate of arrivals",
        _Axis("rate of arrivals (times)", "rate", lambda r: r.instance.parameters.get("rate", 1)),
    ),
    "by-workers": (
        "the number of machines",
        _Axis("machines", "workers", lambda r: r.instance.parameters.get("workers", 1)),
    ),
}


@register("volume")
def volume(context: Context) -> Section | None:
    """Return a picture for each family with enough sizes that were not drawn at random."""
    figures = {}
    for family in context.families:
        runs = {group.label: [run.record for run in group.runs] for group in family.groups}
        sizes = {record.instance.requests for record in family.instances}
        if _FEWEST <= len(sizes) <= _MOST:
            drawn = _measured(family.name, runs, _REQUESTS)
            figures[family.name] = [_figure(drawn, _REQUESTS, context.looks, drawn.values)]
    said = note("volume-seconds" if context.study.in_seconds else "volume")
    return gallery("Latency over request volume", said, figures, wide=True)


@register("by-memory")
def by_memory(context: Context) -> Section | None:
    """Return a picture for each trace or family that met several sizes of the cache."""
    return _along("by-memory", context)


@register("by-rate")
def by_rate(context: Context) -> Section | None:
    """Return a picture for each trace or family that arrived at several rates."""
    return _along("by-rate", context)


@register("by-workers")
def by_workers(context: Context) -> Section | None:
    """Return a picture for each trace or family that met several numbers of machines."""
    return _along("by-workers", context)


def _along(name: str, context: Context) -> Section | None:
    """Return a picture for all that differs in one axis alone."""
    title, axis = _AXES[name]
    original = {record.key: record for record in context.study.records}
    found: dict[tuple[str, str], dict[str, list[Record]]] = {}
    rest: dict[str, list[Mapping[str, object]]] = {}
    for group in context.groups:
        for record in (original[run.record.key] for run in group.runs):
            if axis.at(record) is not None:
                source = record.instance.family or record.instance.name
                keys = record.instance.parameters.items()
                others = {k: value for k, value in keys if k not in (axis.key, *COUNTS)}
                rest.setdefault(source, []).append(others)
                place = source, json.dumps(others, sort_keys=True)
                found.setdefault(place, {}).setdefault(group.label, []).append(record)
    drawn: dict[str, list[_Curves]] = {}
    for (source, said), runs in sorted(found.items(), key=lambda each: natural(" ".join(each[0]))):
        if len({axis.at(record) for mine in runs.values() for record in mine}) > 1:
            told = settings(json.loads(said), differing(rest[source]))
            heading = context.study.portable(", ".join([source, *told]))
            drawn.setdefault(source, []).append(_measured(heading, runs, axis))
    figures = {
        source: [
            _figure(each, axis, context.looks, [v for other in alike for v in other.values])
            for each in alike
        ]
        for source, alike in drawn.items()
    }
    return gallery(f"Latency against {title}", note(name), figures, wide=True)


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
    instances = grouped(every, lambda record: record.instance.hash).values()
    # The best of each side, whatever the limits were.
    lower, upper = (
        curve(
            (
                mine[0],
                best((end for r in mine if (end := getattr(r, side)) is not None), default=None),
            )
            for mine in instances
        )
        for side, best in (("lower", max), ("upper", min))
    )
    curves = {name: curve((r, r.value) for r in mine) for name, mine in runs.items()}
    found = {name: means for name, means in curves.items() if means}
    places = sorted({axis.at(record) or 0 for record in every})
    unit = "seconds" if every[0].in_seconds else "rounds"
    return _Curves(title, places, unit, found, lower, upper)


def _figure(
    drawn: _Curves, axis: _Axis, looks: Mapping[str, int], values: Sequence[float]
) -> Markup:
    """Return a picture, whose axis holds some values, with a table of its numbers."""
    head = [axis.title, "proved bound", "best schedule", *drawn.found]
    columns = (drawn.lower, drawn.upper, *drawn.found.values())
    rows = [[f"{x:,g}", *(means.get(x) for means in columns)] for x in drawn.places]
    caption = f"Mean latency of a request in {drawn.unit}, {drawn.title}."
    figure, (ax,) = panels(2.4)
    optimum = [(x, drawn.lower.get(x), drawn.upper.get(x)) for x in drawn.places]
    along(optimum, {name: [*curve.items()] for name, curve in drawn.found.items()}, ax, looks)
    spread(ax.xaxis, drawn.places)
    spread(ax.yaxis, values)
    ax.set_xlabel(axis.title)
    ax.set_ylabel(f"mean latency ({drawn.unit})")
    name = f"{drawn.title}: mean latency of a request against {axis.title}"
    legend = [sign(looks[label], label) for label in drawn.found]
    is_known = any(None not in each for each in optimum)
    more = pieces.unfolded("Numbers", pieces.table(caption, head, rows))
    shown = [*((OPTIMUM, BOUND) if is_known else ()), *legend]
    return picture(drawn.title, figure, name, legend=shown, more=more)
