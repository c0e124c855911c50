"""Memory over time of chosen runs in seconds."""

from __future__ import annotations

from collections.abc import Sequence

from kvopt.experiments.studies.records import Record
from kvopt.experiments.studies.times import Times
from kvopt.reports.charts.axes import Axis, Box, Frame, path
from kvopt.reports.html import Markup, number
from kvopt.reports.layout import by_family, figure, said_of
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.summaries import Family
from kvopt.reports.words import counted

_BOX = Box(360.0, 168.0, 46.0, 350.0, 24.0, 132.0)
_UNEVEN = 3
"""Times by which ends may differ before each picture has its own time axis."""


@register("memory")
def memory(context: Context) -> Section | None:
    """Return a picture for each chosen run, None for a study in rounds."""
    figures = {family.name: _figures(family) for family in context.families}
    return by_family("Memory over time", said_of("memory"), figures)


def _figures(family: Family) -> list[Markup]:
    runs = (run for group in family.groups for run in group.runs)
    records = [r.record for r in runs if r.record.times is not None and r.record.times.memory]
    drawn = [(record, record.times) for record in _chosen(records) if record.times is not None]
    ends = [times.ended for _, times in drawn]
    uneven = bool(ends) and max(ends) > _UNEVEN * min(ends)
    return [
        _figure(family.name, record, times, times.ended if uneven else max(ends))
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


def _figure(family: str, record: Record, times: Times, end: float) -> Markup:
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
    frame = Frame.of(_BOX, Axis("time (s)", 0, end), Axis("", 0, 1.1 * capacity))
    steps = "".join(
        f"V{number(frame.y.at(held))}H{number(frame.x.at(times.ended * part / len(times.memory)))}"
        for part, held in enumerate(times.memory, 1)
    )
    area = path(f"M{frame.at(0, 0)}{steps}V{number(frame.y.at(0))}z", "grown")
    name = f"{family}: {title}: {words}"
    return figure(title, words, frame.svg(name, area, frame.tokens(capacity), frame.bottom()))
