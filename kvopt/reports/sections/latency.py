"""What users wait, in seconds: means, medians and 99th percentiles at each number of requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from kvopt.experiments.studies.records import Record
from kvopt.experiments.studies.times import Times
from kvopt.reports.charts.axes import spread
from kvopt.reports.charts.bars import Bar, bars
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.layout import cell, count, figure, named, table, unfolded
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.summaries import Family

_NOTE = (
    "Latency of a request in seconds, from its arrival to its last token. A bar goes from the "
    "median to the 99th percentile, the mark is the mean; means over runs, where there are "
    "several. The tables have every number of requests, time to the first token, output tokens a "
    "second, and how much of the cache was in use on average over the run. Where not every run "
    "completed, what finished says little, and no time is given."
)

_TIMES: dict[str, Callable[[Times], float | None]] = {
    "median": lambda times: times.latency["median"],
    "p99": lambda times: times.latency["p99"],
    "mean": lambda times: times.latency["mean"],
    "first token": lambda times: times.first_token["mean"],
    "first token p99": lambda times: times.first_token["p99"],
    "tokens/s": lambda times: times.tokens_per_second,
}
"""Columns of the table, and how each is read off a run."""


@dataclass(frozen=True)
class _Row:
    """The runs of a scheduler on instances of one size, and means of their times."""

    name: str
    records: Sequence[Record]

    @property
    def completed(self) -> int:
        return sum(record.outcome == "completed" for record in self.records)

    @cached_property
    def times(self) -> dict[str, float | None]:
        return {name: self.mean(value) for name, value in _TIMES.items()}

    def mean(self, value: Callable[[Times], float | None]) -> float | None:
        """Return the mean over runs; None where not all of them completed."""
        found = [None if r.times is None else value(r.times) for r in self.records]
        known = [each for each in found if each is not None]
        return fmean(known) if self.completed == len(self.records) == len(known) else None

    def cells(self) -> list[Markup]:
        memory = self.records[0].instance.memory
        share = self.mean(lambda times: times.mean_memory and times.mean_memory / memory)
        return [
            named(self.name),
            count(len(self.records)),
            count(self.completed),
            *(cell(_shown(mean), mean) for mean in self.times.values()),
            cell("-" if share is None else f"{share:.1%}", share),
            count(sum(record.evictions for record in self.records)),
        ]


@register("latency")
def latency(context: Context) -> Section | None:
    """Return pictures and tables, None for a study in rounds."""
    parts = [part for family in context.families for part in _parts(family)]
    return Section("Latency", join(tag("p", _NOTE), *parts)) if parts else None


def _parts(family: Family) -> list[Markup]:
    """Return the largest number of requests as picture and table, and tables of the others."""
    sizes: dict[int, list[_Row]] = {}
    for group in family.groups:
        found: dict[int, list[Record]] = {}
        for record in (run.record for run in group.runs if run.record.in_seconds):
            found.setdefault(record.instance.requests, []).append(record)
        for size, records in found.items():
            sizes.setdefault(size, []).append(_Row(group.label, records))
    tables: list[Markup] = []
    for size, rows in sorted(sizes.items(), reverse=True):
        title = f"{family.name}, {size:,} requests"
        rows.sort(key=lambda row: (row.times["mean"] is None, row.times["mean"] or 0.0, row.name))
        head = ("scheduler", "runs", "completed", *_TIMES, "cache in use", "evictions")
        caption = f"{title}, in seconds."
        tables.append(table(caption, head, [row.cells() for row in rows], f"{caption} Latency"))
    if not tables:
        return []
    largest = max(sizes)
    picture = _picture(f"{family.name}, {largest:,} requests", sizes[largest])
    parts = [tag("div", picture, class_="figures wide"), tables[0]]
    if others := tables[1:]:
        parts.append(unfolded(f"{len(others)} more numbers of requests", *others))
    return parts


def _picture(title: str, rows: Sequence[_Row]) -> Markup | None:
    made, ends = [], [0.0]
    for row in rows:
        if row.times["mean"] is not None:
            median, p99, mean = (row.times[name] or 0.0 for name in ("median", "p99", "mean"))
            made.append(Bar(row.name, f"{median:,.3f}, {p99:,.3f} s", median, p99, mean))
            ends += [median, p99, mean]
    said = f"{title}: median, 99th percentile and mean latency of {len(made)} schedulers"
    return figure(title, None, bars(said, made, spread("latency (s)", ends))) if made else None


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3f}"
