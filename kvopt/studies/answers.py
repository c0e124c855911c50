"""Answers of a study, in sentences that its certified intervals prove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kvopt.show.summary import UNDECIDED, counted, far_apart, rounded
from kvopt.studies.ratio_intervals import Interval, Runs, by_policy
from kvopt.studies.record_lines import Record

_ALL = 4
"""Up to so many schedulers each is named; of more, the best and the worst one."""


def answer(records: Sequence[Record]) -> list[str]:
    """Return the sentences on the ratio of each scheduler, none if nothing completed."""
    rows = by_policy(records)
    partly = [row for row in rows if len(row.done) < len(row.records)]
    judged = [row for row in rows if row not in partly and row.mean.lower]
    return [
        *(_judged(judged) if judged else []),
        *(f"{r.policy} completed {len(r.done):,} of {len(r.records):,} runs." for r in partly),
    ]


def left_out(records: Iterable[Record]) -> list[str]:
    """Return, for each trace, how many requests a study excluded, and why, as ``import`` does."""
    sentences = {}
    for record in records:
        counts, name = record.instance.parameters, record.instance.name
        if left := counts.get("left_out"):
            total = record.instance.requests + left
            why = f"they have more than {counts['max_total']:,} tokens (max_total)"
            sentences[name, why] = f"{name}: {left:,} of {total:,} requests left out: {why}"
        for reason, entry in counts.get("dropped", {}).items():
            lines = f"{counted(entry['rows'], 'line')} left out: {reason}"
            sentences[name, reason] = f"{name}: {lines} (first at line {entry['first_line']:,})"
    return list(sentences.values())


def _judged(rows: Sequence[Runs]) -> list[str]:
    """Return the sentences that the mean ratio of each scheduler proves."""
    order = sorted(rows, key=lambda row: (row.mean.upper is None, row.mean.upper or 0))
    if len(order) > _ALL:
        slowest = max(order, key=lambda row: row.mean.lower or 0)
        order = [order[0], *([] if slowest is order[0] else [slowest])]
    first, *others = order
    several = any(len(row.done) > 1 for row in rows)
    place = f"{'On average over' if several else 'On'} {_instances(order)}"
    best = f"{first.policy} certainly takes {_times(first.mean)} the least total latency possible"
    parts = (f"; {row.policy} {_times(row.mean, ' that')}" for row in others)
    sentences = [f"{place}, {best}{''.join(parts)}."]
    if (width := first.mean.width) and (apart := far_apart(float(width))):
        sentences.append(f"There {apart}: {UNDECIDED}.")
    if len(order) < len(rows):
        ends = "the least upper end and the largest lower end"
        sentences.append(f"Of {len(rows):,} schedulers these have {ends}.")
    return sentences


def _instances(rows: Sequence[Runs]) -> str:
    """Describe the instances that schedulers ran on."""
    met = {frozenset(record.instance.hash for record in row.done) for row in rows}
    if len(met) > 1:
        counts = sorted({len(hashes) for hashes in met})
        span = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        return f"the instances that each scheduler met ({span})"
    (common,) = met
    return "the one instance" if len(common) == 1 else f"all {len(common):,} instances"


def _times(ratio: Interval, that: str = "") -> str:
    """Return the ends of a ratio in words, rounded outward."""
    low, high = (
        rounded(end, up=up, places=2) for end, up in ((ratio.lower, False), (ratio.upper, True))
    )
    if ratio.upper == 1:
        return f"exactly{that}"
    if ratio.upper is None:
        return f"at least {low} times"
    if low == "1.00":
        return f"at most {high} times"
    if ratio.lower == ratio.upper:
        return f"{float(ratio.upper):,.2f} times"
    return f"{low} to {high} times"
