"""Answers of a study, in sentences that its certified intervals prove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from kvopt.show.summary import UNDECIDED, counted, far_apart, rounded
from kvopt.studies.ratio_intervals import Interval, Runs, by_policy
from kvopt.studies.record_lines import Record

_ALL = 4
"""Up to so many schedulers each is named; of more, the best and the worst one."""


def answer(records: Sequence[Record]) -> list[str]:
    """Return the sentences on the ratio of each scheduler, none if nothing completed."""
    rows = by_policy(records)
    partly = [row for row in rows if len(row.done) < len(row.records)]
    judged = [row for row in rows if row not in partly and row.mean.least]
    return [
        *(_judged(judged) if judged else []),
        *(f"{r.policy} completed {len(r.done):,} of {len(r.records):,} runs." for r in partly),
    ]


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


def _judged(rows: Sequence[Runs]) -> list[str]:
    """Return the sentences that the mean ratio of each scheduler proves."""
    order = sorted(rows, key=lambda row: (row.mean.most is None, row.mean.most or 0))
    if len(order) > _ALL:
        slowest = max(order, key=lambda row: row.mean.least or 0)
        order = [order[0], *([] if slowest is order[0] else [slowest])]
    first, *others = order
    several = any(len(row.done) > 1 for row in rows)
    place = f"{'On average over' if several else 'On'} {_instances(order)}"
    best = f"{first.policy} certainly takes {_times(first.mean)} the least total latency possible"
    parts = (f"; {row.policy} {_times(row.mean, ' that')}" for row in others)
    said = [f"{place}, {best}{''.join(parts)}."]
    if (width := first.mean.width) and (apart := far_apart(float(width))):
        said.append(f"There {apart}: {UNDECIDED}.")
    if len(order) < len(rows):
        ends = "the least upper end and the largest lower end"
        said.append(f"Of {len(rows):,} schedulers these have {ends}.")
    return said


def _instances(rows: Sequence[Runs]) -> str:
    """Describe the instances that schedulers ran on."""
    met = {frozenset(record.instance.hash for record in row.done) for row in rows}
    if len(met) > 1:
        counts = sorted({len(hashes) for hashes in met})
        span = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        return f"the instances that each scheduler met ({span})"
    (common,) = met
    return "the one instance" if len(common) == 1 else f"all {len(common):,} instances"


_rounded = partial(rounded, places=2)


def _times(ratio: Interval, that: str = "") -> str:
    """Return the ends of a ratio in words, rounded outward."""
    least, most = _rounded(ratio.least, up=False), _rounded(ratio.most, up=True)
    if ratio.most == 1:
        return f"exactly{that}"
    if ratio.most is None:
        return f"at least {least} times"
    if least == "1.00":
        return f"at most {most} times"
    if ratio.least == ratio.most:
        return f"{float(ratio.most):,.2f} times"
    return f"{least} to {most} times"
