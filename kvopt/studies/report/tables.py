"""Text and tables: overview, schedulers, service levels, provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction

from kvopt.problem.scopes import Scope
from kvopt.show.summary import counted, percent, spread
from kvopt.studies.answers import answer, left_out
from kvopt.studies.ratio_intervals import Runs, in_percent, mean_width, quantile_of, ratio_of
from kvopt.studies.record_lines import grouped
from kvopt.studies.report.findings import in_words, limits_of
from kvopt.studies.report.pages import TEXTS, Cell, Context, pieces


def schedulers(context: Context) -> str:
    """Return the table, empty if no scheduler ran."""
    rows = [_policy_row(group) for group in context.study.groups]
    text = TEXTS["schedulers"]["said"]
    return pieces.table(text, [*rows[0]], [row.values() for row in rows], 2) if rows else ""


def _policy_row(group: Runs) -> dict[str, object]:
    """Return the cells of a row under their headings."""
    width = mean_width(group.ratios)
    lost = {name: group.ended(name) for name in ("livelock", "unfinished", "error")}
    words = ", ".join(f"{number:,} {name}" for name, number in lost.items() if number)
    return {
        "family": group.family,
        "scheduler": group.policy,
        "runs": len(group.records),
        "mean": group.mean,
        "median": quantile_of(group.ratios, Fraction(1, 2)),
        "95%": quantile_of(group.ratios, Fraction(95, 100)),
        "worst": group.worst,
        "mean width": Cell(percent(width), width),
        "optimal": sum(ratio.upper == 1 for ratio in group.ratios),
        "not optimal": sum((ratio.lower or 0) > 1 for ratio in group.ratios),
        "not completed": Cell(words or "0", sum(lost.values())),
        "evictions": group.evictions,
    }


def service_levels(context: Context) -> str:
    """Return a table of shares for each family, empty for a study without service levels."""
    body = ""
    for family in context.study.families:
        bounded = [run for run in family.runs if run.ceiling is not None]
        places = grouped(bounded, lambda r: (str(r.limits.get("slo")), r.instance.requests))
        policies = [*dict.fromkeys(run.policy for run in bounded if run.policy is not None)]
        share = next((run.limits["attain"] for run in bounded if "attain" in run.limits), None)
        rows: list[list[object]] = []
        for (slo, size), alike in places.items():
            runs = [Runs(p, tuple(run for run in alike if run.policy == p)) for p in policies]
            whole = Runs("", tuple(alike))
            cells = [slo, size, *(_share(row.attaining("attained")) for row in runs)]
            cells.append(_share(whole.attaining("best_attained")))
            cells.append(_share(whole.attaining("ceiling"), up=True))
            rows.append(cells if share is None else [*cells, _reached(runs, whole)])
        if rows:
            attain = [] if share is None else [f"{share} attain"]
            head = ("Service level", "Requests", *policies, "best run", "ceiling", *attain)
            body += pieces.table(f"{family.name}: share of the requests in time", head, rows)
    return body


def _share(share: Fraction | None, *, up: bool = False) -> Cell:
    """Return a mean share, rounded outward, a dash if it is unknown."""
    return Cell(in_percent(share, up=up), None if share is None else float(share))


def _reached(runs: Iterable[Runs], whole: Runs) -> str:
    """Return with which schedulers the share always attains, else whether it is impossible."""
    names = [row.policy for row in runs if row.judged("reached") == len(row.records) > 0]
    is_impossible = whole.judged("impossible") == len(whole.records)
    return ", ".join(names) or ("impossible" if is_impossible else "with none of these always")


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
    if missing := sorted(path for path in certificates if not study.has(path)):
        gone = counted(len(missing), "certificate")
        yield f"{gone} of the folder missing, such as {missing[0]}."


def failures(context: Context) -> str:
    """Return the failures, empty if none."""
    study, head = context.study, ("Instance", "Scheduler", "Error")
    rows = [
        (r.instance.name, r.policy or "the whole instance", r.error or "unknown")
        for r in study.failures
    ]
    return pieces.cards(context.text("failures"), head, rows) if rows else ""


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


def _counts(names: Iterable[str | None], words: str = " {:,}") -> list[str]:
    counts = Counter(name or "nothing" for name in names)
    return [name + words.format(count) for name, count in sorted(counts.items())]
