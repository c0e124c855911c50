"""Schedulers on backlogs, instance by instance, where papers print curves and words.

chen-2025 section 6: schedulers that know an interval for each output.  wang-2025 section 7: short
and long prompts together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
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
