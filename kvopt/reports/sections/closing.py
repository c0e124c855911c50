"""The end of a report: what failed, and where everything came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kvopt.reports.html import Node, join, tag
from kvopt.reports.layout import cards, unfolded
from kvopt.reports.registry import Context, Section, register
from kvopt.reports.words import counted, limits_of

_SHOWN = 50
"""Entries that are listed at once; the others unfold."""


@register("failures")
def failures(context: Context) -> Section | None:
    """Return what failed, None where nothing did."""
    head = ("Instance", "Scheduler", "Error")
    rows: list[list[Node]] = [
        [
            record.instance.name,
            record.policy or "the whole instance",
            context.study.portable(record.error or "unknown"),
        ]
        for record in context.study.failures
    ]
    if not rows:
        return None
    body = cards("Records with an error.", head, rows[:_SHOWN])
    if rest := rows[_SHOWN:]:
        others = cards("The other records with an error.", head, rest)
        body = join(body, unfolded(f"{len(rest):,} more", others))
    return Section("Failures", body)


@register("provenance")
def provenance(context: Context) -> Section:
    """Return versions, limits, sources and the description of the study."""
    study, checked = context.study, context.checked
    seconds = sum(record.seconds for record in study.instances)
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
    parts = [
        tag("p", "kvopt verify CERTIFICATE checks a certificate, without any solver."),
        tag("dl", *(join(tag("dt", name), tag("dd", said)) for name, said in facts)),
    ]
    if context.csv is not None:
        link = tag("a", context.csv.name, href=context.address(context.csv))
        parts.append(tag("p", "All records as a table: ", link))
    if study.description is not None:
        shown = tag("pre", tag("code", study.portable(study.description)), tabindex=0)
        parts.append(unfolded("study.toml", shown))
    return Section("Provenance", join(*parts))


def _counts(names: Iterable[str | None]) -> str:
    found = Counter(name or "nothing" for name in names)
    return ", ".join(f"{name} {count:,}" for name, count in sorted(found.items())) or "none"
