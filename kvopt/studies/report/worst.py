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
from kvopt.studies.ratio_intervals import ratio_of
from kvopt.studies.record_lines import Record
from kvopt.studies.report.findings import least_ratio
from kvopt.studies.report.pages import TEXTS, Context, picture, pieces
from kvopt.studies.report.pictures import optimum_of, size_of

if TYPE_CHECKING:
    from markupsafe import Markup

    from kvopt.incumbent.certificate import Certificate

_MAX_RUNS, _OPEN = 12, 3
"""Limit of the runs to draw, and how many are unfolded."""


def worst(context: Context) -> str:
    """Return the pictures, empty if no run is proved to be worse than the optimum.

    In seconds rounds differ in length, and `kvopt.studies.report.pictures` draws runs
    instead.
    """
    worst_of = {r.policy: r for r in reversed(context.study.judged) if least_ratio(r) > 1}
    runs = sorted(worst_of.values(), key=least_ratio, reverse=True)[:_MAX_RUNS]
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


def _pictures(run: Record, certificate: Certificate) -> Markup:
    """Return the best schedule and the run, which was checked with the certificate."""
    best = certificate.upper
    judged = {other.policy: other for other in certificate.runs}.get(run.policy or "")
    sides = (certificate.instance.hash, best and best.objective, judged and judged.objective)
    if judged is None or best is None or sides != (run.instance.hash, run.upper, run.value):
        raise InvalidInput("is not what the record says", field=f"certificate, {run.policy}")
    ends, count = (best.makespan, judged.makespan), len(best.instance)
    uneven = are_uneven(ends)
    notes = ["The time axes differ."] if uneven else []
    if count > CROWDED:
        notes.append("Above, how many requests run and how many wait; below, the tokens held.")
    lost = f", {counted(run.evictions, 'eviction')}" if run.evictions else ""
    name = "optimum" if run.proved else "best schedule found"
    figures = []
    for title, drawn, remark in ((name, best, ""), (judged.policy, judged, lost)):
        height = 2.2 if count > CROWDED else max(0.9, min(3.6, 0.2 * count))
        figure, (upper, lower) = panels(height, 1.2)
        rows(drawn, upper)
        memory_profile(drawn, lower)
        if not uneven:
            upper.set_xlim(right=max(ends))
        words = f"latency {drawn.objective:,}, makespan {drawn.makespan:,}{remark}"
        place = f"{run.policy} on {run.instance.name}: {title}: {words}"
        figures.append(picture(title, figure, place, words))
    return pieces.pair(notes, figures)
