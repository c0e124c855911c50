"""Sections of a study in seconds: waiting of users."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from markupsafe import Markup

from kvopt.show.plots.charts import Bar, intervals
from kvopt.show.plots.embedding import panels
from kvopt.show.summary import spread as spread_of
from kvopt.studies.intervals import Runs, four_digits
from kvopt.studies.report.context import Context
from kvopt.studies.report.layout import Cell, picture, pieces
from kvopt.studies.report.study import Family
from kvopt.studies.report.words import times_of

_TIMES = {
    "median": "median_s",
    "p99": "p99_s",
    "mean": "mean_s",
    "first token": "first_token_mean_s",
    "first token p99": "first_token_p99_s",
    "tokens/s": "tokens_per_second",
    "cache in use": "mean_memory",
}
"""Columns of the table, and those of ``report.csv`` whose means they show; the last in tokens."""

Means = dict[str, float | None]


def latency(context: Context) -> str:
    """Return pictures and tables, empty for a study in rounds."""
    return Markup().join(map(_latencies, context.families))


def _latencies(family: Family) -> Markup:
    """Return the largest number of requests as picture and table, and tables of the others."""
    sizes = {record.instance.requests for record in family.instances if record.in_seconds}
    cache = spread_of([record.instance.memory for record in family.instances])
    where = "" if ", memory " in family.name else f", M = {cache}"
    drawn = Markup()
    tables: list[Markup] = []
    for size in sorted(sizes, reverse=True):
        title = f"{family.name}, {size:,} requests{where}"
        groups = [group.sized(size) for group in family.groups]
        rows = [(group, _means(group)) for group in groups if group.records]
        rows.sort(key=lambda row: (row[1]["mean"] is None, row[1]["mean"] or 0.0, row[0].policy))
        drawn = drawn if tables else _picture(title, rows)
        tables.append(_table(title, rows))
    title, others = f"{len(sizes) - 1} more numbers of requests", Markup().join(tables[1:])
    return Markup().join([drawn, *tables[:1], others and pieces.unfolded(title, others)])


def _means(group: Runs) -> Means:
    """Return means over runs; None if a run did not complete."""
    times = [times_of(run) for run in group.records]
    means: Means = {}
    for name, column in _TIMES.items():
        known = [each[column] for each in times if each.get(column) is not None]
        means[name] = fmean(known) if group.completed and len(known) == len(times) else None
    return means


def _picture(title: str, rows: Sequence[tuple[Runs, Means]]) -> Markup:
    bars = []
    for group, means in rows:
        median, p99, mean = (means[name] for name in ("median", "p99", "mean"))
        if median is not None and p99 is not None:
            said = f"{four_digits(median)}, {four_digits(p99)} s"
            bars.append(Bar(group.policy, median, p99, said, mean))
    if not bars:
        return Markup()
    figure, (ax,) = panels(0.36 * len(bars))
    intervals(bars, ax, "latency (s)", floor=0.0)
    name = f"{title}: median, 99th percentile and mean latency of {len(bars)} schedulers"
    return pieces.figures([picture(title, figure, name)])


def _table(title: str, rows: Sequence[tuple[Runs, Means]]) -> Markup:
    single = all(len(group.records) == 1 and group.completed for group, _ in rows)
    cells = []
    for group, means in rows:
        *times, held = means.values()
        share = None if held is None else held / group.records[0].instance.memory
        runs = () if single else (len(group.records), group.ended("completed"))
        used = Cell("-" if share is None else f"{share:.1%}", share)
        cells.append([group.policy, *runs, *times, used, group.evictions])
    head = ("scheduler", *(() if single else ("runs", "completed")), *_TIMES, "evictions")
    return pieces.table(f"{title}, in seconds.", head, cells)
