"""Mean ratios at a glance: a bar for each scheduler, from the lower end to the upper end."""

from __future__ import annotations

from collections.abc import Sequence

from kvopt.reports.axes import Frame, Scale, label, line
from kvopt.reports.context import Context, Section
from kvopt.reports.figures import figure
from kvopt.reports.html import Markup, join, number, tag
from kvopt.reports.points import spread
from kvopt.reports.summaries import Group

_WIDTH, _LEFT, _RIGHT, _TOP = 440.0, 16.0, 432.0, 4.0
_ROW, _BAR = 28.0, 8.0

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
    across = spread("ratio", [1.0, *ends], floor=1)
    base = _TOP + _ROW * len(found)
    x = Scale(across.low, across.high, _LEFT, _RIGHT - 8, across.logarithmic)
    frame = Frame(_WIDTH, base + 36, x, Scale(0, 1, base, _TOP))
    ticks = x.ticks(6)
    return frame.svg(
        f"{family}: mean ratios of {len(found)} schedulers",
        *(line(x.at(tick), _TOP, x.at(tick), base, "grid") for tick in ticks),
        *(_row(group, x, _TOP + _ROW * place) for place, group in enumerate(found)),
        line(_LEFT, base, _RIGHT, base, "axis"),
        frame.bottom(ticks, "mean ratio to the optimum"),
    )


def _row(group: Group, x: Scale, top: float) -> Markup:
    average, largest = group.mean, group.worst
    assert average.least is not None
    left = x.at(float(average.least))
    right = x.end if average.most is None else x.at(float(average.most))
    far = x.end if largest.most is None else x.at(float(largest.most))
    middle = top + 16 + _BAR / 2
    corners = f"M{number(left)} {number(top + 16)}H{number(right)}v{number(_BAR)}H{number(left)}z"
    return join(
        label(_LEFT, top + 11, _name(group), "start", "name"),
        label(_RIGHT, top + 11, str(average), "end", "name"),
        line(right, middle, far, middle, "far"),
        tag("path", d=corners, class_="bar most"),
        line(left, top + 14, left, top + 18 + _BAR, "end"),
    )


def _name(group: Group) -> str:
    """Return the scheduler, with how many of its runs the mean is of where it is not all."""
    completed, runs = len(group.ratios), len(group.runs)
    return group.label if completed == runs else f"{group.label} ({completed:,} of {runs:,} runs)"
