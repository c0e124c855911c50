"""The first and last sections of a report: results, failures, provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kvopt.experiments.report.layout import pieces
from kvopt.experiments.report.registry import TABLE, Context, section
from kvopt.experiments.report.words import in_words, limits_of, mean_width
from kvopt.experiments.studies.answers import answer, left_out
from kvopt.experiments.studies.intervals import ratio_of
from kvopt.problem.scopes import Scope
from kvopt.show.summary import counted, spread


@section("overview")
def overview(context: Context) -> str:
    """Return the figures that matter most, and every warning."""
    study = context.study
    ratios = [ratio_of(run) for run in study.judged]
    scopes = [scope for scope in Scope if any(run.scope is scope for run in study.runs)]
    named = " with scope {}" if len(scopes) > 1 else ""
    covered = [f"Of bounds and optima{named.format(s)}, {s.sentence}." for s in scopes]
    notes = [*left_out(study.records), TABLE["overview"]["said"], *covered] if study.runs else []
    return pieces.overview(
        study,
        [study.portable(line) for line in _warnings(context)],
        answer(study.records) if study.runs else [],
        notes,
        ratios,
        spread([record.instance.memory for record in study.instances]),
        mean_width(ratio for ratio in ratios if ratio.width is not None),
    )


def _warnings(context: Context) -> Iterator[str]:
    study = context.study
    yield from study.warnings
    yield from context.checked.faults if context.checked else ()
    if study.failures:
        yield f"{counted(len(study.failures), 'record')} with an error, listed below."
    certificates = {record.certificate for record in study.records if record.certificate}
    if missing := sorted(each for each in certificates if not study.has(each)):
        gone = counted(len(missing), "certificate")
        yield f"{gone} of the folder missing, such as {missing[0]}."


@section("failures")
def failures(context: Context) -> str:
    """Return the failures, empty if none."""
    study, head = context.study, ("Instance", "Scheduler", "Error")
    rows = [
        (r.instance.name, r.policy or "the whole instance", study.portable(r.error or "unknown"))
        for r in study.failures
    ]
    return pieces.cards(context.said("failures"), head, rows) if rows else ""


@section("provenance")
def provenance(context: Context) -> str:
    """Return versions, limits, sources and the description of the study."""
    study, csv = context.study, context.csv
    versions = (in_words(r.versions, sorted(r.versions)) for r in study.records if r.versions)
    counts = {
        "bounds by": _counts(record.bounded_by for record in study.instances),
        "schedules by": _counts(record.found_by for record in study.instances),
        "limits": _counts(map(limits_of, study.runs), ": {:,} runs"),
        "versions": _counts(versions, ": {:,} records"),
    }
    table = csv and context.address(csv)
    return pieces.provenance(study, context.checked, counts, table, csv and csv.name)


def _counts(names: Iterable[str | None], said: str = " {:,}") -> list[str]:
    found = Counter(name or "nothing" for name in names)
    return [name + said.format(count) for name, count in sorted(found.items())]
