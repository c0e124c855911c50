"""What users wait, in seconds: means, medians and 99th percentiles at each number of requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from kvopt.experiments.studies.records import Record
from kvopt.experiments.studies.times import Times
from kvopt.reports.bars import Bar, bars
from kvopt.reports.context import Context, Section, column, table, unfolded
from kvopt.reports.figures import figure
from kvopt.reports.html import Markup, breakable, join, tag
from kvopt.reports.points import spread

_NOTE = (
    "Latency of a request in seconds, from its arrival to its last token. A bar goes from the "
    "median to the 99th percentile, the mark is the mean; means over runs, where there are "
    "several. The tables have every number of requests, time to the first token, output tokens a "
    "second, and how much of the cache was in use on average over the run. Where not every run "
    "completed, what finished says little, and no time is given."
)

_HEAD = ("median", "p99", "mean", "first token", "first token p99", "tokens/s", "cache in use")


@dataclass(frozen=True)
class _Row:
    """The runs of a scheduler on instances of one size."""

    name: str
    records: tuple[Record, ...]

    @property
    def completed(self) -> int:
        return sum(record.outcome == "completed" for record in self.records)

    @property
    def evictions(self) -> int:
        return sum(record.evictions for record in self.records)

    def mean(self, value: Callable[[Times], float | None]) -> float | None:
        """Return the mean over runs; None where not all of them completed."""
        found = [None if r.times is None else value(r.times) for r in self.records]
        known = [each for each in found if each is not None]
        done = self.completed == len(self.records) == len(known)
        return fmean(known) if done else None

    @property
    def cells(self) -> list[float | None]:
        memory = self.records[0].instance.memory
        return [
            self.mean(lambda times: times.latency["median"]),
            self.mean(lambda times: times.latency["p99"]),
            self.mean(_mean),
            self.mean(lambda times: times.first_token["mean"]),
            self.mean(lambda times: times.first_token["p99"]),
            self.mean(lambda times: times.tokens_per_second),
            self.mean(lambda times: times.mean_memory and times.mean_memory / memory),
        ]


def waiting(context: Context) -> Section | None:
    """Return pictures and tables, None for a study in rounds."""
    parts = []
    for family in context.families:
        sizes = _sizes(context, family)
        if not sizes:
            continue
        (largest, rows), *others = sorted(sizes.items(), reverse=True)
        title = f"{family}, {largest:,} requests"
        known = [row for row in rows if row.mean(_mean) is not None]
        made = [figure(title, None, _drawn(title, known))] if known else []
        parts += [tag("div", *made, class_="figures wide"), _table(family, largest, rows)]
        if others:
            rest = (_table(family, size, found) for size, found in others)
            parts.append(unfolded(f"{len(others)} more numbers of requests", *rest))
    return Section("latency", "Latency", join(tag("p", _NOTE), *parts)) if parts else None


def _mean(times: Times) -> float | None:
    return times.latency["mean"]


def _sizes(context: Context, family: str) -> dict[int, list[_Row]]:
    """Return the schedulers at each number of requests, the fastest first."""
    found: dict[int, list[_Row]] = {}
    for group in context.groups:
        if group.family != family:
            continue
        sizes: dict[int, list[Record]] = {}
        for run in group.runs:
            if run.record.in_seconds:
                sizes.setdefault(run.record.instance.requests, []).append(run.record)
        for size, records in sizes.items():
            found.setdefault(size, []).append(_Row(group.label, tuple(records)))
    return {size: sorted(rows, key=_fastest_first) for size, rows in found.items()}


def _fastest_first(row: _Row) -> tuple[bool, float, str]:
    mean = row.mean(_mean)
    return mean is None, mean or 0.0, row.name


def _drawn(title: str, rows: Sequence[_Row]) -> Markup:
    ends = [end for row in rows for end in row.cells[:3] if end is not None]
    title = f"{title}: median, 99th percentile and mean latency of {len(rows)} schedulers"
    return bars(title, [_bar(row) for row in rows], spread("latency (s)", [0.0, *ends]))


def _bar(row: _Row) -> Bar:
    median, p99, mean = (value or 0.0 for value in row.cells[:3])
    said = ", ".join(_shown(value) for value in row.cells[:2])
    return Bar(row.name, f"{said} s", median, p99, mean)


def _table(family: str, size: int, rows: Sequence[_Row]) -> Markup:
    head = [
        column("scheduler", "text"),
        column("runs", "number"),
        column("completed", "number"),
        *(column(name, "number") for name in _HEAD),
        column("evictions", "number"),
    ]
    caption = f"{family}, {size:,} requests, in seconds."
    return table(caption, head, [_tr(row) for row in rows], f"{caption} Latency")


def _tr(row: _Row) -> Markup:
    *times, share = row.cells
    return tag(
        "tr",
        tag("th", breakable(row.name, ":,{"), scope="row"),
        _cell(len(row.records), f"{len(row.records):,}"),
        _cell(row.completed, f"{row.completed:,}"),
        *(_cell(value, _shown(value)) for value in times),
        _cell(share, "-" if share is None else f"{share:.1%}"),
        _cell(row.evictions, f"{row.evictions:,}"),
    )


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3f}"


def _cell(value: float | None, shown: str) -> Markup:
    return tag("td", shown, data_value="" if value is None else f"{value:.9g}")
