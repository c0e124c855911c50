"""Pictures of ratios: means, and single runs against size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvopt.show.plots import style
from kvopt.show.plots.charts import Bar, intervals, points, spread
from kvopt.show.plots.embedding import Link, panels
from kvopt.studies.intervals import ratio_of
from kvopt.studies.records import Record, grouped
from kvopt.studies.report.context import Context
from kvopt.studies.report.layout import picture
from kvopt.studies.report.study import Family
from kvopt.studies.report.words import latency_of, optimum_of, size_of

_RATIO = "ratio to the optimum"
_MANY = 5
"""From so many ratios on pictures of single runs add to the table."""
_ROOM = 0.7
"""Share of the distance of two sizes over which instances of one size are spread."""


def ranking(_: Context, family: Family) -> list[Markup]:
    """Return a picture of the mean ratios."""
    bars = []
    for group in family.groups:
        judged, runs = len(group.ratios), len(group.records)
        if judged:
            name = group.policy + (f" ({judged:,} of {runs:,} runs)" if judged < runs else "")
            mean, far = group.mean, group.worst.most
            bars.append(Bar(name, mean.least, mean.most, str(mean), far=far or math.inf))
    if not bars:
        return []
    figure, (ax,) = panels(0.36 * len(bars))
    intervals(bars, ax, f"mean {_RATIO}")
    return [picture(family.name, figure, f"{family.name}: mean ratios of {len(bars)} schedulers")]


def runs(context: Context, family: Family) -> list[Markup]:
    """Return the ratio of every run against the size of its instance."""
    drawn = [group for group in family.groups if len(group.ratios) >= _MANY]
    made = []
    for group in drawn:
        found = [
            (run, ratio.least, ratio.most, f"{latency_of(run)}: {ratio} times the optimum")
            for run, ratio in zip(group.records, map(ratio_of, group.records), strict=True)
            if ratio.least
        ]
        figure, ax, links = _against_size(context, family, found, context.looks[group.policy])
        ends = (end for ratio in group.ratios for end in (ratio.least, ratio.most) if end)
        spread(ax.yaxis, [*ends], 1)
        ax.set_ylabel(_RATIO)
        name = f"{group.policy}, {group.family}: ratio of {len(found)} runs, worst {group.worst}"
        made.append(picture(group.policy, figure, name, links=links))
    return made


def _against_size(
    context: Context,
    family: Family,
    found: Sequence[tuple[Record, Fraction, Fraction | None, str]],
    look: int,
) -> tuple[Figure, Axes, list[Link]]:
    """Draw intervals of instances at their sizes; also return their descriptions.

    Instances of one size are drawn side by side.
    """
    sizes = grouped(family.instances, lambda record: record.instance.requests)
    room = _ROOM * min((b - a for a, b in pairwise(sorted(sizes))), default=1)
    places = {
        record.key: size + room * ((i + 0.5) / len(mine) - 0.5) if len(sizes) > 1 else i + 1.0
        for size, mine in sizes.items()
        for i, record in enumerate(mine)
    }
    figure, (ax,) = panels(1.8)
    at = [places[context.study.first_run(record).key] for record, *_ in found]
    ends = [(x, least, most) for x, (_, least, most, _) in zip(at, found, strict=True)]
    points(ends, ax, look, [*map(str, range(len(found)))])
    spread(ax.xaxis, [*places.values()])
    style.whole_numbers(ax.xaxis, max(places.values()))
    ax.set_xlabel("requests" if len(sizes) > 1 else f"instances, {min(sizes):,} requests each")
    links = []
    for record, *_, said in found:
        seed = "" if record.instance.seed is None else f", seed {record.instance.seed}"
        lines = [record.instance.name, f"{size_of(record)}{seed}", optimum_of(record), said]
        links.append(("\n".join(lines), context.certificate(record.certificate)))
    return figure, ax, links
