"""wang-2025 table 4: total latency of three schedulers on five distributions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from math import sqrt

from kvopt.experiments.studies.claims.verdict import Judgement, Verdict, certificates_of
from kvopt.experiments.studies.records import Record

_POLICIES = ("sorted-lp", "sorted-f:phase1=swap", "lp-swap")
_PRINTED = {
    "uniform": ("9763.0", "9748.3", "9771.4"),
    "normal": ("9397.3", "9416.9", "9385.3"),
    "binomial": ("10943.0", "10696.7", "10665.7"),
    "exponential": ("6015.7", "6016.9", "6016.0"),
    "mixed": ("22133.2", "22100.1", "22128.2"),
}
_SOURCE = "wang-2025 appendix 11.2, table 4"

_FACTOR = 2
"""Factor between both from which on single draws say that the printed mean cannot be."""
_LEAST_DRAWS = 5
"""Fewer draws do not settle an order."""

Row = tuple[int, ...]
"""Total latencies on one instance, in the order of the policies."""


def table_4(records: Sequence[Record]) -> list[Verdict]:
    """Judge each row of the table."""
    found = []
    for family, texts in _PRINTED.items():
        runs = [r for r in records if r.instance.family == family and r.policy in _POLICIES]
        if rows := _rows(runs):
            printed = [Fraction(text) for text in texts]
            found += [_possible(family, runs, rows, printed), _order(family, runs, rows, printed)]
    return found


def _rows(runs: Sequence[Record]) -> list[Row]:
    """Return the instances on which all three completed."""
    values: dict[str, dict[str | None, int]] = {}
    for run in runs:
        if run.value is not None:
            values.setdefault(run.instance.hash, {})[run.policy] = run.value
    whole = [found for found in values.values() if len(found) == len(_POLICIES)]
    return [tuple(found[policy] for policy in _POLICIES) for found in whole]


def _possible(
    family: str, runs: Sequence[Record], rows: Sequence[Row], printed: Sequence[Fraction]
) -> Verdict:
    """Compare with what no schedule can stay below, and with what schedules reach."""
    lower = [r.lower for r in runs if r.lower is not None]
    upper = [r.upper for r in runs if r.upper is not None]
    verdict: Judgement = "undecided"
    said = f"{_means(rows)}, over {len(rows)} draws"
    if lower and upper:
        said += f"; every optimum is in [{min(lower):,}, {max(upper):,}]"
    if lower and min(lower) > _FACTOR * max(printed):
        verdict = "not reproduced as printed"
        said += ": no schedule of any draw comes near what is printed"
    elif _FACTOR * max(map(max, rows)) < min(printed):
        verdict = "not reproduced as printed"
        said += ": the worst run of any draw is far below what is printed"
    return Verdict(
        claim=f"Total latency on {family}, averaged over trials",
        source=_SOURCE,
        published=_named(f"{float(number):,.1f}" for number in printed),
        found=said,
        verdict=verdict,
        certificates=certificates_of(runs),
    )


def _order(
    family: str, runs: Sequence[Record], rows: Sequence[Row], printed: Sequence[Fraction]
) -> Verdict:
    """Compare the order, pair by pair: it counts where it stands out from how draws scatter."""
    pairs = [(a, b) for a, b in combinations(range(len(_POLICIES)), 2) if printed[a] < printed[b]]
    pairs += [(b, a) for a, b in combinations(range(len(_POLICIES)), 2) if printed[b] < printed[a]]
    verdict: Judgement = "undecided"
    if len(rows) >= _LEAST_DRAWS:
        if any(_is_better(rows, worse, better) for better, worse in pairs):
            verdict = "not reproduced as printed"
        elif all(_is_better(rows, better, worse) for better, worse in pairs):
            verdict = "reproduced"
    return Verdict(
        claim=f"Order of the three schedulers on {family}, best first",
        source=_SOURCE,
        published=" < ".join(_best_first(printed)),
        found=f"{_means(rows)}, over {len(rows)} draws",
        verdict=verdict,
        certificates=certificates_of(runs),
    )


def _is_better(rows: Sequence[Row], one: int, other: int) -> bool:
    """Whether one's latency is below the other's by more than four standard errors."""
    saved = [row[other] - row[one] for row in rows]
    mean = sum(saved) / len(saved)
    variance = sum((value - mean) ** 2 for value in saved) / (len(saved) - 1)
    return mean > 4 * sqrt(variance / len(saved))


def _best_first(numbers: Sequence[Fraction]) -> list[str]:
    return [policy for _, policy in sorted(zip(numbers, _POLICIES, strict=True))]


def _means(rows: Sequence[Row]) -> str:
    return _named(f"{sum(column) / len(column):,.1f}" for column in zip(*rows, strict=True))


def _named(numbers: Iterable[str]) -> str:
    return ", ".join(f"{p} {number}" for p, number in zip(_POLICIES, numbers, strict=True))
