"""What all runs of each scheduler come to: as a table, as bars, as histograms."""

from __future__ import annotations

import math
from fractions import Fraction

from kvopt.experiments.studies.intervals import Interval
from kvopt.reports.charts.axes import spread
from kvopt.reports.charts.bars import Bar, bars
from kvopt.reports.charts.histograms import histogram
from kvopt.reports.context import Context
from kvopt.reports.html import Markup, tag
from kvopt.reports.layout import Section, by_family, cell, count, figure, gallery, named, table
from kvopt.reports.registry import register
from kvopt.reports.summaries import Family, Group, mean_width
from kvopt.reports.words import counted, percent

_CAPTION = (
    "Ratio to the optimum over the runs that completed; 95% is the ratio that 95% of them do not "
    "exceed. Columns of intervals are sorted by the lower end."
)
_MEANS = (
    "Mean ratio of each scheduler over the runs that completed, the best first. The bar goes from "
    "the lower end to the upper end; a line leads from there to the largest ratio of a single run "
    "that is possible. Where optima are proved the bar is a mark."
)
_HISTOGRAMS = (
    "How many runs have which ratio to the optimum. Where optima are open, the lower ends of "
    "the intervals go up and the upper ends, hatched, go down: the true histogram lies "
    "between them. Dashed lines mark the means."
)


@register("schedulers")
def schedulers(context: Context) -> Section | None:
    """Return the table, None where no scheduler ran."""
    if not context.groups:
        return None
    several = len(context.families) > 1
    lost = not all(group.completed for group in context.groups)
    evicted = any(group.evictions for group in context.groups)
    head = [
        *(["family"] if several else []),
        *("scheduler", "runs", "mean", "median", "95%", "worst"),
        *("mean width", "optimal", "not optimal"),
        *(["not completed"] if lost else []),
        *(["evictions"] if evicted else []),
    ]
    rows = [
        [
            *([tag("td", group.family, class_="family")] if several else []),
            *_cells(group),
            *([_not_completed(group)] if lost else []),
            *([count(group.evictions)] if evicted else []),
        ]
        for group in context.groups
    ]
    made = table(_CAPTION, head, rows, "Table of schedulers", words=2 if several else 1)
    return Section("Schedulers", made)


def _cells(group: Group) -> list[Markup]:
    shares = (Fraction(1, 2), Fraction(95, 100))
    ratios = (group.mean, *map(group.quantile, shares), group.worst)
    width = mean_width(group.ratios)
    return [
        named(group.label),
        count(len(group.runs)),
        *(cell("-" if r == Interval(None, None) else str(r), r.least) for r in ratios),
        cell(percent(width), width),
        count(sum(ratio.most == 1 for ratio in group.ratios)),
        count(sum(ratio.least is not None and ratio.least > 1 for ratio in group.ratios)),
    ]


def _not_completed(group: Group) -> Markup:
    counts = {name: group.ended(name) for name in ("livelock", "unfinished", "error")}
    said = ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
    return cell(said or "0", sum(counts.values()))


@register("ranking")
def ranking(context: Context) -> Section | None:
    """Return a picture of the mean ratios for each family."""
    figures = [_ranking(family) for family in context.families]
    return gallery("Mean ratios", _MEANS, [each for each in figures if each is not None])


def _ranking(family: Family) -> Markup | None:
    found = [group for group in family.groups if group.ratios]
    if not found:
        return None
    ends = (end for g in found for end in (g.mean.least, g.mean.most, g.worst.most))
    known = [1.0, *(float(end) for end in ends if end is not None)]
    across = spread("mean ratio to the optimum", known, floor=1)
    title = f"{family.name}: mean ratios of {len(found)} schedulers"
    return figure(family.name, None, bars(title, [_bar(group) for group in found], across))


def _bar(group: Group) -> Bar:
    """Return a bar; its name says how many runs the mean is of where it is not all."""
    least, most, far = (
        math.inf if end is None else float(end)
        for end in (group.mean.least, group.mean.most, group.worst.most)
    )
    judged, runs = len(group.ratios), len(group.runs)
    name = group.label if judged == runs else f"{group.label} ({judged:,} of {runs:,} runs)"
    return Bar(name, str(group.mean), least, most, least, far)


@register("histograms")
def histograms(context: Context) -> Section | None:
    """Return a histogram of the ratios for each family and scheduler."""
    figures = {
        family.name: [_histogram(group) for group in family.groups if group.are_many]
        for family in context.families
    }
    return by_family("Histograms of ratios", _HISTOGRAMS, figures)


def _histogram(group: Group) -> Markup:
    ratios = group.ratios
    optimal = sum(ratio.most == 1 for ratio in ratios)
    lost = len(group.runs) - len(ratios)
    unbounded = sum(ratio.most is None for ratio in ratios)
    said = [
        counted(len(ratios), "run"),
        f"mean {group.mean}",
        *([f"{optimal:,} proved optimal"] if optimal else []),
        *([f"{lost:,} without a ratio"] if lost else []),
        *([f"{unbounded:,} without an upper end"] if unbounded else []),
    ]
    picture = histogram(f"{group.label}, {group.family}", ratios, group.mean)
    return figure(group.label, ", ".join(said), picture)
