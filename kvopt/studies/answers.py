"""Answers of a study, in sentences that its certified intervals prove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from math import inf

from kvopt.show.summary import UNDECIDED, counted, far_apart, rounded
from kvopt.studies.intervals import (
    FamilyWorth,
    Interval,
    Runs,
    by_family,
    by_policy,
    percents,
    worths,
)
from kvopt.studies.records import Record, grouped

_ALL = 4
"""Up to so many schedulers each is named; of more, the best and the worst one."""


def answer(records: Sequence[Record]) -> list[str]:
    """Return the sentences on the ratio of each scheduler, none if nothing completed."""
    said: list[str] = []
    scopes = grouped(by_policy(records), lambda row: row.scope)
    for scope, rows in scopes.items():
        name = f"Scope {scope}: " if len(scopes) > 1 else ""
        said += [name + sentence for sentence in _of_schedulers(rows)]
    return said + [_worth(each) for each in by_family(worths(records))]


def _of_schedulers(rows: Sequence[Runs]) -> list[str]:
    """Return the quality of each scheduler relative to one optimum."""
    partly = [row for row in rows if len(row.done) < len(row.records)]
    judged = [row for row in rows if row not in partly and row.mean.least]
    said = _judged(judged, rows) if judged else []
    said += [
        f"{row.policy} completed {len(row.done):,} of {len(row.records):,} runs."
        for row in partly[:_ALL]
    ]
    if rest := len(partly[_ALL:]):
        said.append(f"{counted(rest, 'other scheduler')} did not complete all of their runs.")
    return said


def left_out(records: Iterable[Record]) -> list[str]:
    """Return, for each trace, how many requests a study excluded, and why, as ``import`` does."""
    found = {}
    for record in records:
        asked, name = record.instance.parameters, record.instance.name
        if asked.get("left_out"):
            total = record.instance.requests + asked["left_out"]
            why = f"they have more than {asked['max_total']:,} tokens (max_total)"
            found[name, why] = (
                f"{name}: {asked['left_out']:,} of {total:,} requests left out: {why}"
            )
        for reason, entry in asked.get("dropped", {}).items():
            lines = f"{counted(entry['rows'], 'line')} left out: {reason}"
            found[name, reason] = f"{name}: {lines} (first at line {entry['first_line']:,})"
    return list(found.values())


def _worth(found: FamilyWorth) -> str:
    """Return the share by which the optimum falls in a wider scope."""
    count = len(found.instances)
    beside = f"{found.family}: with scope {found.scope} the optimum is {percents(found.mean)}"
    beside += " below that of runs"
    if count == 1:
        return f"{beside} on the one instance."
    largest = percents(found.largest)
    return f"{beside} on average over {count:,} instances, and {largest} where it is most."


def _judged(rows: Sequence[Runs], everyone: Sequence[Runs]) -> list[str]:
    """Return the sentences that the ratios of each scheduler prove, on average and at most.

    The largest ratio of a single run is that of all schedulers, also of those that did not complete
    all of their runs.
    """
    order = sorted(rows, key=lambda row: (row.mean.most is None, row.mean.most or 0))
    if len(order) > _ALL:
        slowest = max(order, key=lambda row: row.mean.least or 0)
        order = [order[0], *([] if slowest is order[0] else [slowest])]
    several = any(len(row.done) > 1 for row in rows)
    place = f"{'On average over' if several else 'On'} {_over(order)}"
    if all(row.mean.most is None for row in rows):
        beside = "; ".join(f"{row.policy} takes {_single(row.mean.least)}" for row in order)
        said = [f"{place}, no bound on the optimum is known; {beside} the best schedule found."]
    else:
        first, *others = order
        best = (
            f"{first.policy} certainly takes {_times(first.mean)} the least total latency possible"
        )
        parts = (f"; {row.policy} {_times(row.mean, ' that')}" for row in others)
        said = [f"{place}, {best}{''.join(parts)}."]
        if (width := first.mean.width) and (apart := far_apart(float(width))):
            said.append(f"There {apart}: {UNDECIDED}.")
    if len(order) < len(rows):
        said.append(
            f"Of {len(rows):,} schedulers these have the least upper end and the largest lower end."
        )
    if several and any(row.mean.most is not None for row in rows):
        ends = _with_largest(order, [row for row in everyone if row.ratios])
        said.append(f"Of single runs the largest ratio is {'; '.join(map(_at_worst, ends))}.")
    return said


def _with_largest(chosen: list[Runs], rows: Sequence[Runs]) -> list[Runs]:
    """Return some schedulers, and those of all with the largest ends of a single run."""
    rows = [*chosen, *(row for row in rows if row not in chosen)]  # the first of equal ones counts
    proved = max(rows, key=lambda row: row.worst.least or 0)
    possible = max(rows, key=lambda row: inf if row.worst.most is None else row.worst.most)
    return [row for row in rows if row in (*chosen, proved, possible)]


def _at_worst(row: Runs) -> str:
    """Return the largest ratio of a single run of a scheduler in words."""
    if row.worst.most is None:
        return f"at least {_rounded(row.worst.least, up=False)} ({row.policy})"
    return f"at most {_rounded(row.worst.most, up=True)} ({row.policy})"


def _over(rows: Sequence[Runs]) -> str:
    """Describe the instances that schedulers ran on."""
    met = {frozenset(record.instance.hash for record in row.done) for row in rows}
    counts = sorted({len(each) for each in met})
    if len(met) > 1:
        span = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        return f"the instances that each scheduler met ({span})"
    if counts[0] == 1:
        return "the one instance"
    axes = []
    for key in ("memory", "rate", "workers"):
        keys = (record.instance.parameters for record in rows[0].done)
        values = {parameters[key] for parameters in keys if key in parameters}
        if len(values) > 1:
            axes.append(f"{key} {min(values):,} to {max(values):,}")
    return f"all {counts[0]:,} instances" + (f" ({', '.join(axes)})" if axes else "")


_rounded = partial(rounded, places=2)


def _single(ratio: Fraction | None) -> str:
    return f"{float(ratio or 0):,.2f} times"


def _times(ratio: Interval, that: str = "") -> str:
    """Return the ends of a ratio in words, rounded outward."""
    least, most = _rounded(ratio.least, up=False), _rounded(ratio.most, up=True)
    if ratio.most == 1:
        return f"exactly{that}"
    if ratio.most is None:
        return f"at least {least} times"
    if least == "1.00":
        return f"at most {most} times"
    return _single(ratio.most) if ratio.least == ratio.most else f"{least} to {most} times"
