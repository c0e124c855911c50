"""Sections of a study in seconds: waiting of users, and memory over time of chosen runs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from kvopt.show.plots.charts import Bar, intervals
from kvopt.show.plots.embedding import are_uneven, panels
from kvopt.show.plots.panels import stacked, tokens
from kvopt.show.summary import counted
from kvopt.show.summary import spread as spread_of
from kvopt.studies.intervals import Runs, four_digits
from kvopt.studies.records import Record, Times
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


def memory(_: Context, family: Family) -> list[Markup]:
    """Return a picture for each chosen run, none for a study in rounds."""
    records = _chosen([run for run in family.runs if run.times and run.times.memory])
    drawn = [(record, record.times) for record in records if record.times]
    ends = [times.ended for _, times in drawn]
    most = max(
        (a + b for _, t in drawn for a, b in zip(t.running, t.waiting, strict=True)), default=1
    )
    made = []
    for record, times in drawn:
        figure = _over_time(record, times, most)
        if not are_uneven(ends):
            figure.axes[-1].set_xlim(0, max(ends))
        capacity = record.instance.memory
        title = f"{record.policy}, {record.instance.requests:,} requests"
        said = [f"at most {record.peak_memory or 0:,} of {capacity:,} tokens"]
        if times.mean_memory is not None:
            said.append(f"{times.mean_memory / capacity:.1%} in use on average")
        if record.evictions:
            said.append(counted(record.evictions, "eviction"))
        if record.outcome != "completed":
            said.append(record.outcome)
        words = ", ".join(said)
        made.append(picture(title, figure, f"{family.name}: {title}: {words}", words))
    return made


def _chosen(records: Sequence[Record]) -> list[Record]:
    """Return the runs to draw, all of the same instance."""
    if not records:
        return []
    first = min(records, key=lambda r: (-r.instance.requests, r.instance.seed or 0))
    mine = [record for record in records if record.instance.hash == first.instance.hash]
    done = sorted((r for r in mine if r.value is not None), key=lambda r: r.value or 0)
    endless = [record for record in mine if record.outcome == "livelock"]
    evicting = max(mine, key=lambda r: (r.evictions, r.outcome == "livelock"))
    picked = [*done[:1], *done[-1:], *([evicting] if evicting.evictions else [])]
    if evicting not in endless:
        picked += endless[:1]
    return list({record.key: record for record in picked}.values())


def _over_time(record: Record, times: Times, most: int) -> Figure:
    """Draw requests above and tokens below, level in each part of the time."""
    count = len(times.memory)
    edges = np.repeat(np.linspace(0, times.ended, count + 1), 2)[1:-1]
    figure, axes = panels(*((1.2, 1.3) if times.running else (1.3,)))
    if times.running:
        there = np.add(times.running, times.waiting)
        kinds = {"waiting": there, "running": times.running}
        stacked({kind: (edges, np.repeat(counts, 2)) for kind, counts in kinds.items()}, axes[0])
        axes[0].set(ylim=(0, 1.05 * max(most, 1)), ylabel="requests")
    tokens(axes[-1], (edges, np.repeat(times.memory, 2)), record.instance.memory)
    axes[-1].set(xlim=(0, times.ended), xlabel="time (s)", ylabel="tokens held")
    return figure
