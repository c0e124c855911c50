"""What only a study in seconds shows: what users wait, and memory over time of chosen runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from kvopt.experiments.studies.intervals import four_digits
from kvopt.experiments.studies.records import Record
from kvopt.experiments.studies.times import Times
from kvopt.reports.charts.axes import Axis, Box, Frame, spread
from kvopt.reports.charts.bands import BANDS, bands, most_of
from kvopt.reports.charts.bars import Bar, bars
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.layout import by_family, cell, count, figure, named, said_of, table, unfolded
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.summaries import Family, Group
from kvopt.reports.words import counted
from kvopt.show.summary import spread as spread_of

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

_BOX = Box(360.0, 168.0, 46.0, 350.0, 24.0, 132.0)
_TALL = Box(360.0, 298.0, 46.0, 350.0, 154.0, 262.0)
_ABOVE = Box(360.0, 298.0, 46.0, 350.0, 24.0, 124.0)
_UNEVEN = 3
"""Times by which ends may differ before each picture has its own time axis."""


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
        cache = spread_of([r.instance.memory for r in family.instances])
        said = "" if ", memory " in family.name else f", M = {cache}"
        title = f"{family.name}, {size:,} requests{said}"
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
            made.append(
                Bar(group.label, f"{four_digits(median)}, {four_digits(p99)} s", median, p99, mean)
            )
            ends += [median, p99, mean]
    said = f"{title}: median, 99th percentile and mean latency of {len(made)} schedulers"
    return figure(title, None, bars(said, made, spread("latency (s)", ends))) if made else None


def _table(title: str, rows: Sequence[tuple[Group, Means]]) -> Markup:
    cells = []
    single = all(len(group.runs) == 1 and group.completed for group, _ in rows)
    for group, means in rows:
        *times, held = means.values()
        share = None if held is None else held / group.runs[0].record.instance.memory
        runs = [count(len(group.runs)), count(group.ended("completed"))]
        row = [named(group.label), *(() if single else runs)]
        row += [cell("-" if mean is None else four_digits(mean), mean) for mean in times]
        row += [cell("-" if share is None else f"{share:.1%}", share), count(group.evictions)]
        cells.append(row)
    head = ("scheduler", *(() if single else ("runs", "completed")), *_TIMES, "evictions")
    caption = f"{title}, in seconds."
    return table(caption, head, cells, f"{caption} Latency")


@register("memory")
def memory(context: Context) -> Section | None:
    """Return a picture for each chosen run, None for a study in rounds."""
    figures = {family.name: _figures(family) for family in context.families}
    legend = [tag("span", tag("i", class_=kind), said) for kind, said in BANDS.items()]
    note = join(said_of("memory"), tag("span", *legend, class_="legend"))
    return by_family("Memory over time", note, figures)


def _figures(family: Family) -> list[Markup]:
    runs = (run for group in family.groups for run in group.runs)
    records = [r.record for r in runs if r.record.times is not None and r.record.times.memory]
    drawn = [(record, record.times) for record in _chosen(records) if record.times is not None]
    ends = [times.ended for _, times in drawn]
    uneven = bool(ends) and max(ends) > _UNEVEN * min(ends)
    most = max((most_of(_counts(times)) for _, times in drawn), default=0)
    return [
        _figure(family.name, record, times, times.ended if uneven else max(ends), most)
        for record, times in drawn
    ]


def _counts(times: Times) -> list[tuple[float, int, int]]:
    """Return how many requests run and wait over time, empty for an older record."""
    width = times.ended / len(times.memory)
    both = zip(times.running, times.waiting, strict=True)
    return [(place * width, *each) for place, each in enumerate(both)]


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


def _figure(family: str, record: Record, times: Times, end: float, most: int) -> Markup:
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
    across = Axis("time (s)", 0, end)
    width = times.ended / len(times.memory)
    steps = [((k + side) * width, held) for k, held in enumerate(times.memory) for side in (0, 1)]
    frame = Frame(_TALL if times.running else _BOX, across, Axis("", 0, 1.1 * capacity))
    drawn = [frame.area(steps, "grown"), frame.tokens(capacity), frame.bottom()]
    if times.running:
        above = Frame(_ABOVE, across, Axis("requests", 0, 1.05 * max(most, 1)))
        drawn += [bands(above, _counts(times)), above.left(3, whole=True)]
    name = f"{family}: {title}: {words}"
    return figure(title, words, frame.svg(name, *drawn))
