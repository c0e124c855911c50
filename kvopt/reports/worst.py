"""The worst runs, each beside the best schedule of its instance."""

from __future__ import annotations

from collections.abc import Sequence

from kvopt.errors import InvalidInput
from kvopt.reports.context import Context, Section, counted
from kvopt.reports.figures import figure
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.pairs import BEST, Certificates, Pair, worst_runs
from kvopt.reports.schedules import MOST_ROWS, draw
from kvopt.reports.study import Run
from kvopt.simulation.runs import PolicyRun

_LEGEND = (
    ("prompt", "prompt tokens"),
    ("grown", "tokens produced"),
    ("lost", "lost to an eviction"),
)


_FEW, _MOST, _OPEN = 6, 12, 3
"""Runs to draw; up to how many, to have one of each scheduler; and how many are unfolded."""

_UNEVEN = 3
"""Times by which makespans may differ before each picture has its own time axis."""


def worst(context: Context) -> Section | None:
    """Return the pictures, None where no run is proved to be worse than the optimum.

    In seconds rounds differ in length, and `kvopt.reports.memory_section` draws runs instead.
    """
    if context.study.in_seconds:
        return None
    runs = worst_runs(context.study, _FEW, _MOST)
    if not runs:
        return None
    note = tag(
        "p",
        "The run of each scheduler whose proved ratio is largest, then, where few were beaten, the "
        "next. Left the optimum or the best schedule found, right what the scheduler did. Each "
        "request has a row, in order of start; a thin line is waiting, the height of a bar is the "
        "tokens held. Below, the tokens held by all; the dashed line is the cache. Starts were "
        "checked in integers when this page was made.",
    )
    swatches = [tag("li", tag("i", class_=kind), said) for kind, said in _LEGEND]
    legend = tag("ul", *swatches, class_="legend", aria_label="Legend")
    parts = _articles(context, runs)
    return Section("worst", "Worst instances", join(note, legend, *parts))


def _articles(context: Context, runs: Sequence[Run]) -> list[Markup]:
    """Draw runs of one certificate one after another, and return all in the order given."""
    certificates = Certificates(context.study)
    places = sorted(range(len(runs)), key=lambda i: runs[i].record.certificate or "")
    made = {i: _article(context, runs[i], certificates, i < _OPEN) for i in places}
    return [made[i] for i in range(len(runs))]


def _article(context: Context, run: Run, certificates: Certificates, is_open: bool) -> Markup:
    record = run.record
    title = f"{record.policy} on {record.instance.name}"
    facts = [
        f"{counted(record.instance.requests, 'request')}, M = {record.instance.memory:,}",
        f"total latency {record.value:,}",
        _optimum(run),
    ]
    try:
        pictures = _pictures(certificates.pair(run))
    except InvalidInput as error:
        pictures = tag("p", f"Not drawn: {error}", class_="warning")
    said = tag("p", "; ".join(facts), ". ", context.link(record.certificate))
    summary = tag("summary", tag("h3", title), tag("span", f"ratio {run.ratio}"))
    return tag("details", summary, said, pictures, class_="run", open=is_open)


def _optimum(run: Run) -> str:
    record = run.record
    if record.proved:
        return f"optimum {record.upper:,}"
    lower = "unknown" if record.lower is None else f"{record.lower:,}"
    return f"best schedule {record.upper:,}, proved bound {lower}"


def _pictures(pair: Pair) -> Markup:
    runs = (pair.best, pair.found)
    requests = pair.best.instance.requests
    first = min(request.arrival for request in requests)
    ends = [run.makespan for run in runs]
    notes = []
    if max(ends) > _UNEVEN * min(ends):
        notes.append("The time axes differ.")
    else:
        ends = [max(ends)] * len(ends)
    if len(requests) > MOST_ROWS:
        notes.append(f"With more than {MOST_ROWS} requests, only the tokens held are drawn.")
    # A lead of idle rounds is shown unless it would take a quarter of the picture.
    titles = ("optimum" if pair.run.record.proved else BEST, pair.found.policy)
    figures = [
        _drawn(title, run, first if first * 4 > end else 0, end)
        for title, run, end in zip(titles, runs, ends, strict=True)
    ]
    note = tag("p", " ".join(notes)) if notes else None
    return join(note, tag("div", *figures, class_="pair"))


def _drawn(title: str, run: PolicyRun, left: int, right: int) -> Markup:
    lost = f", {counted(run.evictions, 'eviction')}" if run.evictions else ""
    said = f"latency {run.objective:,}, makespan {run.makespan:,}{lost}"
    return figure(title, said, draw(run, left, right))
