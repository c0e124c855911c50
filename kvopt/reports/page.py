"""The page: one file that needs nothing else and asks for nothing over a network.

Its policy of content allows this very style sheet and this very script, by their digests, and
nothing from anywhere.  What a file of the study says can therefore not run, even if it got past
the escaping.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from kvopt.experiments.studies.records import Record
from kvopt.reports.closing import failures, provenance
from kvopt.reports.context import Context, Section
from kvopt.reports.curves import curves
from kvopt.reports.html import Markup, tag
from kvopt.reports.memory_section import memory_section
from kvopt.reports.overview import overview
from kvopt.reports.policies import policies
from kvopt.reports.ranking import ranking
from kvopt.reports.ratios import histograms
from kvopt.reports.sizes import gaps, scatter
from kvopt.reports.tradeoff import tradeoff
from kvopt.reports.units import optimum_of
from kvopt.reports.verdicts import verdicts
from kvopt.reports.waiting import waiting
from kvopt.reports.worst import worst
from kvopt.version import __version__

_PATTERNS = Markup(
    '<svg class="patterns" aria-hidden="true" width="0" height="0"><defs>'
    '<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="5" height="5" class="ground"/>'
    '<line x1="0" y1="0" x2="0" y2="5"/></pattern>'
    '<pattern id="cross" width="4" height="4" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(-45)"><line x1="0" y1="0" x2="0" y2="4"/></pattern>'
    "</defs></svg>"
)


def page(context: Context) -> str:
    """Return the report as text."""
    made = (
        overview(context),
        verdicts(context),
        waiting(context),
        policies(context),
        ranking(context),
        histograms(context),
        scatter(context),
        gaps(context),
        curves(context),
        tradeoff(context),
        memory_section(context),
        worst(context),
        failures(context),
        provenance(context),
    )
    sections = [section for section in made if section is not None]
    style, script = _asset("report.css"), _asset("report.js")
    title = f"kvopt study {context.study.name}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"kvopt {__version__}"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", style),
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        _PATTERNS,
        _header(context, sections),
        tag("main", *(_section(section) for section in sections), id="content"),
        tag("footer", tag("p", f"Made by kvopt {__version__} from the records of the study.")),
        tag("div", id="tip", role="status", hidden=True),
        tag("script", _data(context, sections), type="application/json", id="data"),
        tag("script", script),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _asset(name: str) -> Markup:
    return Markup(files("kvopt.reports").joinpath(name).read_text(encoding="utf-8"))


def _policy(style: str, script: str) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in (style, script))
    allowed = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    return (
        f"default-src 'none'; style-src {allowed[0]}; script-src {allowed[1]}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _header(context: Context, sections: Sequence[Section]) -> Markup:
    links = [tag("li", tag("a", each.title, href=f"#{each.place}")) for each in sections]
    return tag(
        "header",
        tag("p", "kvopt study", class_="kind"),
        tag("h1", context.study.name),
        tag("p", context.study.title) if context.study.in_seconds else None,
        tag("nav", tag("ul", *links), aria_label="Contents"),
    )


def _section(section: Section) -> Markup:
    heading = f"{section.place}-heading"
    return tag(
        "section",
        tag("h2", section.title, id=heading),
        section.body,
        id=section.place,
        aria_labelledby=heading,
    )


def _data(context: Context, sections: Sequence[Section]) -> Markup:
    """Return what the script needs; a ``<`` inside would end the element too early."""
    content: dict[str, Any] = {
        "instances": [_instance(context, record) for record in context.study.instances],
        "charts": {place: data for each in sections for place, data in each.charts.items()},
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def _instance(context: Context, record: Record) -> list[str | None]:
    instance = record.instance
    seed = "" if instance.seed is None else f", seed {instance.seed}"
    size = f"{instance.requests:,} requests, M = {instance.memory:,}{seed}"
    return [instance.name, size, optimum_of(record), context.certificate(record.certificate)]
