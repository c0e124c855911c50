"""Latency over request volume: a line for each scheduler, and where the optimum lies."""

from __future__ import annotations

from collections.abc import Mapping

from kvopt.reports.charts.axes import Box, Frame, path, spread
from kvopt.reports.charts.letters import beside, legend
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.layout import cell, figure, gallery, said_of, table, unfolded
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.summaries import Curve, Family, mean_latencies

_BOX = Box(440.0, 262.0, 52.0, 400.0, 24.0, 224.0)
_FEWEST, _MOST = 3, 12
"""Sizes from which on there is a curve to draw, and up to which chance did not choose them."""


@register("volume")
def volume(context: Context) -> Section | None:
    """Return a picture for each family with enough sizes that were not drawn at random."""
    figures = [_figure(family, context.letters) for family in context.families]
    note = said_of("volume-seconds" if context.study.in_seconds else "volume")
    return gallery("Latency over request volume", note, figures)


def _figure(family: Family, letters: Mapping[str, str]) -> Markup | None:
    lower = mean_latencies((record, record.lower) for record in family.instances)
    upper = mean_latencies((record, record.upper) for record in family.instances)
    if not _FEWEST <= len(upper) <= _MOST:
        return None
    found = {
        group.label: curve
        for group in family.groups
        if (curve := mean_latencies((run.record, run.record.value) for run in group.runs))
    }
    picture = _drawn(family, found, lower, upper, letters)
    head = ["requests", "proved bound", "best schedule"]
    head += [tag("abbr", letters[name], title=name) for name in found]
    rows = [
        [
            tag("th", f"{size:,}", scope="row", data_value=size),
            *(_cell(curve.get(size)) for curve in (lower, upper, *found.values())),
        ]
        for size in sorted(upper)
    ]
    caption = f"Mean latency of a request, {family.name}."
    numbers = table(caption, head, rows, f"{family.name}: numbers", words=0)
    parts = join(picture, legend(letters, list(found)), unfolded("Numbers", numbers))
    return figure(family.name, None, parts)


def _drawn(
    family: Family,
    found: Mapping[str, Curve],
    lower: Curve,
    upper: Curve,
    letters: Mapping[str, str],
) -> Markup:
    in_seconds = family.instances[0].in_seconds
    values = [value for curve in (*found.values(), lower, upper) for value in curve.values()]
    up = spread(f"mean latency ({'s' if in_seconds else 'rounds'})", values)
    frame = Frame.of(_BOX, spread("requests", upper), up)
    over, bound = ([(n, curve[n]) for n in sorted(upper) if n in lower] for curve in (upper, lower))
    band = "L".join(frame.at(*corner) for corner in (*over, *reversed(bound)))
    return frame.svg(
        f"{family.name}: mean latency of a request against the number of requests",
        frame.axes(),
        path(f"M{band}z" if band else "", "band"),
        frame.line(bound, "trend") if in_seconds else None,
        *(
            join(frame.line(sorted(curve.items()), "trace"), frame.dots(sorted(curve.items())))
            for curve in found.values()
        ),
        *beside(frame, {name: max(c.items()) for name, c in found.items()}, letters, led=True),
    )


def _cell(value: float | None) -> Markup:
    return cell("-" if value is None else f"{value:,.2f}", value)
