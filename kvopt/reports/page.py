"""The page: one file that needs nothing else and asks for nothing over a network.

Its policy of content allows this very style sheet and this very script, by their digests, and
nothing from anywhere.  What a file of the study says can therefore not run, even if it got past
the escaping.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from string import Template

from kvopt.experiments.studies.records import Record
from kvopt.reports.context import Context
from kvopt.reports.html import Markup, join, tag, text
from kvopt.reports.layout import Section
from kvopt.reports.registry import sections_of
from kvopt.reports.words import optimum_of
from kvopt.version import __version__


def page(context: Context) -> str:
    """Return the report as text."""
    skeleton, style, script = (_asset(each) for each in ("page.html", "report.css", "report.js"))
    study, sections = context.study, sections_of(context)
    items = sections.items()
    return Template(skeleton).substitute(
        policy=text(_policy(style, script)),
        version=text(__version__),
        name=text(study.name),
        style=style,
        title=tag("p", study.title) if study.in_seconds else "",
        links=join(*(tag("li", tag("a", s.title, href=f"#{name}")) for name, s in items)),
        sections=join(*(_section(name, section) for name, section in items)),
        data=_data(context, sections),
        script=script,
    )


def _asset(name: str) -> str:
    return files("kvopt.reports").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    digests = (hashlib.sha256(part.encode()).digest() for part in (style, script))
    allowed = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    return (
        f"default-src 'none'; style-src {allowed[0]}; script-src {allowed[1]}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _section(name: str, section: Section) -> Markup:
    heading = tag("h2", section.title, id=f"{name}-heading")
    return tag("section", heading, section.body, id=name, aria_labelledby=f"{name}-heading")


def _data(context: Context, sections: Mapping[str, Section]) -> str:
    """Return what the script needs; a ``<`` inside would end the element too early."""
    content = {
        "instances": [_instance(context, record) for record in context.study.instances],
        "charts": {
            place: data for each in sections.values() for place, data in each.charts.items()
        },
    }
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _instance(context: Context, record: Record) -> list[str | None]:
    instance = record.instance
    seed = "" if instance.seed is None else f", seed {instance.seed}"
    size = f"{instance.requests:,} requests, M = {instance.memory:,}{seed}"
    return [instance.name, size, optimum_of(record), context.certificate(record.certificate)]
