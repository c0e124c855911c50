"""Mean latencies and the optimum over the number of requests, the cache and the rate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from kvopt.experiments.report.layout import BOUND, OPTIMUM, picture, pieces, sign
from kvopt.experiments.report.registry import TABLE, Context, gallery, pictures, section
from kvopt.experiments.report.summaries import Curve, Family, mean_latencies
from kvopt.experiments.report.words import COUNTS, differing, in_words, natural
from kvopt.experiments.studies.records import Record, grouped
from kvopt.show.plots.charts import along, spread
from kvopt.show.plots.embedding import panels

_FEWEST, _MOST = 3, 12
"""Numbers of requests that make a curve, and up to which they count as chosen, not drawn."""


def _place(record: Record, key: str) -> float | None:
    """Return the place of an instance, None if its cache was drawn at random."""
    instance = record.instance
    if key == "memory":
        is_drawn = instance.seed is not None and key not in instance.parameters
        return None if is_drawn else instance.memory
    return instance.requests if key == "n" else instance.parameters.get(key, 1)


@pictures("volume")
def volume(context: Context, family: Family) -> list[Markup]:
    """Return a picture of a family with enough sizes that were not drawn at random."""
    sizes = {record.instance.requests for record in family.instances}
    if not _FEWEST <= len(sizes) <= _MOST:
        return []
    runs = {group.policy: group.records for group in family.groups}
    return _drawn(context, "volume", {family.name: runs})


def _register(name: str) -> None:
    """Register pictures of each trace or family that differs in only one axis."""

    @section(name)
    def make(context: Context) -> str:
        key = TABLE[name]["key"]
        original = {record.key: record for record in context.study.records}
        runs = (
            (group.policy, original[run.key]) for group in context.groups for run in group.records
        )
        sources = grouped(
            ((label, record) for label, record in runs if _place(record, key) is not None),
            lambda each: each[1].instance.family or each[1].instance.name,
        )
        drawn = {}
        for source, mine in sorted(sources.items(), key=lambda each: natural(each[0])):
            varied = differing(_others(record, key) for _, record in mine)
            alike = grouped(mine, lambda each: json.dumps(_others(each[1], key), sort_keys=True))
            headed = {}
            for others in sorted(alike, key=natural):
                if len({_place(record, key) for _, record in alike[others]}) > 1:
                    said = in_words(json.loads(others), varied)
                    heading = context.study.portable(", ".join(filter(None, (source, said))))
                    labels = grouped(alike[others], lambda each: each[0])
                    headed[heading] = {k: [r for _, r in found] for k, found in labels.items()}
            drawn[source] = _drawn(context, name, headed)
        return gallery(name, context, drawn)


for _name in ("by-memory", "by-rate", "by-workers"):
    _register(_name)


def _others(record: Record, key: str) -> dict[str, Any]:
    """Return the parameters of an instance except an axis."""
    keys = record.instance.parameters
    return {name: value for name, value in keys.items() if name not in (key, *COUNTS)}


def _drawn(
    context: Context, name: str, headed: Mapping[str, Mapping[str, Sequence[Record]]]
) -> list[Markup]:
    """Return pictures by heading, which share their axis of latency, with their numbers."""
    axis, key = TABLE[name]["axis"], TABLE[name]["key"]

    def curve(found: Iterable[tuple[Record, int | None]]) -> Curve:
        return mean_latencies(found, lambda record: _place(record, key) or 0)

    rows = {}
    for heading, runs in headed.items():
        every = [record for mine in runs.values() for record in mine]
        instances = grouped(every, lambda record: record.instance.hash).values()
        # The best of each side over all limits; a scheduler needs all runs to complete.
        lower = curve((mine[0], _best(max, (r.lower for r in mine))) for mine in instances)
        upper = curve((mine[0], _best(min, (r.upper for r in mine))) for mine in instances)
        found = {name: curve((r, r.value) for r in mine) for name, mine in runs.items()}
        known = {name: means for name, means in found.items() if means}
        rows[heading] = {"proved bound": lower, "best schedule": upper, **known}
    values = [
        mean for curves in rows.values() for each in curves.values() for mean in each.values()
    ]
    made = []
    for heading, curves in rows.items():
        records = [record for mine in headed[heading].values() for record in mine]
        places = sorted({_place(record, key) or 0 for record in records})
        unit = "seconds" if records[0].in_seconds else "rounds"
        cells = [[f"{x:,g}", *(curve.get(x) for curve in curves.values())] for x in places]
        caption = f"Mean latency of a request in {unit}, {heading}."
        more = pieces.unfolded("Numbers", pieces.table(caption, [axis, *curves], cells))
        lower, upper, *schedulers = curves.values()
        optimum = [(x, lower.get(x), upper.get(x)) for x in places]
        lines = dict(zip([*curves][2:], ([*each.items()] for each in schedulers), strict=True))
        figure, (ax,) = panels(2.4)
        along(optimum, lines, ax, context.looks)
        spread(ax.xaxis, places)
        spread(ax.yaxis, values)
        ax.set(xlabel=axis, ylabel=f"mean latency ({unit})")
        said = f"{heading}: mean latency of a request against {axis}"
        legend = [sign(context.looks[label], label) for label in lines]
        is_known = any(None not in each for each in optimum)
        shown = [*((OPTIMUM, BOUND) if is_known else ()), *legend]
        made.append(picture(heading, figure, said, legend=shown, more=more))
    return made


def _best(best: Callable[..., int | None], ends: Iterable[int | None]) -> int | None:
    return best((end for end in ends if end is not None), default=None)
