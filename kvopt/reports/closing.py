"""The end of a report: what failed, and where everything came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kvopt.experiments.studies.records import Record
from kvopt.reports.context import Context, Section, cards, counted, unfolded
from kvopt.reports.html import Markup, Node, join, tag
from kvopt.reports.study import limits_of

_SHOWN = 50


def failures(context: Context) -> Section | None:
    """Return what failed, None where nothing did."""
    found = context.study.failures
    if not found:
        return None
    head = ("Instance", "Scheduler", "Error")
    rows = [_failure(record) for record in found]
    tables = [cards("Records with an error.", head, rows[:_SHOWN])]
    if len(rows) > _SHOWN:
        rest = cards("The other records with an error.", head, rows[_SHOWN:])
        tables.append(unfolded(f"{len(rows) - _SHOWN:,} more", rest))
    return Section("failures", "Failures", join(*tables))


def _failure(record: Record) -> list[Node]:
    policy = "the whole instance" if record.policy is None else record.policy
    return [record.instance.name, policy, record.error or "unknown"]


def provenance(context: Context) -> Section:
    """Return versions, limits, sources and the description of the study."""
    study = context.study
    records = study.records
    versions = Counter(_pairs(record.versions) for record in records if record.versions)
    seconds = sum(record.seconds for record in study.instances)
    facts = [
        ("records", counted(len(records), "record")),
        ("time", f"{seconds:,.0f} s for all instances together, as their records say"),
        ("bounds by", _counts(Counter(r.bounded_by or "nothing" for r in study.instances))),
        ("schedules by", _counts(Counter(r.found_by or "nothing" for r in study.instances))),
        *(("limits", f"{text}: {count:,} runs") for text, count in _limits(records)),
        *(("versions", f"{text}: {count:,} records") for text, count in sorted(versions.items())),
        ("certificates", _checked(context)),
        ("records.jsonl", study.digest),
    ]
    items = [join(tag("dt", name), tag("dd", said)) for name, said in facts]
    parts = [
        tag("p", "kvopt verify CERTIFICATE checks a certificate, without any solver."),
        tag("dl", *items),
        _table_link(context),
        _description(study.description),
    ]
    return Section("provenance", "Provenance", join(*parts))


def _checked(context: Context) -> str:
    if context.checked is None:
        return "not verified anew for this page; kvopt report --verify does it"
    count = counted(context.checked.certificates, "certificate")
    rest = f", {len(context.checked.faults):,} found false" if context.checked.faults else ""
    return f"{count} verified and compared with the records when this page was made{rest}"


def _pairs(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(found.items()))


def _limits(records: tuple[Record, ...]) -> list[tuple[str, int]]:
    found = Counter(limits_of(record) for record in records if record.policy is not None)
    return sorted(found.items())


def _counts(found: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(found.items())) or "none"


def _table_link(context: Context) -> Markup | None:
    if context.csv is None:
        return None
    link = tag("a", context.csv.name, href=context.address(context.csv))
    return tag("p", "All records as a table: ", link)


def _description(text: str | None) -> Markup | None:
    if text is None:
        return None
    return unfolded("study.toml", tag("pre", tag("code", text), tabindex=0))
