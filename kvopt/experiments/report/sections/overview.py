"""The beginning and the end of a report: what came out, what papers say, where it came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from kvopt.experiments.report.layout import note, pieces
from kvopt.experiments.report.registry import Context, Section, register
from kvopt.experiments.report.study import Study
from kvopt.experiments.report.summaries import mean_width
from kvopt.experiments.report.words import counted, limits_of, percent
from kvopt.experiments.studies.answers import answer, left_out
from kvopt.problem.scopes import Scope
from kvopt.show.summary import spread

_SHOWN = 50
"""Failures that are listed at once; the others unfold."""
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
    study = context.study
    warnings = [study.portable(line) for line in _warnings(context)]
    if not study.runs:
        return Section("Overview", pieces.overview(warnings, [], [], []))
    notes = [*left_out(study.records), note("overview"), *_covered(study)]
    answers = answer(study.records, study.verdicts)
    return Section("Overview", pieces.overview(warnings, answers, notes, _tiles(study)))


def _covered(study: Study) -> list[str]:
    """Return what bounds cover, a sentence for each scope of the study."""
    found = [scope for scope in Scope if any(run.record.scope is scope for run in study.runs)]
    named = len(found) > 1
    return [
        f"Of bounds and optima{f' with scope {scope}' if named else ''}, {scope.sentence}."
        for scope in found
    ]


def _tiles(study: Study) -> list[tuple[str, str]]:
    schedulers = counted(len({run.record.policy for run in study.runs}), "scheduler")
    instances = counted(len(study.instances), "instance")
    cache = spread([record.instance.memory for record in study.instances])
    proved = sum(record.proved for record in study.instances)
    ratios = [run.ratio for run in study.judged if run.ratio is not None]
    known = [ratio for ratio in ratios if ratio.width is not None]
    unbounded = len(ratios) - len(known)
    rest = f"; {unbounded:,} without an upper end" if unbounded else ""
    outcomes = Counter(str(run.record.outcome) for run in study.runs)
    lost = [f", {outcomes[name]:,} {said}" for name, said in _LOST.items() if outcomes[name]]
    return [
        (f"{len(study.runs):,}", f"runs: {schedulers} on {instances}; cache {cache} tokens"),
        (f"{proved:,} of {len(study.instances):,}", "instances with a proved optimum"),
        (percent(mean_width(known)), f"{_WIDTH}{rest}"),
        *(
            (str(run.ratio), f"{_LARGEST}, {run.record.policy} on {run.record.instance.name}")
            for run in study.judged[:1]
        ),
        (f"{outcomes['completed']:,}", "".join(["completed", *lost])),
    ]


def _warnings(context: Context) -> Iterable[str]:
    study = context.study
    yield from study.warnings
    yield from context.checked.faults if context.checked else ()
    if study.failures:
        yield f"{counted(len(study.failures), 'record')} with an error, listed below."
    certificates = {record.certificate for record in study.records if record.certificate}
    if missing := sorted(each for each in certificates if not study.has(each)):
        gone = counted(len(missing), "certificate")
        yield f"{gone} of the folder missing, such as {missing[0]}."


@register("verdicts")
def verdicts(context: Context) -> Section | None:
    """Return published claims beside what was found, None where the study tests none."""
    names = {record.certificate: record.instance.name for record in context.study.records}
    rows = []
    for each in context.study.verdicts:
        links = [context.link(c, names.get(c, Path(c).name)) for c in each.certificates]
        shown = pieces.listed(links, _SHOWN_LINKS) if links else "none"
        badge = pieces.badge(each.verdict, _SIGNS[each.verdict])
        rows.append([pieces.claim(each), each.published, each.found, badge, shown])
    caption = "What the papers say and what the runs show."
    if any(each.certificates for each in context.study.verdicts):
        caption += " Each verdict rests on its certificates."
    head = ("Claim", "Published", "Found", "Verdict", "Certificates")
    return Section("Verdicts", pieces.cards(caption, head, rows)) if rows else None


@register("failures")
def failures(context: Context) -> Section | None:
    """Return what failed, None where nothing did."""
    study, head = context.study, ("Instance", "Scheduler", "Error")
    rows = [
        (r.instance.name, r.policy or "the whole instance", study.portable(r.error or "unknown"))
        for r in study.failures
    ]
    body = pieces.cards("Records with an error.", head, rows[:_SHOWN])
    if rest := rows[_SHOWN:]:
        others = pieces.cards("The other records with an error.", head, rest)
        body += pieces.unfolded(f"{len(rest):,} more", others)
    return Section("Failures", body) if rows else None


@register("provenance")
def provenance(context: Context) -> Section:
    """Return versions, limits, sources and the description of the study."""
    study, checked = context.study, context.checked
    limits = Counter(limits_of(record) for record in study.records if record.policy is not None)
    versions = Counter(
        ", ".join(f"{name} {value}" for name, value in sorted(record.versions.items()))
        for record in study.records
        if record.versions
    )
    verified = "not verified anew for this page; kvopt report --verify does it"
    if checked is not None:
        true = counted(checked.certificates, "certificate")
        verified = f"{true} verified and compared with the records when this page was made"
        verified += f", {len(checked.faults):,} found false" if checked.faults else ""
    seconds = sum(record.seconds for record in study.instances)
    facts = [
        ("records", counted(len(study.records), "record")),
        ("time", f"{seconds:,.0f} s for all instances together, as their records say"),
        ("bounds by", _counts(r.bounded_by for r in study.instances)),
        ("schedules by", _counts(r.found_by for r in study.instances)),
        *(("limits", f"{said}: {count:,} runs") for said, count in sorted(limits.items())),
        *(("versions", f"{said}: {count:,} records") for said, count in sorted(versions.items())),
        ("certificates", verified),
        ("records.jsonl", study.digest),
    ]
    table = None if context.csv is None else context.address(context.csv)
    described = None if study.description is None else study.portable(study.description)
    name = context.csv and context.csv.name
    return Section("Provenance", pieces.provenance(facts, table, name, described))


def _counts(names: Iterable[str | None]) -> str:
    found = Counter(name or "nothing" for name in names)
    return ", ".join(f"{name} {count:,}" for name, count in sorted(found.items())) or "none"
