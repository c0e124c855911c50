"""Memory over time of chosen runs in seconds."""

from __future__ import annotations

from collections.abc import Sequence

from kvopt.experiments.studies.records import Record
from kvopt.experiments.studies.times import Times
from kvopt.reports.axes import Frame, Scale, label, labels, line
from kvopt.reports.context import Context, Section, counted
from kvopt.reports.figures import by_family, figure
from kvopt.reports.html import Markup, join, number, tag

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 360.0, 168.0, 46.0, 350.0, 24.0, 132.0
_UNEVEN = 3
"""Times by which ends may differ before each picture has its own time axis."""

_NOTE = (
    "The most tokens held in each two-hundredth of a run, on the first instance with the most "
    "requests: the fastest scheduler, the slowest, the one with the most evictions and one that "
    "never ends, where there are such. The dashed line is the cache."
)


def memory_section(context: Context) -> Section | None:
    """Return a picture for each chosen run, None for a study in rounds."""
    figures = []
    for family in context.families:
        records = [
            run.record
            for group in context.groups
            if group.family == family
            for run in group.runs
            if run.record.times is not None and run.record.times.memory
        ]
        drawn = _chosen(records)
        ends = [record.times.ended for record in drawn if record.times is not None]
        shared = max(ends) if ends and max(ends) <= _UNEVEN * min(ends) else None
        figures += [(family, _figure(family, record, shared)) for record in drawn]
    if not figures:
        return None
    body = join(tag("p", _NOTE), by_family(context, figures))
    return Section("memory", "Memory over time", body)


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


def _figure(family: str, record: Record, shared: float | None) -> Markup:
    times = record.times
    assert times is not None, "only runs with times are chosen"
    title = f"{record.policy}, {record.instance.requests:,} requests"
    said = [f"at most {record.peak_memory or 0:,} of {record.instance.memory:,} tokens"]
    if times.mean_memory is not None:
        said.append(f"{times.mean_memory / record.instance.memory:.1%} in use on average")
    if record.evictions:
        said.append(counted(record.evictions, "eviction"))
    if record.outcome != "completed":
        said.append(record.outcome)
    words = ", ".join(said)
    return figure(title, words, _drawn(f"{family}: {title}: {words}", record, times, shared))


def _drawn(name: str, record: Record, times: Times, shared: float | None) -> Markup:
    memory = record.instance.memory
    x = Scale(0, shared or times.ended, _LEFT, _RIGHT)
    y = Scale(0, 1.1 * memory, _BOTTOM, _TOP)
    frame = Frame(_WIDTH, _HEIGHT, x, y)
    (shown,) = labels([memory])
    return frame.svg(
        name,
        tag("path", d=_area(times, x, y), class_="grown"),
        line(_LEFT, y.at(memory), _RIGHT, y.at(memory), "capacity"),
        line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"),
        label(_LEFT - 5, y.at(memory) + 3.5, shown, "end"),
        label(_LEFT - 5, _BOTTOM + 3.5, "0", "end"),
        label(2, _TOP - 8, "tokens held", "start", "title"),
        frame.bottom(x.ticks(6), "time (s)"),
    )


def _area(times: Times, x: Scale, y: Scale) -> str:
    """Outline the parts of the run as steps."""
    count = len(times.memory)
    steps = "".join(
        f"V{number(y.at(held))}H{number(x.at(times.ended * (place + 1) / count))}"
        for place, held in enumerate(times.memory)
    )
    return f"M{number(x.at(0))} {number(y.at(0))}{steps}V{number(y.at(0))}z"
