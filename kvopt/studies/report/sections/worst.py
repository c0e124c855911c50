"""The worst runs, each next to the best schedule of its instance."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from kvopt.certificates.certificate_files import read_certificate
from kvopt.errors import InvalidInput
from kvopt.files.reading import blamed_on
from kvopt.show.plots.embedding import are_uneven, panels
from kvopt.show.plots.panels import memory_profile, rows
from kvopt.show.plots.style import CROWDED
from kvopt.show.summary import counted
from kvopt.studies.intervals import ratio_of
from kvopt.studies.records import Record
from kvopt.studies.report.context import TEXTS, Context
from kvopt.studies.report.layout import picture, pieces
from kvopt.studies.report.study import Study, least_ratio
from kvopt.studies.report.words import optimum_of, size_of

if TYPE_CHECKING:
    from markupsafe import Markup

    from kvopt.incumbent.certificate import Certificate

_MOST, _OPEN = 12, 3
"""Limit of the runs to draw, and how many are unfolded."""


def worst(context: Context) -> str:
    """Return the pictures, empty if no run is proved to be worse than the optimum.

    In seconds rounds differ in length, and `kvopt.studies.report.sections.seconds` draws runs
    instead.
    """
    runs = _worst_runs(context.study)
    if context.study.in_seconds or not runs:
        return ""
    many = any(run.instance.requests > CROWDED for run in runs)
    legend = TEXTS["worst"]["legend"] + (TEXTS["memory"]["legend"] if many else [])
    body = pieces.signs(legend)
    read = lru_cache(maxsize=2)(read_certificate)  # it has several runs and may be large
    for place, run in enumerate(runs):
        try:
            if run.certificate is None:
                raise InvalidInput("has no certificate", field=run.instance.name)
            path = context.study.folder / run.certificate
            with blamed_on(path):
                pictures = _pictures(run, read(path, 1))
        except InvalidInput as error:
            pictures = pieces.warning(f"Not drawn: {error}")
        facts = f"{size_of(run)}; total latency {run.value:,}; {optimum_of(run)}."
        title, link = f"{run.policy} on {run.instance.name}", context.link(run.certificate)
        body += pieces.run(title, ratio_of(run), facts, link, pictures, place < _OPEN)
    return body


def _worst_runs(study: Study) -> list[Record]:
    """Return the worst run of each policy, up to a number."""
    worst = {run.policy: run for run in reversed(study.judged) if least_ratio(run) > 1}
    return sorted(worst.values(), key=least_ratio, reverse=True)[:_MOST]


def _pictures(run: Record, certificate: Certificate) -> Markup:
    """Return the best schedule and the run, which was checked with the certificate."""
    best = certificate.upper
    made = {each.policy: each for each in certificate.runs}.get(run.policy or "")
    sides = (certificate.instance.hash, best and best.objective, made and made.objective)
    if made is None or best is None or sides != (run.instance.hash, run.upper, run.value):
        raise InvalidInput("is not what the record says", field=f"certificate, {run.policy}")
    ends, count = (best.makespan, made.makespan), len(best.instance)
    uneven = are_uneven(ends)
    notes = ["The time axes differ."] if uneven else []
    if count > CROWDED:
        notes.append("Above, how many requests run and how many wait; below, the tokens held.")
    lost = f", {counted(run.evictions, 'eviction')}" if run.evictions else ""
    name = "optimum" if run.proved else "best schedule found"
    figures = []
    for title, what, said in ((name, best, ""), (made.policy, made, lost)):
        height = 2.2 if count > CROWDED else max(0.9, min(3.6, 0.2 * count))
        figure, (upper, lower) = panels(height, 1.2)
        rows(what, upper)
        memory_profile(what, lower)
        if not uneven:
            upper.set_xlim(right=max(ends))
        words = f"latency {what.objective:,}, makespan {what.makespan:,}{said}"
        place = f"{run.policy} on {run.instance.name}: {title}: {words}"
        figures.append(picture(title, figure, place, words))
    return pieces.pair(notes, figures)
