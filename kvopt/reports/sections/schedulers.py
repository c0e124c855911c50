"""What all runs of each scheduler come to: as a table, as bars, as histograms."""

from __future__ import annotations

import math
from fractions import Fraction

from kvopt.experiments.studies.intervals import Interval
from kvopt.reports.charts.axes import spread
from kvopt.reports.charts.bars import Bar, bars
from kvopt.reports.charts.histograms import histogram
from kvopt.reports.html import Markup, tag
from kvopt.reports.layout import by_family, cell, count, figure, gallery, named, said_of, table
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.summaries import Family, Group, mean_width, quantile_of
from kvopt.reports.words import counted, percent

_SHARES = (Fraction(1, 2), Fraction(95, 100))

_OF_SEVERAL = ("runs", "median", "95%", "worst", "optimal", "not optimal")
"""Columns that repeat the ratio where each scheduler has a single run."""

_SINGLE = {"mean": "ratio", "mean width": "width"}
"""What columns of means are called where each scheduler has a single run."""


@register("schedulers")
def schedulers(context: Context) -> Section | None:
    """Return the table, None where no scheduler ran."""
    if not context.groups:
        return None
    # Columns that say nothing in this study are left out.
    shown = {
        "family": len(context.families) > 1,
        "not completed": not all(group.completed for group in context.groups),
        "evictions": any(group.evictions for group in context.groups),
        "x slower": any(group.machine for group in context.groups),
    }
    single = all(len(group.runs) == 1 for group in context.groups)
    shown |= dict.fromkeys(_OF_SEVERAL, not single)
    rows = [{k: c for k, c in _cells(g).items() if shown.get(k, True)} for g in context.groups]
    head = [_SINGLE.get(name, name) if single else name for name in rows[0]]
    words = 2 if shown["family"] else 1
    cells = [list(row.values()) for row in rows]
    note = said_of("schedulers-single" if single else "schedulers")
    if shown["x slower"]:
        note += f" {said_of('slower')}"
    made = table(note, head, cells, "Table of schedulers", words)
    return Section("Schedulers", made)


def _cells(group: Group) -> dict[str, Markup]:
    """Return the cells of a row under their headings."""
    median, high = (quantile_of(group.ratios, share) for share in _SHARES)
    ratios = {"mean": group.mean, "median": median, "95%": high, "worst": group.worst}
    width, machine = mean_width(group.ratios), group.machine or Interval(None, None)
    lost = {name: group.ended(name) for name in ("livelock", "unfinished", "error")}
    said = ", ".join(f"{number:,} {name}" for name, number in lost.items() if number)
    return {
        "family": tag("td", group.family, class_="family"),
        "scheduler": named(group.label),
        "runs": count(len(group.runs)),
        **{
            name: cell("-" if ratio == Interval(None, None) else str(ratio), ratio.least)
            for name, ratio in ratios.items()
        },
        "mean width": cell(percent(width), width),
        "x slower": cell(str(machine), machine.most),
        "optimal": count(sum(ratio.most == 1 for ratio in group.ratios)),
        "not optimal": count(sum(run.least > 1 for run in group.runs)),
        "not completed": cell(said or "0", sum(lost.values())),
        "evictions": count(group.evictions),
    }


@register("ranking")
def ranking(context: Context) -> Section | None:
    """Return a picture of the mean ratios for each family."""
    return gallery("Mean ratios", said_of("ranking"), map(_ranking, context.families))


def _ranking(family: Family) -> Markup | None:
    made, ends = [], [1.0]
    for group in family.groups:
        if group.ratios:
            least, most, far = (
                math.inf if end is None else float(end)
                for end in (group.mean.least, group.mean.most, group.worst.most)
            )
            judged, runs = len(group.ratios), len(group.runs)
            name = group.label + (f" ({judged:,} of {runs:,} runs)" if judged < runs else "")
            made.append(Bar(name, str(group.mean), least, most, least, far))
            ends += [end for end in (least, most, far) if end < math.inf]
    across = spread("mean ratio to the optimum", ends, floor=1)
    title = f"{family.name}: mean ratios of {len(made)} schedulers"
    return figure(family.name, None, bars(title, made, across)) if made else None


@register("histograms")
def histograms(context: Context) -> Section | None:
    """Return a histogram of the ratios for each family and scheduler."""
    figures = {
        family.name: [_histogram(group) for group in family.groups if group.are_many]
        for family in context.families
    }
    return by_family("Histograms of ratios", said_of("histograms"), figures)


def _histogram(group: Group) -> Markup:
    ratios = group.ratios
    counts = {
        "proved optimal": sum(ratio.most == 1 for ratio in ratios),
        "without a ratio": len(group.runs) - len(ratios),
        "without an upper end": sum(ratio.most is None for ratio in ratios),
    }
    said = [counted(len(ratios), "run"), f"mean {group.mean}"]
    said += [f"{number:,} {name}" for name, number in counts.items() if number]
    picture = histogram(f"{group.label}, {group.family}", ratios, group.mean)
    return figure(group.label, ", ".join(said), picture)
