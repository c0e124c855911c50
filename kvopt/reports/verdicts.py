"""Published claims beside what was found."""

from __future__ import annotations

from kvopt.experiments.studies.claims import Verdict
from kvopt.reports.context import Context, Section, cards
from kvopt.reports.html import Markup, Node, join, tag

_SIGNS = {
    "reproduced": "✓",
    "not reproduced as printed": "≠",
    "refuted": "✗",
    "undecided": "?",
    "measured": "•",
}


def verdicts(context: Context) -> Section | None:
    """Return the table of claims, None where the study puts none to the test."""
    found = context.study.verdicts
    if not found:
        return None
    rows = [_row(context, verdict) for verdict in found]
    caption = "What the papers say and what the runs show."
    if any(verdict.certificates for verdict in found):
        caption += " Each verdict rests on its certificates."
    head = ("Claim", "Published", "Found", "Verdict", "Certificates")
    return Section("verdicts", "Verdicts", cards(caption, head, rows))


def _row(context: Context, verdict: Verdict) -> list[Node]:
    return [
        join(verdict.claim, tag("small", verdict.source)),
        verdict.published,
        verdict.found,
        _badge(verdict.verdict),
        context.links(verdict.certificates),
    ]


def _badge(verdict: str) -> Markup:
    sign = tag("span", _SIGNS[verdict], aria_hidden="true")
    return tag("span", sign, f" {verdict}", class_=f"verdict {verdict.split()[0]}")
