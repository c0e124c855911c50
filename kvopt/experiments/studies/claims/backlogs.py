"""Schedulers on backlogs, where papers print curves, words and a table.

chen-2025 section 6: schedulers that know an interval for each output.  wang-2025 section 7: short
and long prompts together; table 4: total latency of three schedulers on five distributions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple

from kvopt.experiments.studies.claims.verdict import Judgement, Verdict, beaten, certificates_of
from kvopt.experiments.studies.intervals import rounded
from kvopt.experiments.studies.records import Record, grouped

CLOSE = Fraction("1.05")
"""Factor up to which two curves are what papers call "nearly identical"."""


class _Curves(NamedTuple):
    """A claim on the curves of two schedulers.

    The total latency of ``policy`` is compared with that of ``other``: from ``least`` to ``most``
    times on every instance agrees.
    """

    policy: str
    other: str
    claim: str
    published: str
    least: Fraction | int = 0
    most: Fraction | int | None = None


_BENCHMARKS = {
    "h-sf": "h-sf, which knows all outputs",
    "mc-sf": "shortest first, which knows all outputs",
}
"""Algorithm 3 starts a largest feasible set.  Shortest first finds one if all prompts are equal,
which they are not here, and the paper does not say which of the two was run."""


def _beside(policy: str, *, near: bool) -> list[_Curves]:
    """Return the claim on a policy beside each benchmark."""
    how, published, *ends = (
        ("nearly the latency of", "curves that nearly coincide", 0, CLOSE)
        if near
        else ("a much higher latency than", "a curve well above the others", CLOSE)
    )
    return [
        _Curves(policy, other, f"{policy} has {how} {name}", published, *ends)
        for other, name in _BENCHMARKS.items()
    ]


_ROUGH, _BUCKETS, _RELATIVE = (
    "intervals=rough,width=1000", "intervals=buckets,width=100", "intervals=relative,eps=",
)  # fmt: skip
_HALVED = "Buckets of 100 nearly halve the latency that a-max has with 1 .. 1000"
_NEARLY_HALVED = "nearly halved", Fraction(2, 5), Fraction(3, 5)

_CHEN = {
    1: [
        *_beside(f"a-min:{_ROUGH}", near=True),
        *_beside(f"a-max:{_ROUGH}", near=False),
    ],
    2: [
        *_beside(f"a-min:{_BUCKETS}", near=True),
        _Curves(f"a-max:{_BUCKETS}", f"a-max:{_ROUGH}", _HALVED, *_NEARLY_HALVED),
    ],
    3: [
        *_beside(f"a-max:{_RELATIVE}0.1", near=True),
        *_beside(f"a-min:{_RELATIVE}0.1", near=True),
        *_beside(f"a-min:{_RELATIVE}0.95", near=True),
        *_beside(f"a-min:{_RELATIVE}0.99", near=True),
        *_beside(f"a-max:{_RELATIVE}0.95", near=False),
        *_beside(f"a-max:{_RELATIVE}0.99", near=False),
    ],
}
"""By experiment: an output lies in 1 .. 1000, in a bucket of a hundred, or is known to a share."""

_SWAP, _QUANTILE = "sorted-f:phase1=swap", "sorted-f:phase1=quantile"
_OVERLAP = "lp-swap and sorted-f with swaps have nearly the same latency"

_MIXED = (
    _Curves("mc-sf", _SWAP, "mc-sf is inferior to sorted-f", "curves", 1),
    _Curves("mc-sf", "sorted-lp", "mc-sf is inferior to sorted-lp", "curves", 1),
    _Curves(
        _QUANTILE, _SWAP, "The swap of sorted-f gives less latency than its quantiles", "curves", 1
    ),
    _Curves("sorted-lp", "lp-swap", "lp-swap reduces the latency of sorted-lp", "curves", 1),
    _Curves("lp-swap", _SWAP, _OVERLAP, "curves that almost overlap", 1 / CLOSE, CLOSE),
)


def chen(records: Sequence[Record], experiments: Sequence[int]) -> Iterator[Verdict]:
    """Judge experiments of chen-2025, and the remark that h-sf is a lower bound."""
    for number in experiments:
        source = f"chen-2025 section 6, experiment {number}, figure {4 + number}"
        yield from _compared(records, _CHEN[number], source)
        if number == experiments[0]:
            yield from _lower_bound([r for r in records if r.policy == "h-sf"])


def mixed(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge what wang-2025 says of the curves."""
    return _compared(records, _MIXED, "wang-2025 section 7, figures 8 and 10")


def _compared(
    records: Sequence[Record], claims: Iterable[_Curves], source: str
) -> Iterator[Verdict]:
    """Judge claims on curves.

    Instances on which all policies are the same, because nothing has to wait, are left out.  The
    papers measured seconds on data that cannot be had; a claim that does not show on the
    stand-in is left open, not refuted.
    """
    runs = (r for r in records if r.policy is not None and r.value is not None)
    groups = grouped(runs, lambda run: run.instance.hash).values()
    by_policy = [{run.policy: run for run in group} for group in groups]
    busy = [group for group in by_policy if len({run.value for run in group.values()}) > 1]
    for said in claims:
        pairs = [
            (Fraction(g[said.policy].value or 0, g[said.other].value or 1), g[said.policy])
            for g in busy
            if {said.policy, said.other} <= g.keys()
        ]
        if not pairs:
            continue
        pairs.sort(key=lambda pair: -pair[0])
        high, low = pairs[0][0], pairs[-1][0]
        holds = said.least <= low and (said.most is None or high <= said.most)
        ends = f"{rounded(low, up=False)} to {rounded(high, up=True)}"
        clock = "seconds" if pairs[0][1].in_seconds else "rounds"
        yield Verdict(
            said.claim,
            source,
            said.published,
            f"{said.policy} is {ends} times {said.other}, in {clock}, on {len(pairs)} instances",
            "reproduced" if holds else "undecided",
            certificates_of(mine for _, mine in pairs),
        )


def _lower_bound(records: Iterable[Record]) -> Iterator[Verdict]:
    """Judge the remark that h-sf serves as a lower bound on achievable latency."""
    runs = {r.instance.hash: r for r in records if r.value is not None}
    better = beaten(runs.values())
    optimal = sum(run.value == run.lower for run in runs.values())
    verdict: Judgement = "reproduced" if optimal == len(runs) else "undecided"
    if runs:
        yield Verdict(
            "h-sf is a lower bound on the latency that can be achieved",
            "chen-2025 section 6",
            "serves as a lower bound on achievable latency",
            f"a schedule is better on {len(better)} of {len(runs)} instances; "
            f"h-sf is optimal on {optimal}",
            "refuted" if better else verdict,
            certificates_of(better),
        )


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
