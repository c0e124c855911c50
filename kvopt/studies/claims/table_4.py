"""wang-2025 table 4: total latency of three schedulers on five distributions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from kvopt.studies.claims.verdict import Judgement, Verdict, certificates_of
from kvopt.studies.records import Record

_POLICIES = ("sorted-lp", "sorted-f:phase1=swap", "lp-swap")
_PRINTED = {
    "uniform": ("9763.0", "9748.3", "9771.4"),
    "normal": ("9397.3", "9416.9", "9385.3"),
    "binomial": ("10943.0", "10696.7", "10665.7"),
    "exponential": ("6015.7", "6016.9", "6016.0"),
    "mixed": ("22133.2", "22100.1", "22128.2"),
}
_SOURCE = "wang-2025 appendix 11.2, table 4"


def table_4(records: Sequence[Record]) -> list[Verdict]:
    """Judge each row of the table."""
    found = []
    for family, texts in _PRINTED.items():
        rows = [r for r in records if r.instance.family == family and r.policy in _POLICIES]
        values = [[r.value for r in rows if r.policy == policy] for policy in _POLICIES]
        known = [[value for value in column if value is not None] for column in values]
        if all(known):
            printed = [Fraction(text) for text in texts]
            found += [_possible(family, rows, known, printed), _order(family, rows, known, printed)]
    return found


def _possible(
    family: str,
    rows: Sequence[Record],
    values: Sequence[Sequence[int]],
    printed: Sequence[Fraction],
) -> Verdict:
    """Compare with what no schedule can stay below, and with what schedules reach."""
    lower = [r.lower for r in rows if r.lower is not None]
    upper = [r.upper for r in rows if r.upper is not None]
    verdict: Judgement = "undecided"
    said = f"{_means(values)}; the optimum of every draw is in [{min(lower):,}, {max(upper):,}]"
    if min(lower) > max(printed):
        verdict = "not reproduced as printed"
        said += ": no schedule of any draw reaches what is printed"
    elif max(max(column) for column in values) < min(printed):
        verdict = "not reproduced as printed"
        said += ": the worst run of any draw stays below what is printed"
    return Verdict(
        claim=f"Total latency on {family}, averaged over trials",
        source=_SOURCE,
        published=_named(f"{float(number):,.1f}" for number in printed),
        found=said,
        verdict=verdict,
        certificates=certificates_of(rows),
    )


def _order(
    family: str,
    rows: Sequence[Record],
    values: Sequence[Sequence[int]],
    printed: Sequence[Fraction],
) -> Verdict:
    means = [Fraction(sum(column), len(column)) for column in values]
    theirs, ours = _best_first(printed), _best_first(means)
    same = theirs == ours
    return Verdict(
        claim=f"Order of the three schedulers on {family}, best first",
        source=_SOURCE,
        published=" < ".join(theirs),
        found=f"{' < '.join(ours)} ({_means(values)})",
        verdict="reproduced" if same else "not reproduced as printed",
        certificates=certificates_of(rows),
    )


def _best_first(numbers: Sequence[Fraction]) -> list[str]:
    return [policy for _, policy in sorted(zip(numbers, _POLICIES, strict=True))]


def _means(values: Sequence[Sequence[int]]) -> str:
    return _named(f"{sum(column) / len(column):,.1f}" for column in values)


def _named(numbers: Iterable[str]) -> str:
    return ", ".join(f"{p} {number}" for p, number in zip(_POLICIES, numbers, strict=True))
