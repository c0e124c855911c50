"""The worst runs, each beside the best schedule of its instance."""

from __future__ import annotations

from kvopt.errors import InvalidInput
from kvopt.reports.context import Context, Section, counted
from kvopt.reports.figures import figure
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.pairs import Pair, read_pair, worst_runs
from kvopt.reports.schedules import MOST_ROWS, draw
from kvopt.reports.study import Run
from kvopt.runs import PolicyRun

_LEGEND = (
    ("prompt", "prompt tokens"),
    ("grown", "tokens produced"),
    ("lost", "lost to an eviction"),
)


def worst(context: Context, most: int) -> Section | None:
    """Return the pictures, None where no run is proved to be worse than the optimum."""
    runs = worst_runs(context.study, most)
    if not runs:
        return None
    note = tag(
        "p",
        "Runs whose proved ratio is largest, some of each scheduler. Left the best schedule "
        "found, right what the scheduler did, on one time axis. Each request has a row, in order "
        "of start; a thin line is waiting, the height of a bar is the tokens held. Below, the "
        "tokens held by all; the dashed line is the cache. Starts were checked in integers when "
        "this page was made.",
    )
    swatches = [tag("li", tag("i", class_=kind), said) for kind, said in _LEGEND]
    legend = tag("ul", *swatches, class_="legend", aria_label="Legend")
    parts = [_article(context, run) for run in runs]
    return Section("worst", "Worst instances", join(note, legend, *parts))


def _article(context: Context, run: Run) -> Markup:
    record = run.record
    title = f"{record.policy} on {record.instance.name}"
    facts = [
        f"{counted(record.instance.requests, 'request')}, M = {record.instance.memory:,}",
        f"total latency {record.value:,}",
        _optimum(run),
        f"ratio {run.ratio}",
    ]
    try:
        pictures = _pictures(read_pair(context.study, run))
    except InvalidInput as error:
        pictures = tag("p", f"Not drawn: {error}", class_="warning")
    said = tag("p", "; ".join(facts), ". ", context.link(record.certificate))
    return tag("article", tag("h3", title), said, pictures)


def _optimum(run: Run) -> str:
    record = run.record
    if record.proved:
        return f"optimum {record.upper:,}"
    lower = "unknown" if record.lower is None else f"{record.lower:,}"
    return f"best schedule {record.upper:,}, proved bound {lower}"


def _pictures(pair: Pair) -> Markup:
    runs = (pair.best, pair.found)
    requests = pair.best.instance.requests
    left = min(request.arrival for request in requests)
    right = max(run.makespan for run in runs)
    # A short lead of idle rounds is shown: time begins at 0.
    left = left if left * 4 > right else 0
    figures = [_drawn(run, left, right) for run in runs]
    note = None
    if len(requests) > MOST_ROWS:
        note = tag("p", f"More than {MOST_ROWS} requests: the tokens held alone are drawn.")
    return join(tag("div", *figures, class_="pair"), note)


def _drawn(run: PolicyRun, left: int, right: int) -> Markup:
    lost = f", {counted(run.evictions, 'eviction')}" if run.evictions else ""
    said = f"latency {run.objective:,}, makespan {run.makespan:,}{lost}"
    return figure(run.policy, said, draw(run, left, right))
