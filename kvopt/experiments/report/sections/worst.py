"""The worst runs, each beside the best schedule of its instance."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from kvopt.certificates.files import read_certificate
from kvopt.errors import InvalidInput
from kvopt.experiments.report.layout import BANDS, WORK, note, picture, pieces
from kvopt.experiments.report.registry import Context, Section, register
from kvopt.experiments.report.study import Run, Study
from kvopt.experiments.report.words import counted, size_of
from kvopt.files.reading import blamed_on
from kvopt.show.plots.embedding import panels
from kvopt.show.plots.panels import memory_profile, rows
from kvopt.show.plots.style import CROWDED

if TYPE_CHECKING:
    from markupsafe import Markup

    from kvopt.certificates.certificate import Certificate
    from kvopt.timetable.schedule import Schedule

_FEW, _MOST, _OPEN = 6, 12, 3
"""Runs to draw; up to how many, to have one of each scheduler; and how many are unfolded."""

_UNEVEN = 3
"""Times by which makespans may differ before each picture has its own time axis."""


@register("worst")
def worst(context: Context) -> Section | None:
    """Return the pictures, None where no run is proved to be worse than the optimum.

    In seconds rounds differ in length, and `kvopt.experiments.report.sections.seconds` draws runs
    instead.
    """
    runs = _worst_runs(context.study)
    if context.study.in_seconds or not runs:
        return None
    many = any(run.record.instance.requests > CROWDED for run in runs)
    body = pieces.paragraphs([note("worst")]) + pieces.signs(WORK + (BANDS if many else []))
    read = lru_cache(maxsize=2)(read_certificate)  # of several runs, and maybe large
    for place, run in enumerate(runs):
        record = run.record
        try:
            if record.certificate is None:
                raise InvalidInput("has no certificate", field=record.instance.name)
            path = context.study.folder / record.certificate
            with blamed_on(path):
                pictures = _pictures(run, read(path, 1))
        except InvalidInput as error:
            pictures = pieces.warning(f"Not drawn: {context.study.portable(str(error))}")
        optimum = f"optimum {record.upper:,}"
        if not record.proved:
            lower = "unknown" if record.lower is None else f"{record.lower:,}"
            optimum = f"best schedule {record.upper:,}, proved bound {lower}"
        facts = f"{size_of(record)}; total latency {record.value:,}; {optimum}."
        title, link = f"{record.policy} on {record.instance.name}", context.link(record.certificate)
        body += pieces.run(title, run.ratio, facts, link, pictures, place < _OPEN)
    return Section("Worst instances", body)


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


def _pictures(run: Run, certificate: Certificate) -> Markup:
    """Return the best schedule and the run, which was checked with the certificate."""
    record, best = run.record, certificate.upper
    made = {each.policy: each for each in certificate.runs}.get(record.policy or "")
    sides = (certificate.instance.hash, best and best.objective, made and made.objective)
    if made is None or best is None or sides != (record.instance.hash, record.upper, record.value):
        raise InvalidInput("is not what the record says", field=f"certificate, {record.policy}")
    longest, shortest = (each((best.makespan, made.makespan)) for each in (max, min))
    uneven = longest > _UNEVEN * shortest
    notes = ["The time axes differ."] if uneven else []
    if len(certificate.instance) > CROWDED:
        notes.append("Above, how many requests run and how many wait; below, the tokens held.")
    lost = f", {counted(record.evictions, 'eviction')}" if record.evictions else ""
    name, until = "optimum" if record.proved else "best schedule found", None if uneven else longest
    place = f"{record.policy} on {record.instance.name}"
    figures = [
        _figure(place, title, what, said, until)
        for title, what, said in ((name, best, ""), (made.policy, made, lost))
    ]
    drawn: Markup = pieces.pair(notes, figures)
    return drawn


def _figure(place: str, title: str, what: Schedule, said: str, until: float | None) -> Markup:
    """Draw requests above and tokens below."""
    count = len(what.instance)
    height = 2.2 if count > CROWDED else max(0.9, min(3.6, 0.2 * count))
    figure, (upper, lower) = panels(height, 1.2)
    rows(what, upper)
    memory_profile(what, lower)
    if until is not None:
        upper.set_xlim(right=until)
    words = f"latency {what.objective:,}, makespan {what.makespan:,}{said}"
    return picture(title, figure, f"{place}: {title}: {words}", words)
