"""The worst runs, each beside the best schedule of its instance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from kvopt.errors import InvalidInput, shown
from kvopt.files.instances import instance_from_json
from kvopt.files.reading import check_schema, parse_json, read_text
from kvopt.model.instance import Instance
from kvopt.reports.charts.schedules import MOST_ROWS, draw
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.layout import figure
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.study import Run, Study
from kvopt.reports.words import counted
from kvopt.simulation.runs import Lost, Outcome, PolicyRun

_SCHEMA = "kvopt.certificate/1"
_LEGEND = {"prompt": "prompt tokens", "grown": "tokens produced", "lost": "lost to an eviction"}
_FEW, _MOST, _OPEN = 6, 12, 3
"""Runs to draw; up to how many, to have one of each scheduler; and how many are unfolded."""

_UNEVEN = 3
"""Times by which makespans may differ before each picture has its own time axis."""

_NOTE = (
    "The run of each scheduler whose proved ratio is largest, then, where few were beaten, the "
    "next. Left the optimum or the best schedule found, right what the scheduler did. Each "
    "request has a row, in order of start; a thin line is waiting, the height of a bar is the "
    "tokens held. Below, the tokens held by all; the dashed line is the cache. Starts were "
    "checked in integers when this page was made."
)


@register("worst")
def worst(context: Context) -> Section | None:
    """Return the pictures, None where no run is proved to be worse than the optimum.

    In seconds rounds differ in length, and `kvopt.reports.sections.memory` draws runs instead.
    """
    runs = _worst_runs(context.study)
    if context.study.in_seconds or not runs:
        return None
    swatches = [tag("li", tag("i", class_=kind), said) for kind, said in _LEGEND.items()]
    legend = tag("ul", *swatches, class_="legend", aria_label="Legend")
    # Runs of one certificate are drawn one after another, so that it is read once.
    content = lru_cache(maxsize=1)(_read)
    places = sorted(range(len(runs)), key=lambda i: runs[i].record.certificate or "")
    made = {}
    for i in places:
        try:
            pictures = _pictures(runs[i], *_pair(context.study, runs[i], content))
        except InvalidInput as error:
            pictures = tag("p", f"Not drawn: {error}", class_="warning")
        made[i] = _article(context, runs[i], pictures, i < _OPEN)
    return Section(
        "Worst instances", join(tag("p", _NOTE), legend, *(made[i] for i in sorted(made)))
    )


def _worst_runs(study: Study) -> list[Run]:
    """Return the worst run of each policy, then the second of each, as long as there is room."""
    beaten = [run for run in study.judged if run.least > 1]
    seen: Counter[str | None] = Counter()
    turns = []
    for place, run in enumerate(beaten):
        turns.append((seen[run.record.policy], place))
        seen[run.record.policy] += 1
    count = min(max(_FEW, len(seen)), _MOST)
    return [beaten[place] for _, place in sorted(turns)[:count]]


def _article(context: Context, run: Run, pictures: Markup, is_open: bool) -> Markup:
    record = run.record
    lower = "unknown" if record.lower is None else f"{record.lower:,}"
    optimum = f"best schedule {record.upper:,}, proved bound {lower}"
    facts = [
        f"{counted(record.instance.requests, 'request')}, M = {record.instance.memory:,}",
        f"total latency {record.value:,}",
        f"optimum {record.upper:,}" if record.proved else optimum,
    ]
    said = tag("p", "; ".join(facts), ". ", context.link(record.certificate))
    title = tag("h3", f"{record.policy} on {record.instance.name}")
    summary = tag("summary", title, tag("span", f"ratio {run.ratio}"))
    return tag("details", summary, said, pictures, class_="run", open=is_open)


def _pictures(run: Run, best: PolicyRun, found: PolicyRun) -> Markup:
    requests = best.instance.requests
    first = min(request.arrival for request in requests)
    ends = [best.makespan, found.makespan]
    notes = []
    if max(ends) > _UNEVEN * min(ends):
        notes.append("The time axes differ.")
    else:
        ends = [max(ends)] * len(ends)
    if len(requests) > MOST_ROWS:
        notes.append(f"With more than {MOST_ROWS} requests, only the tokens held are drawn.")
    # A lead of idle rounds is shown unless it would take a quarter of the picture.
    titles = ("optimum" if run.record.proved else best.policy, found.policy)
    figures = [
        _drawn(title, each, first if first * 4 > end else 0, end)
        for title, each, end in zip(titles, (best, found), ends, strict=True)
    ]
    note = tag("p", " ".join(notes)) if notes else None
    return join(note, tag("div", *figures, class_="pair"))


def _drawn(title: str, run: PolicyRun, left: int, right: int) -> Markup:
    lost = f", {counted(run.evictions, 'eviction')}" if run.evictions else ""
    said = f"latency {run.objective:,}, makespan {run.makespan:,}{lost}"
    return figure(title, said, draw(run, left, right))


def _pair(
    study: Study, run: Run, content: Callable[[Path], tuple[Instance, Mapping[str, Any]]]
) -> tuple[PolicyRun, PolicyRun]:
    """Return the best schedule and the run, checked in integers.

    Raises
    ------
    InvalidInput
        If the certificate cannot be read, is of another instance or claims other numbers.
    """
    record = run.record
    if record.certificate is None:
        raise InvalidInput("has no certificate", field=record.instance.name)
    path = study.folder / record.certificate
    try:
        instance, parts = content(path)
        if instance.hash != record.instance.hash:
            raise InvalidInput("is of another instance than its record", field="instance")
        best = _checked(instance, "best schedule found", parts.get("upper"), record.upper)
        policies = parts.get("policies")
        rows = policies if isinstance(policies, list) else ()
        mine = [r for r in rows if isinstance(r, dict) and r.get("policy") == record.policy]
        if not mine:
            raise InvalidInput("is not in the certificate", field=str(record.policy))
        return best, _checked(instance, record.policy or "", mine[0], record.value)
    except InvalidInput as error:
        raise error.located(file=str(path)) from None


def _read(path: Path) -> tuple[Instance, Mapping[str, Any]]:
    """Return the instance of a certificate, and the whole."""
    value = parse_json(read_text(path))
    if not isinstance(value, dict):
        raise InvalidInput(f"must be an object, got {shown(value)}")
    check_schema(value, _SCHEMA)
    return instance_from_json(value.get("instance")), value


def _checked(instance: Instance, label: str, content: object, value: int | None) -> PolicyRun:
    """Build a run from its part of a certificate, and check it."""
    try:
        if not isinstance(content, dict):
            raise TypeError
        lost = [Lost(*_integers(piece)) for piece in content.get("lost", ())]
        starts = _integers(content["starts"])
        if any(piece.request not in range(len(instance)) for piece in lost):
            raise IndexError
        made = PolicyRun(instance, label, starts, tuple(lost), Outcome.COMPLETED, 0.0)
        broken = made.violations()  # refuses starts that are too few or too many
    except (KeyError, IndexError, TypeError, ValueError):
        raise InvalidInput("is not as it was written", field=label) from None
    if broken or made.objective != value:
        reason = broken[0] if broken else f"starts give {made.objective}, the record says {value}"
        raise InvalidInput(reason, field=label)
    return made


def _integers(values: Iterable[object]) -> tuple[int, ...]:
    found = tuple(values)
    if any(type(value) is not int for value in found):
        raise TypeError
    return cast(tuple[int, ...], found)
