"""The worst runs, each beside the best schedule of its instance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from kvopt.errors import InvalidInput, shown
from kvopt.files.reading import blamed_on, check_schema, parse_json, read_text
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import instance_from_json
from kvopt.reports.charts.bands import BANDS
from kvopt.reports.charts.schedules import MOST_ROWS, draw
from kvopt.reports.html import Markup, join, tag
from kvopt.reports.layout import figure, said_of
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.study import Run, Study
from kvopt.reports.words import counted, size_of
from kvopt.timetable.runs import PolicyRun
from kvopt.timetable.work import Lost

_BEST = "best schedule found"
_LEGEND = {"prompt": "prompt tokens", "grown": "tokens produced", "lost": "lost to an eviction"}
_FEW, _MOST, _OPEN = 6, 12, 3
"""Runs to draw; up to how many, to have one of each scheduler; and how many are unfolded."""

_UNEVEN = 3
"""Times by which makespans may differ before each picture has its own time axis."""


@register("worst")
def worst(context: Context) -> Section | None:
    """Return the pictures, None where no run is proved to be worse than the optimum.

    In seconds rounds differ in length, and `kvopt.reports.sections.seconds` draws runs instead.
    """
    runs = _worst_runs(context.study)
    if context.study.in_seconds or not runs:
        return None
    many = any(run.record.instance.requests > MOST_ROWS for run in runs)
    legend = _LEGEND | (BANDS if many else {})
    swatches = [tag("li", tag("i", class_=kind), said) for kind, said in legend.items()]
    parts = [tag("p", said_of("worst")), tag("ul", *swatches, class_="legend", aria_label="Legend")]
    read = lru_cache(maxsize=2)(_read)  # a certificate is of several runs, and may be large
    for place, run in enumerate(runs):
        try:
            pictures = _pictures(run, *_pair(context.study, run, read))
        except InvalidInput as error:
            pictures = tag(
                "p", f"Not drawn: {context.study.portable(str(error))}", class_="warning"
            )
        parts.append(_article(context, run, pictures, place < _OPEN))
    return Section("Worst instances", join(*parts))


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
    optimum = f"optimum {record.upper:,}"
    if not record.proved:
        lower = "unknown" if record.lower is None else f"{record.lower:,}"
        optimum = f"best schedule {record.upper:,}, proved bound {lower}"
    facts = f"{size_of(record)}; total latency {record.value:,}; {optimum}. "
    title = tag("h3", f"{record.policy} on {record.instance.name}")
    summary = tag("summary", title, tag("span", f"ratio {run.ratio}"))
    said = tag("p", facts, context.link(record.certificate))
    return tag("details", summary, said, pictures, class_="run", open=is_open)


def _pictures(run: Run, best: PolicyRun, found: PolicyRun) -> Markup:
    requests = best.instance.requests
    first = min(request.arrival for request in requests)
    longest, shortest = max(best.makespan, found.makespan), min(best.makespan, found.makespan)
    uneven = longest > _UNEVEN * shortest
    notes = ["The time axes differ."] if uneven else []
    if len(requests) > MOST_ROWS:
        notes.append("Above, how many requests run and how many wait; below, the tokens held.")
    figures = []
    for title, each in (("optimum" if run.record.proved else _BEST, best), (found.policy, found)):
        end = each.makespan if uneven else longest
        # A lead of idle rounds is shown unless it would take a quarter of the picture.
        picture = draw(each, first if first * 4 > end else 0, end)
        lost = f", {counted(each.evictions, 'eviction')}" if each.evictions else ""
        said = f"latency {each.objective:,}, makespan {each.makespan:,}{lost}"
        figures.append(figure(title, said, picture))
    note = tag("p", " ".join(notes)) if notes else None
    return join(note, tag("div", *figures, class_="pair"))


def _pair(
    study: Study, run: Run, read: Callable[[Path], tuple[Instance, dict[str, Any]]]
) -> tuple[PolicyRun, PolicyRun]:
    """Return the best schedule and the run, checked in integers; refuse what does not fit."""
    record = run.record
    if record.certificate is None:
        raise InvalidInput("has no certificate", field=record.instance.name)
    path = study.folder / record.certificate
    with blamed_on(path):
        instance, content = read(path)
        if instance.hash != record.instance.hash:
            raise InvalidInput("is of another instance than its record", field="instance")
        best = _checked(instance, _BEST, content.get("upper"), record.upper)
        policies = content.get("policies")
        for row in policies if isinstance(policies, list) else ():
            if isinstance(row, dict) and row.get("policy") == record.policy:
                return best, _checked(instance, record.policy or "", row, record.value)
        raise InvalidInput("is not in the certificate", field=str(record.policy))


def _read(path: Path) -> tuple[Instance, dict[str, Any]]:
    """Return the instance of a certificate, and the whole."""
    value = parse_json(read_text(path))
    if not isinstance(value, dict):
        raise InvalidInput(f"must be an object, got {shown(value)}")
    check_schema(value, "kvopt.certificate/3")
    return instance_from_json(value.get("instance")), value


def _checked(instance: Instance, label: str, content: object, value: int | None) -> PolicyRun:
    """Build a run from its part of a certificate, and check it."""
    try:
        if not isinstance(content, dict):
            raise TypeError
        lost = [Lost(*_integers(piece)) for piece in content.get("lost", ())]
        if any(piece.request not in range(len(instance)) for piece in lost):
            raise IndexError
        made = (
            PolicyRun(instance, segments=content["segments"], policy=label)
            if "segments" in content
            else _started(instance, label, content, lost)
        )
        broken = made.violations()
    except (KeyError, IndexError, TypeError, ValueError, InvalidInput):
        raise InvalidInput("is not as it was written", field=label) from None
    if broken or made.objective != value:
        reason = broken[0] if broken else f"starts give {made.objective}, the record says {value}"
        raise InvalidInput(reason, field=label)
    return made


def _started(
    instance: Instance, label: str, content: Mapping[str, Any], lost: Iterable[Lost]
) -> PolicyRun:
    starts = _integers(content["starts"])
    if len(starts) != len(instance):
        raise IndexError
    return PolicyRun(instance, starts, lost=tuple(lost), policy=label)


def _integers(values: Iterable[object]) -> tuple[int, ...]:
    found = tuple(values)
    if any(type(value) is not int for value in found):
        raise TypeError
    return cast(tuple[int, ...], found)
