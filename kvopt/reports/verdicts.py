"""Published claims beside what was found."""

from __future__ import annotations

from kvopt.reports.claims import Verdict
from kvopt.reports.context import Context, Section, column, table
from kvopt.reports.html import Markup, tag

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
    head = [column(name) for name in ("Claim", "Published", "Found", "Verdict", "Certificates")]
    rows = [_row(context, verdict) for verdict in found]
    caption = "What the papers say and what the runs show. Each verdict rests on its certificates."
    body = table(caption, head, rows, "Verdicts on published claims")
    return Section("verdicts", "Verdicts", body)


def _row(context: Context, verdict: Verdict) -> Markup:
    kind = verdict.verdict.split()[0]
    return tag(
        "tr",
        tag("th", verdict.claim, tag("small", verdict.source), scope="row", class_="claim"),
        tag("td", verdict.published),
        tag("td", verdict.found),
        tag("td", _badge(verdict.verdict, kind)),
        tag("td", context.links(verdict.certificates)),
    )


def _badge(verdict: str, kind: str) -> Markup:
    sign = tag("span", _SIGNS[verdict], aria_hidden="true")
    return tag("span", sign, f" {verdict}", class_=f"verdict {kind}")
