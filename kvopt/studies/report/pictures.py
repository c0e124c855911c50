"""Pictures of a study: ratios, latencies along an axis, and the waiting of users in seconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from statistics import fmean
from typing import Any

from markupsafe import Markup

from kvopt.problem.batch_time import NANOSECONDS
from kvopt.show.plots import style
from kvopt.show.plots.charts import Bar, along, intervals, points, spread
from kvopt.show.plots.embedding import Link, panels
from kvopt.show.summary import counted, rounded
from kvopt.show.summary import spread as spread_of
from kvopt.studies.ratio_intervals import Runs, four_digits, places_of, ratio_of
from kvopt.studies.record_lines import COUNTS, Record, grouped, natural
from kvopt.studies.report.findings import FamilyFindings, differing, in_words
from kvopt.studies.report.pages import BOUND, OPTIMUM, TEXTS, Cell, Context, picture, pieces, sign

_RATIO = "ratio to the optimum"
_MANY = 5
"""From so many ratios on pictures of single runs add to the table."""
_ROOM = 0.7
"""Share of the distance of two sizes over which instances of one size are spread."""
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

ByScheduler = Mapping[str, Sequence[Record]]
"""Records by scheduler."""
Curve = dict[float, float]
"""Mean latency of a request by number of requests, cache or rate, in rounds or in seconds."""
Means = dict[str, float | None]

# ---- records in words


def size_of(record: Record) -> str:
    """Return the size of an instance, and its rate of arrival if that was changed."""
    instance = record.instance
    rate = instance.parameters.get("rate", 1)
    at = "" if rate == 1 else f", rate {rate:g}"
    return f"{counted(instance.requests, 'request')}, M = {instance.memory:,}{at}"


def latency_of(record: Record) -> str:
    """Return the latency of a run."""
    if not record.in_seconds:
        return f"total latency {record.value:,}"
    return f"mean latency {_total(record, record.value, up=True)} s"


def optimum_of(record: Record) -> str:
    """Return the known values of the optimum."""
    if record.proved and not record.in_seconds:
        return f"optimum {record.upper:,}"
    ends = f"[{_total(record, record.lower)}, {_total(record, record.upper, up=True)}]"
    return f"mean latency of the optimum in {ends} s" if record.in_seconds else f"optimum in {ends}"


def _total(record: Record, total: int | None, *, up: bool = False) -> str:
    """Return a total, for nanoseconds its mean in seconds, rounded outward; a dash for unknown."""
    if total is None or not record.in_seconds:
        return "-" if total is None else f"{total:,}"
    mean = record.instance.mean(total) / NANOSECONDS
    return rounded(mean, up=up, places=places_of(mean))


def times_of(record: Record) -> dict[str, Any]:
    """Return the percentiles of a run in seconds, by the columns of ``report.csv``."""
    times = record.times
    if times is None:
        return {}
    latency = {f"{name}_s": value for name, value in times.latency.items()}
    first = {f"first_token_{name}_s": value for name, value in times.first_token.items()}
    ends = {"requests_completed": times.completed, "ended_s": times.ended}
    return {**vars(times), **latency, **first, **ends}


# ---- ratios


def ranking(_: Context, family: FamilyFindings) -> list[Markup]:
    """Return a picture of the mean ratios."""
    bars = []
    for group in family.groups:
        judged, runs = len(group.ratios), len(group.records)
        if judged:
            name = group.policy + (f" ({judged:,} of {runs:,} runs)" if judged < runs else "")
            mean, far = group.mean, group.worst.upper
            bars.append(Bar(name, mean.lower, mean.upper, str(mean), far=far or math.inf))
    if not bars:
        return []
    figure, (ax,) = panels(0.36 * len(bars))
    intervals(bars, ax, f"mean {_RATIO}")
    return [picture(family.name, figure, f"{family.name}: mean ratios of {len(bars)} schedulers")]


def runs(context: Context, family: FamilyFindings) -> list[Markup]:
    """Return the ratio of every run against the size of its instance."""
    drawn = [group for group in family.groups if len(group.ratios) >= _MANY]
    return [_against_size(context, family, group) for group in drawn]


def _against_size(context: Context, family: FamilyFindings, group: Runs) -> Markup:
    """Draw the ratios of a scheduler at the sizes of the instances, each with its description.

    Instances of one size are drawn side by side.
    """
    sizes = grouped(family.instances, lambda record: record.instance.requests)
    room = _ROOM * min((b - a for a, b in pairwise(sorted(sizes))), default=1)
    places = {
        record.key: size + room * ((i + 0.5) / len(alike) - 0.5) if len(sizes) > 1 else i + 1.0
        for size, alike in sizes.items()
        for i, record in enumerate(alike)
    }
    figure, (ax,) = panels(1.8)
    ends, links = [], list[Link]()
    for run, ratio in zip(group.records, map(ratio_of, group.records), strict=True):
        if ratio.lower:
            ends.append((places[context.study.first_run(run).key], ratio.lower, ratio.upper))
            seed = "" if run.instance.seed is None else f", seed {run.instance.seed}"
            times = f"{latency_of(run)}: {ratio} times the optimum"
            lines = [run.instance.name, f"{size_of(run)}{seed}", optimum_of(run), times]
            links.append(("\n".join(lines), context.certificate(run.certificate)))
    points(ends, ax, context.study.looks[group.policy], [*map(str, range(len(ends)))])
    spread(ax.xaxis, [*places.values()])
    spread(ax.yaxis, [end for _, *both in ends for end in both if end], 1)
    style.whole_numbers(ax.xaxis, max(places.values()))
    sized = "requests" if len(sizes) > 1 else f"instances, {min(sizes):,} requests each"
    ax.set(xlabel=sized, ylabel=_RATIO)
    name = f"{group.policy}, {group.family}: ratio of {len(ends)} runs, worst {group.worst}"
    return picture(group.policy, figure, name, links=links)


# ---- latencies along an axis


def _place(record: Record, key: str) -> float | None:
    """Return the place of an instance, None if its size or cache was drawn at random."""
    instance = record.instance
    sizes: dict[str, float] = {"n": instance.requests, "memory": instance.memory}
    if key in sizes and instance.seed is not None and key not in instance.parameters:
        return None
    return sizes[key] if key in sizes else float(instance.parameters.get(key, 1))


def along_axis(context: Context, name: str) -> str:
    """Return pictures of each trace or family that differs in one axis only."""
    key = TEXTS[name]["key"]
    original = {record.key: record for record in context.study.records}
    labels = {run.key: group.policy for group in context.study.groups for run in group.records}
    placed = [original[run] for run in labels if _place(original[run], key) is not None]
    sources = grouped(placed, _source)
    varied = {source: differing(_others(r, key) for r in sources[source]) for source in sources}

    def heading(record: Record) -> str:
        others = in_words(_others(record, key), varied[_source(record)])
        return ", ".join(filter(None, (_source(record), others)))

    drawn = {}
    for source in sorted(sources, key=natural):
        alike = grouped(sources[source], heading)
        headed = {
            title: grouped(alike[title], lambda record: labels[record.key])
            for title in sorted(alike, key=natural)
            if len({_place(record, key) for record in alike[title]}) > 1
        }
        drawn[source] = _drawn(context, name, headed)
    return context.gallery(name, drawn)


def _source(record: Record) -> str:
    return record.instance.family or record.instance.name


def _others(record: Record, key: str) -> dict[str, Any]:
    """Return the parameters of an instance except an axis."""
    keys = record.instance.parameters
    return {name: value for name, value in keys.items() if name not in (key, *COUNTS)}


def _drawn(context: Context, name: str, headed: Mapping[str, ByScheduler]) -> list[Markup]:
    """Return pictures by heading, which share their axis of latency, with their numbers."""
    axis, key = TEXTS[name]["axis"], TEXTS[name]["key"]
    by_heading = {heading: _curves(runs, key) for heading, runs in headed.items()}
    every = chain.from_iterable(curves.values() for curves in by_heading.values())
    values = [y for curve in every for y in curve.values()]
    pictures = []
    for heading, curves in by_heading.items():
        records = [*chain.from_iterable(headed[heading].values())]
        places = sorted({_place(record, key) or 0 for record in records})
        unit = "seconds" if records[0].in_seconds else "rounds"
        # The numbers unfold below the picture.
        cells = [[f"{x:,g}", *(curve.get(x) for curve in curves.values())] for x in places]
        caption = f"Mean latency of a request in {unit}, {heading}."
        more = pieces.unfolded("Numbers", pieces.table(caption, [axis, *curves], cells))
        # The optimum is a band, and schedulers are lines.
        lower, upper, *schedulers = curves.items()
        optimum = [(x, lower[1].get(x), upper[1].get(x)) for x in places]
        figure, (ax,) = panels(2.4)
        lines = {label: [*curve.items()] for label, curve in schedulers}
        along(optimum, lines, ax, context.study.looks)
        spread(ax.xaxis, places)
        spread(ax.yaxis, values)
        ax.set(xlabel=axis, ylabel=f"mean latency ({unit})")
        legend = [OPTIMUM, BOUND] if any(None not in ends for ends in optimum) else []
        legend += [sign(context.study.looks[label], label) for label in lines]
        words = f"{heading}: mean latency of a request against {axis}"
        pictures.append(picture(heading, figure, words, legend=legend, more=more))
    return pictures


def _curves(runs: ByScheduler, key: str) -> dict[str, Curve]:
    """Return the mean latencies of both sides of the optimum and of schedulers, by place."""

    def curve(totals: Iterable[tuple[Record, int | None]]) -> Curve:
        """Return the mean latency of a request at each place, without those of unknown ones."""
        curve: Curve = {}
        for place, pairs in grouped(totals, lambda pair: _place(pair[0], key) or 0).items():
            means = [
                float(record.instance.mean(total)) / (NANOSECONDS if record.in_seconds else 1)
                for record, total in pairs
                if total is not None and record.instance.requests
            ]
            if len(means) == len(pairs):
                curve[place] = fmean(means)
        return curve

    def best(of: Callable[..., int | None], ends: Iterable[int | None]) -> int | None:
        return of((end for end in ends if end is not None), default=None)

    every = chain.from_iterable(runs.values())
    instances = grouped(every, lambda record: record.instance.hash).values()
    # The best of each side over all limits; a scheduler needs all runs to complete.
    lower = curve((group[0], best(max, (r.lower for r in group))) for group in instances)
    upper = curve((group[0], best(min, (r.upper for r in group))) for group in instances)
    curves = {label: curve((run, run.value) for run in group) for label, group in runs.items()}
    curves = {label: means for label, means in curves.items() if means}
    return {"proved bound": lower, "best schedule": upper, **curves}


# ---- waiting of users


def latency(context: Context) -> str:
    """Return pictures and tables, empty for a study in rounds."""
    return Markup().join(map(_latencies, context.study.families))


def _latencies(family: FamilyFindings) -> Markup:
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
        values = [row[column] for row in times if row.get(column) is not None]
        means[name] = fmean(values) if group.completed and len(values) == len(times) else None
    return means


def _picture(title: str, rows: Sequence[tuple[Runs, Means]]) -> Markup:
    """Draw the latency of each scheduler: a bar from median to 99th percentile, and the mean."""
    bars = []
    for group, means in rows:
        median, p99, mean = (means[name] for name in ("median", "p99", "mean"))
        if median is not None and p99 is not None:
            note = f"{four_digits(median)}, {four_digits(p99)} s"
            bars.append(Bar(group.policy, median, p99, note, mean))
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
