"""What users wait, in seconds: means, medians and 99th percentiles at each number of requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from kvopt.experiments.studies.times import Times
from kvopt.reports.charts.axes import spread
from kvopt.reports.charts.bars import Bar, bars
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.layout import cell, count, figure, named, said_of, table, unfolded
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.summaries import Family, Group

_TIMES: dict[str, Callable[[Times], float | None]] = {
    "median": lambda times: times.latency["median"],
    "p99": lambda times: times.latency["p99"],
    "mean": lambda times: times.latency["mean"],
    "first token": lambda times: times.first_token["mean"],
    "first token p99": lambda times: times.first_token["p99"],
    "tokens/s": lambda times: times.tokens_per_second,
    "cache in use": lambda times: times.mean_memory,
}
"""Columns of the table, and how each is read off a run; the last in tokens."""

Means = dict[str, float | None]


@register("latency")
def latency(context: Context) -> Section | None:
    """Return pictures and tables, None for a study in rounds."""
    parts = [part for family in context.families for part in _parts(family)]
    return Section("Latency", join(tag("p", said_of("latency")), *parts)) if parts else None


def _parts(family: Family) -> list[Markup]:
    """Return the largest number of requests as picture and table, and tables of the others."""
    sizes = {record.instance.requests for record in family.instances if record.in_seconds}
    parts: list[Markup] = []
    others = []
    for size in sorted(sizes, reverse=True):
        title = f"{family.name}, {size:,} requests"
        groups = [group.sized(size) for group in family.groups]
        rows = [(group, _means(group)) for group in groups if group.runs]
        rows.sort(key=lambda row: (row[1]["mean"] is None, row[1]["mean"] or 0.0, row[0].label))
        if parts:
            others.append(_table(title, rows))
        else:
            parts = [tag("div", _picture(title, rows), class_="figures wide"), _table(title, rows)]
    if others:
        parts.append(unfolded(f"{len(others)} more numbers of requests", *others))
    return parts


def _means(group: Group) -> Means:
    """Return means over runs; None where not all of them completed."""
    times = [run.record.times for run in group.runs if run.record.times is not None]
    means: Means = {}
    for name, value in _TIMES.items():
        known = [each for each in map(value, times) if each is not None]
        means[name] = fmean(known) if group.completed and len(known) == len(group.runs) else None
    return means


def _picture(title: str, rows: Sequence[tuple[Group, Means]]) -> Markup | None:
    made, ends = [], [0.0]
    for group, means in rows:
        if means["mean"] is not None:
            median, p99, mean = (means[name] or 0.0 for name in ("median", "p99", "mean"))
            made.append(Bar(group.label, f"{median:,.3f}, {p99:,.3f} s", median, p99, mean))
            ends += [median, p99, mean]
    said = f"{title}: median, 99th percentile and mean latency of {len(made)} schedulers"
    return figure(title, None, bars(said, made, spread("latency (s)", ends))) if made else None


def _table(title: str, rows: Sequence[tuple[Group, Means]]) -> Markup:
    cells = []
    for group, means in rows:
        held, memory = means["cache in use"], group.runs[0].record.instance.memory
        share = None if held is None else held / memory
        shown = {name: "-" if mean is None else f"{mean:,.3f}" for name, mean in means.items()}
        cells.append(
            [
                named(group.label),
                count(len(group.runs)),
                count(group.ended("completed")),
                *(cell(shown[name], means[name]) for name in [*_TIMES][:-1]),
                cell("-" if share is None else f"{share:.1%}", share),
                count(group.evictions),
            ]
        )
    head = ("scheduler", "runs", "completed", *_TIMES, "evictions")
    caption = f"{title}, in seconds."
    return table(caption, head, cells, f"{caption} Latency")
