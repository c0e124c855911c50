"""Text and tables: overview, schedulers, service levels, provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import ceil, floor
from statistics import fmean

from kvopt.problem.scopes import Scope
from kvopt.show.summary import counted, percent, spread
from kvopt.studies.answers import answer, left_out
from kvopt.studies.intervals import Runs, ratio_of
from kvopt.studies.records import grouped
from kvopt.studies.report.context import TEXTS, Context
from kvopt.studies.report.layout import Cell, pieces
from kvopt.studies.report.words import in_words, limits_of, mean_width, quantile_of


def schedulers(context: Context) -> str:
    """Return the table, empty if no scheduler ran."""
    rows = [_row(group) for group in context.groups]
    said = TEXTS["schedulers"]["said"]
    return pieces.table(said, [*rows[0]], [row.values() for row in rows], 2) if rows else ""


def _row(group: Runs) -> dict[str, object]:
    """Return the cells of a row under their headings."""
    width = mean_width(group.ratios)
    lost = {name: group.ended(name) for name in ("livelock", "unfinished", "error")}
    said = ", ".join(f"{number:,} {name}" for name, number in lost.items() if number)
    return {
        "family": group.family,
        "scheduler": group.policy,
        "runs": len(group.records),
        "mean": group.mean,
        "median": quantile_of(group.ratios, Fraction(1, 2)),
        "95%": quantile_of(group.ratios, Fraction(95, 100)),
        "worst": group.worst,
        "mean width": Cell(percent(width), width),
        "optimal": sum(ratio.most == 1 for ratio in group.ratios),
        "not optimal": sum((ratio.least or 0) > 1 for ratio in group.ratios),
        "not completed": Cell(said or "0", sum(lost.values())),
        "evictions": group.evictions,
    }


def service_levels(context: Context) -> str:
    """Return a table of shares for each family, empty for a study without service levels."""
    body = ""
    for family in context.families:
        known = [run for run in family.runs if run.ceiling is not None]
        places = grouped(known, lambda r: (str(r.limits.get("slo")), r.instance.requests))
        policies = [*dict.fromkeys(run.policy for run in known)]
        rows = [
            [
                slo,
                size,
                *(_share((r.attained for r in some if r.policy == p), size) for p in policies),
                _share((r.best_attained for r in some), size),
                _share((r.ceiling for r in some), size, up=True),
            ]
            for (slo, size), some in places.items()
        ]
        if rows:
            head = ("Service level", "Requests", *policies, "best run", "ceiling")
            body += pieces.table(f"{family.name}: share of the requests in time", head, rows)
    return body


def _share(counts: Iterable[int | None], size: int, *, up: bool = False) -> Cell:
    """Return the mean share, rounded outward, a dash if one is unknown."""
    some = [*counts]
    known = [number for number in some if number is not None]
    if not known or len(known) < len(some) or not size:
        return Cell("-", None)
    share = 1e4 * fmean(known) / size
    return Cell(f"{(ceil if up else floor)(share) / 100:.2f}%", share)


def overview(context: Context) -> str:
    """Return the figures that matter most, and every warning."""
    study = context.study
    ratios = [ratio_of(run) for run in study.judged]
    scopes = [scope for scope in Scope if any(run.scope is scope for run in study.runs)]
    covered = [f"Of bounds and optima, {scope.sentence}." for scope in scopes]
    notes = [*left_out(study.records), TEXTS["overview"]["said"], *covered] if study.runs else []
    return pieces.overview(
        study,
        [*_warnings(context)],
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


def failures(context: Context) -> str:
    """Return the failures, empty if none."""
    study, head = context.study, ("Instance", "Scheduler", "Error")
    rows = [
        (r.instance.name, r.policy or "the whole instance", r.error or "unknown")
        for r in study.failures
    ]
    return pieces.cards(context.said("failures"), head, rows) if rows else ""


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
