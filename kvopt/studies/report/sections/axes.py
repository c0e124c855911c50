"""Mean latencies over the number of requests, the cache and the rate, and against evictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

from markupsafe import Markup

from kvopt.show.plots import style
from kvopt.show.plots.charts import along, points, spread, stairs
from kvopt.show.plots.embedding import panels
from kvopt.studies.intervals import Runs, mean_seconds
from kvopt.studies.records import COUNTS, Record, grouped
from kvopt.studies.report.context import TEXTS, Context
from kvopt.studies.report.layout import BOUND, OPTIMUM, picture, pieces, sign
from kvopt.studies.report.study import Family
from kvopt.studies.report.words import (
    Curve,
    differing,
    in_words,
    mean_latencies,
    natural,
)

_FEWEST, _MOST = 3, 12
"""Numbers of requests that make a curve, and up to which they count as chosen, not drawn."""

_MOST_NAMED = 16
"""Up to so many schedulers each is named; of more, only the extreme ones."""

ByScheduler = Mapping[str, Sequence[Record]]
"""Records by scheduler."""


def _place(record: Record, key: str) -> float | None:
    """Return the place of an instance, None if its cache was drawn at random."""
    instance = record.instance
    if key == "memory":
        is_drawn = instance.seed is not None and key not in instance.parameters
        return None if is_drawn else instance.memory
    return instance.requests if key == "n" else instance.parameters.get(key, 1)


def volume(context: Context, family: Family) -> list[Markup]:
    """Return a picture of a family with enough sizes that were not drawn at random."""
    sizes = {record.instance.requests for record in family.instances}
    if not _FEWEST <= len(sizes) <= _MOST:
        return []
    runs = {group.policy: group.records for group in family.groups}
    return _drawn(context, "volume", {family.name: runs})


def along_axis(context: Context, name: str) -> str:
    """Return pictures of each trace or family that differs in one axis only."""
    key = TEXTS[name]["key"]
    original = {record.key: record for record in context.study.records}
    labels = {run.key: group.policy for group in context.groups for run in group.records}
    placed = [original[run] for run in labels if _place(original[run], key) is not None]
    sources = grouped(placed, _source)
    varied = {source: differing(_others(r, key) for r in sources[source]) for source in sources}

    def heading(record: Record) -> str:
        said = in_words(_others(record, key), varied[_source(record)])
        return ", ".join(filter(None, (_source(record), said)))

    drawn = {}
    for source in sorted(sources, key=natural):
        alike = grouped(sources[source], heading)
        headed = {
            context.study.portable(said): grouped(alike[said], lambda each: labels[each.key])
            for said in sorted(alike, key=natural)
            if len({_place(record, key) for record in alike[said]}) > 1
        }
        drawn[source] = _drawn(context, name, headed)
    return context.gallery(name, drawn)


def _source(record: Record) -> str:
    return record.instance.family or record.instance.name


def _others(record: Record, key: str) -> dict[str, Any]:
    """Return the parameters of an instance except an axis."""
    keys = record.instance.parameters
    return {name: value for name, value in keys.items() if name not in (key, *COUNTS)}


def _drawn(context: Context, name: str, headed: Mapping[str, ByScheduler]) -> list[Markup]:
    """Return pictures by heading, which share their axis of latency, with their numbers."""
    axis, key = TEXTS[name]["axis"], TEXTS[name]["key"]
    found = {heading: _curves(runs, key) for heading, runs in headed.items()}
    values = [y for curves in found.values() for curve in curves.values() for y in curve.values()]
    made = []
    for heading, curves in found.items():
        records = [*chain.from_iterable(headed[heading].values())]
        places = sorted({_place(record, key) or 0 for record in records})
        unit = "seconds" if records[0].in_seconds else "rounds"
        cells = [[f"{x:,g}", *(curve.get(x) for curve in curves.values())] for x in places]
        caption = f"Mean latency of a request in {unit}, {heading}."
        more = pieces.unfolded("Numbers", pieces.table(caption, [axis, *curves], cells))
        lower, upper, *schedulers = curves.items()
        optimum = [(x, lower[1].get(x), upper[1].get(x)) for x in places]
        figure, (ax,) = panels(2.4)
        lines = {label: [*curve.items()] for label, curve in schedulers}
        along(optimum, lines, ax, context.looks)
        spread(ax.xaxis, places)
        spread(ax.yaxis, values)
        ax.set(xlabel=axis, ylabel=f"mean latency ({unit})")
        is_known = any(None not in each for each in optimum)
        legend = [*((OPTIMUM, BOUND) if is_known else ())]
        legend += [sign(context.looks[label], label) for label in lines]
        said = f"{heading}: mean latency of a request against {axis}"
        made.append(picture(heading, figure, said, legend=legend, more=more))
    return made


def _curves(runs: ByScheduler, key: str) -> dict[str, Curve]:
    """Return the mean latencies of both sides of the optimum and of schedulers, by place."""

    def curve(found: Iterable[tuple[Record, int | None]]) -> Curve:
        return mean_latencies(found, lambda record: _place(record, key) or 0)

    every = chain.from_iterable(runs.values())
    instances = grouped(every, lambda record: record.instance.hash).values()
    # The best of each side over all limits; a scheduler needs all runs to complete.
    lower = curve((mine[0], _best(max, (r.lower for r in mine))) for mine in instances)
    upper = curve((mine[0], _best(min, (r.upper for r in mine))) for mine in instances)
    found = {label: curve((run, run.value) for run in mine) for label, mine in runs.items()}
    known = {label: means for label, means in found.items() if means}
    return {"proved bound": lower, "best schedule": upper, **known}


def _best(best: Callable[..., int | None], ends: Iterable[int | None]) -> int | None:
    return best((end for end in ends if end is not None), default=None)


class _Place(NamedTuple):
    """Position of a scheduler."""

    name: str
    evictions: float
    least: float | Fraction
    most: Fraction | None


def evictions(context: Context, family: Family) -> list[Markup]:
    """Draw a family, in seconds at the largest size with evictions; ratios of all sizes."""
    in_seconds = context.study.in_seconds
    sizes = sorted({record.instance.requests for record in family.instances}, reverse=True)
    for size in sizes if in_seconds else [0]:
        groups = _comparable(family.groups, size) if in_seconds else family.groups
        places = [place for group in groups if (place := _position(group)) is not None]
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


def _position(group: Runs) -> _Place | None:
    served = sum(run.instance.requests for run in group.records)
    if group.mean.least is None or not served or not group.completed:
        return None
    seconds = mean_seconds(group.records)
    ends = (group.mean.least, group.mean.most) if seconds is None else (seconds, None)
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
    spread(ax.xaxis, [0, *(place.evictions for place in places)])
    spread(ax.yaxis, ends, 0 if seconds else 1)
    ax.set(xlabel="evictions per request", ylabel=what + unit)
    name = f"{title}: {what} against evictions of {len(places)} schedulers"
    return picture(title, figure, name, legend=legend)


def _notable(places: Sequence[_Place]) -> list[_Place]:
    """Return the fastest and the slowest of those that never evict, and all that do."""
    calm = sorted((p for p in places if not p.evictions), key=lambda each: each.least)
    return [*calm[:1], *calm[1:][-1:], *(place for place in places if place.evictions)]
