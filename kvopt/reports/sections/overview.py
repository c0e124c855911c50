"""The beginning of a report: what was run, what came out, what the papers say beside it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from kvopt.experiments.studies.answers import answer, left_out
from kvopt.problem.scopes import Scope
from kvopt.reports.html import Markup, Node, join, tag
from kvopt.reports.layout import cards, listed, said_of
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.study import Study
from kvopt.reports.summaries import mean_width
from kvopt.reports.words import counted, percent
from kvopt.show.summary import spread

_SHOWN_WARNINGS = 5
"""Warnings that are listed at once; the others unfold."""
_SHOWN_LINKS = 4
"""Certificates of a verdict that are listed at once; the others unfold."""

_WIDTH = "mean width of the ratio intervals, as a share of the upper end"
_LARGEST = "times the optimum: the largest proved ratio"
_LOST = {"livelock": "in a livelock", "unfinished": "unfinished", "error": "failed"}
_SIGNS = {
    "reproduced": "✓",
    "not reproduced as printed": "≠",
    "refuted": "✗",
    "undecided": "?",
    "measured": "•",
}


@register("overview")
def overview(context: Context) -> Section:
    """Return the figures that matter most, and every warning."""
    told = [tag("p", "No run of a scheduler is recorded in this folder.")]
    study = context.study
    if study.runs:
        told = [
            *(
                tag("p", sentence, class_="answer")
                for sentence in answer(study.records, study.verdicts)
            ),
            *(tag("p", line, class_="note") for line in left_out(study.records)),
            tag("ul", *_tiles(context), class_="tiles"),
            tag("p", said_of("overview"), class_="note"),
            *(tag("p", line, class_="note") for line in _covered(study)),
        ]
    return Section("Overview", join(_warnings(context), *told))


def _covered(study: Study) -> list[str]:
    """Return what bounds cover, a sentence for each scope of the study."""
    found = [scope for scope in Scope if any(run.record.scope is scope for run in study.runs)]
    beside = len(found) > 1
    return [
        f"Of bounds and optima{f' with scope {scope}' if beside else ''}, {scope.sentence}."
        for scope in found
    ]


def _tiles(context: Context) -> list[Markup]:
    study = context.study
    schedulers = counted(len({run.record.policy for run in study.runs}), "scheduler")
    instances = counted(len(study.instances), "instance")
    cache = spread([record.instance.memory for record in study.instances])
    proved = sum(record.proved for record in study.instances)
    ratios = [run.ratio for run in study.judged if run.ratio is not None]
    known = [ratio for ratio in ratios if ratio.width is not None]
    unbounded = len(ratios) - len(known)
    rest = f"; {unbounded:,} without an upper end" if unbounded else ""
    outcomes = Counter(run.record.outcome for run in study.runs)
    lost = [f", {outcomes[name]:,} {said}" for name, said in _LOST.items() if outcomes[name]]
    tiles = [
        (f"{len(study.runs):,}", f"runs: {schedulers} on {instances}; cache {cache} tokens"),
        (f"{proved:,} of {len(study.instances):,}", "instances with a proved optimum"),
        (percent(mean_width(known)), f"{_WIDTH}{rest}"),
        *(
            (str(run.ratio), f"{_LARGEST}, {run.record.policy} on {run.record.instance.name}")
            for run in study.judged[:1]
        ),
        (f"{outcomes['completed']:,}", "".join(["completed", *lost])),
    ]
    return [tag("li", tag("strong", figure), tag("span", said)) for figure, said in tiles]


def _warnings(context: Context) -> Markup | None:
    study = context.study
    found = [*study.warnings, *(context.checked.faults if context.checked else ())]
    if study.failures:
        found.append(f"{counted(len(study.failures), 'record')} with an error, listed below.")
    certificates = {record.certificate for record in study.records if record.certificate}
    if missing := sorted(each for each in certificates if not study.has(each)):
        gone = counted(len(missing), "certificate")
        found.append(f"{gone} of the folder missing, such as {missing[0]}.")
    if not found:
        return None
    lines = listed([study.portable(line) for line in found], _SHOWN_WARNINGS)
    return tag("div", tag("strong", "Warnings"), lines, class_="warning", role="note")


@register("verdicts")
def verdicts(context: Context) -> Section | None:
    """Return published claims beside what was found, None where the study tests none."""
    found = context.study.verdicts
    names = {record.certificate: record.instance.name for record in context.study.records}
    rows: list[list[Node]] = []
    for each in found:
        sign = tag("span", _SIGNS[each.verdict], aria_hidden="true")
        kind = f"verdict {each.verdict.split()[0]}"
        badge = tag("span", sign, f" {each.verdict}", class_=kind)
        links = [context.link(c, names.get(c, Path(c).name)) for c in each.certificates]
        shown = listed(links, _SHOWN_LINKS) if links else "none"
        claim = join(each.claim, tag("small", each.source))
        rows.append([claim, each.published, each.found, badge, shown])
    rest = " Each verdict rests on its certificates." if any(v.certificates for v in found) else ""
    caption = f"What the papers say and what the runs show.{rest}"
    head = ("Claim", "Published", "Found", "Verdict", "Certificates")
    return Section("Verdicts", cards(caption, head, rows)) if found else None
