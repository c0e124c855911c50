"""Mean latencies over the number of requests, the cache and the rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from markupsafe import Markup

from kvopt.show.plots.charts import along, spread
from kvopt.show.plots.embedding import panels
from kvopt.studies.records import COUNTS, Record, grouped, natural
from kvopt.studies.report.context import TEXTS, Context
from kvopt.studies.report.layout import BOUND, OPTIMUM, picture, pieces, sign
from kvopt.studies.report.words import (
    Curve,
    differing,
    in_words,
    mean_latencies,
)

ByScheduler = Mapping[str, Sequence[Record]]
"""Records by scheduler."""


def _place(record: Record, key: str) -> float | None:
    """Return the place of an instance, None if its size or cache was drawn at random."""
    instance = record.instance
    sizes: dict[str, float] = {"n": instance.requests, "memory": instance.memory}
    if key in sizes and instance.seed is not None and key not in instance.parameters:
        return None
    return sizes[key] if key in sizes else float(instance.parameters.get(key, 1))


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
            said: grouped(alike[said], lambda each: labels[each.key])
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
