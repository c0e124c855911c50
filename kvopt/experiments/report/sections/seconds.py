"""What only a study in seconds shows: what users wait, and memory over time of chosen runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from markupsafe import Markup

from kvopt.experiments.report.layout import BANDS, Cell, note, picture, pieces
from kvopt.experiments.report.registry import Context, Section, gallery, register
from kvopt.experiments.report.summaries import Family, Group
from kvopt.experiments.report.words import counted
from kvopt.experiments.studies.intervals import four_digits
from kvopt.experiments.studies.records import Record
from kvopt.experiments.studies.times import Times
from kvopt.show.plots.charts import Bar, intervals
from kvopt.show.plots.embedding import panels
from kvopt.show.plots.panels import stacked, tokens
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

_UNEVEN = 3
"""Times by which ends may differ before each picture has its own time axis."""


@register("latency")
def latency(context: Context) -> Section | None:
    """Return pictures and tables, None for a study in rounds."""
    parts = [part for family in context.families for part in _parts(family)]
    body = pieces.paragraphs([note("latency")]) + Markup().join(parts)
    return Section("Latency", body) if parts else None


def _parts(family: Family) -> list[Markup]:
    """Return the largest number of requests as picture and table, and tables of the others."""
    sizes = {record.instance.requests for record in family.instances if record.in_seconds}
    parts: list[Markup] = []
    others = Markup()
    for size in sorted(sizes, reverse=True):
        cache = spread_of([r.instance.memory for r in family.instances])
        said = "" if ", memory " in family.name else f", M = {cache}"
        title = f"{family.name}, {size:,} requests{said}"
        groups = [group.sized(size) for group in family.groups]
        rows = [(group, _means(group)) for group in groups if group.runs]
        rows.sort(key=lambda row: (row[1]["mean"] is None, row[1]["mean"] or 0.0, row[0].label))
        if parts:
            others += _table(title, rows)
        else:
            parts = [*_picture(title, rows), _table(title, rows)]
    if others:
        parts.append(pieces.unfolded(f"{len(sizes) - 1} more numbers of requests", others))
    return parts


def _means(group: Group) -> Means:
    """Return means over runs; None where not all of them completed."""
    times = [run.record.times for run in group.runs if run.record.times is not None]
    means: Means = {}
    for name, value in _TIMES.items():
        known = [each for each in map(value, times) if each is not None]
        means[name] = fmean(known) if group.completed and len(known) == len(group.runs) else None
    return means


def _picture(title: str, rows: Sequence[tuple[Group, Means]]) -> list[Markup]:
    bars = []
    for group, means in rows:
        median, p99, mean = (means[name] for name in ("median", "p99", "mean"))
        if median is not None and p99 is not None:
            said = f"{four_digits(median)}, {four_digits(p99)} s"
            bars.append(Bar(group.label, median, p99, said, mean))
    if not bars:
        return []
    figure, (ax,) = panels(0.36 * len(bars))
    intervals(bars, ax, "latency (s)", floor=0.0)
    name = f"{title}: median, 99th percentile and mean latency of {len(bars)} schedulers"
    return [pieces.figures([picture(title, figure, name)])]


def _table(title: str, rows: Sequence[tuple[Group, Means]]) -> Markup:
    cells = []
    single = all(len(group.runs) == 1 and group.completed for group, _ in rows)
    for group, means in rows:
        *times, held = means.values()
        share = None if held is None else held / group.runs[0].record.instance.memory
        runs = () if single else (len(group.runs), group.ended("completed"))
        used = Cell("-" if share is None else f"{share:.1%}", share)
        cells.append([group.label, *runs, *times, used, group.evictions])
    head = ("scheduler", *(() if single else ("runs", "completed")), *_TIMES, "evictions")
    made: Markup = pieces.table(f"{title}, in seconds.", head, cells)
    return made


@register("memory")
def memory(context: Context) -> Section | None:
    """Return a picture for each chosen run, None for a study in rounds."""
    figures = {family.name: _figures(family) for family in context.families}
    return gallery("Memory over time", pieces.signs(BANDS) + note("memory"), figures)


def _figures(family: Family) -> list[Markup]:
    runs = (run for group in family.groups for run in group.runs)
    records = [r.record for r in runs if r.record.times is not None and r.record.times.memory]
    drawn = [(record, record.times) for record in _chosen(records) if record.times is not None]
    ends = [times.ended for _, times in drawn]
    uneven = bool(ends) and max(ends) > _UNEVEN * min(ends)
    most = max(
        (a + b for _, t in drawn for a, b in zip(t.running, t.waiting, strict=True)), default=1
    )
    return [
        _figure(family.name, record, times, times.ended if uneven else max(ends), most)
        for record, times in drawn
    ]


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
    width = times.ended / len(times.memory)
    edges = [(k + side) * width for k in range(len(times.memory)) for side in (0, 1)]

    def steps(values: Sequence[int]) -> list[int]:
        return [value for value in values for _ in (0, 1)]

    figure, axes = panels(*((1.2, 1.3) if times.running else (1.3,)))
    if times.running:
        there = [a + b for a, b in zip(times.running, times.waiting, strict=True)]
        curves = {"waiting": (edges, steps(there)), "running": (edges, steps(times.running))}
        stacked(curves, axes[0])
        axes[0].set_ylim(0, 1.05 * max(most, 1))
        axes[0].set_ylabel("requests")
    tokens(axes[-1], (edges, steps(times.memory)), capacity)
    axes[-1].set_xlim(0, end)
    axes[-1].set_xlabel("time (s)")
    axes[-1].set_ylabel("tokens held")
    return picture(title, figure, f"{family}: {title}: {words}", words)
