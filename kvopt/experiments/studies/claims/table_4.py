"""wang-2025 table 4: total latency of three schedulers on five distributions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from math import sqrt
from statistics import mean, stdev

from kvopt.experiments.studies.claims.verdict import Judgement, Verdict, certificates_of
from kvopt.experiments.studies.records import Record, grouped

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


def table_4(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge each row of the table."""
    for family, texts in _PRINTED.items():
        runs = [r for r in records if r.instance.family == family and r.policy in _POLICIES]
        if rows := _rows(runs):
            printed, said = list(map(Fraction, texts)), f"{_means(rows)}, over {len(rows)} draws"
            yield _possible(family, runs, rows, printed, said)
            yield Verdict(
                f"Order of the three schedulers on {family}, best first",
                _SOURCE,
                " < ".join(p for _, p in sorted(zip(printed, _POLICIES, strict=True))),
                said,
                _order(rows, printed),
                certificates_of(runs),
            )


def _rows(runs: Sequence[Record]) -> list[Row]:
    """Return the instances on which all three completed."""
    completed = grouped((r for r in runs if r.value is not None), lambda run: run.instance.hash)
    values = [{run.policy: run.value or 0 for run in mine} for mine in completed.values()]
    whole = [found for found in values if len(found) == len(_POLICIES)]
    return [tuple(found[policy] for policy in _POLICIES) for found in whole]


def _possible(
    family: str, runs: Sequence[Record], rows: Sequence[Row], printed: Sequence[Fraction], said: str
) -> Verdict:
    """Compare with what no schedule can stay below, and with what schedules reach."""
    lower = [r.lower for r in runs if r.lower is not None]
    upper = [r.upper for r in runs if r.upper is not None]
    verdict: Judgement = "not reproduced as printed"
    if lower and upper:
        said += f"; every optimum is in [{min(lower):,}, {max(upper):,}]"
    if lower and min(lower) > _FACTOR * max(printed):
        said += ": no schedule of any draw comes near what is printed"
    elif _FACTOR * max(map(max, rows)) < min(printed):
        said += ": the worst run of any draw is far below what is printed"
    else:
        verdict = "undecided"
    return Verdict(
        f"Total latency on {family}, averaged over trials",
        _SOURCE,
        _named(f"{float(number):,.1f}" for number in printed),
        said,
        verdict,
        certificates_of(runs),
    )


def _order(rows: Sequence[Row], printed: Sequence[Fraction]) -> Judgement:
    """Compare the order, pair by pair: it counts where it stands out from how draws scatter."""
    pairs = [(a, b) for a, b in permutations(range(len(printed)), 2) if printed[a] < printed[b]]
    if len(rows) >= _LEAST_DRAWS:
        if any(_is_better(rows, worse, better) for better, worse in pairs):
            return "not reproduced as printed"
        if all(_is_better(rows, better, worse) for better, worse in pairs):
            return "reproduced"
    return "undecided"


def _is_better(rows: Sequence[Row], one: int, other: int) -> bool:
    """Whether one's latency is below the other's by more than four standard errors."""
    saved = [row[other] - row[one] for row in rows]
    return mean(saved) > 4 * stdev(saved) / sqrt(len(saved))


def _means(rows: Sequence[Row]) -> str:
    return _named(f"{mean(column):,.1f}" for column in zip(*rows, strict=True))


def _named(numbers: Iterable[str]) -> str:
    return ", ".join(f"{p} {number}" for p, number in zip(_POLICIES, numbers, strict=True))
