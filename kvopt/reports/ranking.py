"""Mean ratios at a glance: a bar for each scheduler, from the lower end to the upper end."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kvopt.reports.bars import Bar, bars
from kvopt.reports.context import Context, Section
from kvopt.reports.figures import figure
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.points import spread
from kvopt.reports.summaries import Group

_NOTE = (
    "Mean ratio of each scheduler over the runs that completed, the best first. The bar goes from "
    "the lower end to the upper end; a line leads from there to the largest ratio of a single run "
    "that is possible. Where optima are proved the bar is a mark."
)


def ranking(context: Context) -> Section | None:
    """Return a picture for each family, None where nothing completed."""
    figures = []
    for family in context.families:
        found = [group for group in context.groups if group.family == family and group.ratios]
        if found:
            figures.append(figure(family, None, _drawn(family, found)))
    if not figures:
        return None
    body = join(tag("p", _NOTE), tag("div", *figures, class_="figures wide"))
    return Section("ranking", "Mean ratios", body)


def _drawn(family: str, found: Sequence[Group]) -> Markup:
    ends = [
        float(end)
        for group in found
        for end in (group.mean.least, group.mean.most, group.worst.most)
        if end is not None
    ]
    across = spread("mean ratio to the optimum", [1.0, *ends], floor=1)
    title = f"{family}: mean ratios of {len(found)} schedulers"
    return bars(title, [_bar(group) for group in found], across)


def _bar(group: Group) -> Bar:
    average, largest = group.mean, group.worst
    assert average.least is not None
    least = float(average.least)
    most, far = (math.inf if end is None else float(end) for end in (average.most, largest.most))
    return Bar(_name(group), str(average), least, most, least, far)


def _name(group: Group) -> str:
    """Return the scheduler, with how many of its runs the mean is of where it is not all."""
    completed, runs = len(group.ratios), len(group.runs)
    return group.label if completed == runs else f"{group.label} ({completed:,} of {runs:,} runs)"
