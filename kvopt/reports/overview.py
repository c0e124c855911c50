"""The beginning of a report: what was run, what came out, what a reader must know."""

from __future__ import annotations

from collections import Counter

from kvopt.model.scope import COVERED
from kvopt.reports.context import Context, Section, counted, unfolded
from kvopt.reports.html import Markup, Node, join, tag
from kvopt.reports.quantiles import mean_width, percent

_SHOWN_WARNINGS = 5

_HOW_TO_READ = (
    "A ratio is the total latency of a scheduler over the optimum. The optimum is seldom known "
    "exactly, but it lies between a proved lower bound and the best schedule found. "
    "So a ratio is an interval, and the true ratio lies in it for certain: the lower end divides "
    "by the best schedule, the upper end by the proved bound. A single number stands where the "
    "optimum is proved. Means and quantiles of the lower ends and of the upper ends enclose those "
    "of the true ratios. Intervals are rounded outward to four places."
)
_REACH = f"Of bounds and optima, {COVERED}."


def overview(context: Context) -> Section:
    """Return the figures that matter most, and every warning."""
    study = context.study
    body = join(
        _warnings(context),
        tag("ul", *_tiles(context), class_="tiles") if study.runs else _nothing(),
        tag("p", _HOW_TO_READ, class_="note") if study.runs else None,
        tag("p", _REACH, class_="note") if study.runs else None,
    )
    return Section("overview", "Overview", body)


def _nothing() -> Markup:
    return tag("p", "No run of a scheduler is recorded in this folder.")


def _tiles(context: Context) -> list[Markup]:
    study = context.study
    policies = {run.record.policy for run in study.runs}
    proved = sum(record.proved for record in study.instances)
    ratios = [run.ratio for run in study.runs if run.ratio is not None and run.ratio.least]
    known = mean_width(ratio for ratio in ratios if ratio.width is not None)
    unbounded = sum(ratio.width is None for ratio in ratios)
    outcomes = Counter(run.record.outcome for run in study.runs)
    return [
        _tile(
            f"{len(study.runs):,}",
            f"runs: {counted(len(policies), 'scheduler')} on "
            f"{counted(len(study.instances), 'instance')}",
        ),
        _tile(f"{proved:,} of {len(study.instances):,}", "instances with a proved optimum"),
        _tile(
            percent(known),
            "mean width of the ratio intervals, as a share of the upper end"
            + (f"; {unbounded:,} without an upper end" if unbounded else ""),
        ),
        *_largest(context),
        _tile(
            f"{outcomes['completed']:,}",
            "completed"
            + "".join(
                f", {outcomes[name]:,} {said}"
                for name, said in (
                    ("livelock", "in a livelock"),
                    ("unfinished", "unfinished"),
                    ("error", "failed"),
                )
                if outcomes[name]
            ),
        ),
    ]


def _largest(context: Context) -> list[Markup]:
    if not context.study.judged:
        return []
    run = context.study.judged[0]
    record = run.record
    where = f"{record.policy} on {record.instance.name}"
    return [_tile(str(run.ratio), f"times the optimum: the largest proved ratio, {where}")]


def _tile(figure: str, said: Node) -> Markup:
    return tag("li", tag("strong", figure), tag("span", said))


def _warnings(context: Context) -> Markup | None:
    study = context.study
    missing = sorted({r.certificate for r in study.records if r.certificate} - _present(context))
    found = [*study.warnings, *(context.checked.faults if context.checked else ())]
    if study.failures:
        found.append(f"{counted(len(study.failures), 'record')} with an error, listed below.")
    if missing:
        found.append(
            f"{counted(len(missing), 'certificate')} of the folder missing, such as {missing[0]}."
        )
    if not found:
        return None
    shown = [tag("li", line) for line in found]
    more = shown[_SHOWN_WARNINGS:]
    rest = unfolded(f"{len(more)} more", tag("ul", *more)) if more else None
    return tag(
        "div",
        tag("strong", "Warnings"),
        tag("ul", *shown[:_SHOWN_WARNINGS]),
        rest,
        class_="warning",
        role="note",
    )


def _present(context: Context) -> set[str | None]:
    known = {record.certificate for record in context.study.records}
    return {certificate for certificate in known if context.study.has(certificate)}
