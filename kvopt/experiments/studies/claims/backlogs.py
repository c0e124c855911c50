"""Schedulers on backlogs, instance by instance, where papers print curves and words.

chen-2025 section 6: schedulers that know an interval for each output.  wang-2025 section 7: short
and long prompts together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from kvopt.experiments.studies.claims.verdict import Judgement, Verdict, beaten, certificates_of
from kvopt.experiments.studies.intervals import rounded
from kvopt.experiments.studies.records import Record, grouped

CLOSE = Fraction("1.05")
"""Factor up to which two curves are what papers call "nearly identical"."""


@dataclass(frozen=True)
class _Curves:
    """A claim on the curves of two schedulers.

    Parameters
    ----------
    policy, other
        The total latency of the one is compared with that of the other.
    claim, published
        What is said of them, and how.
    least, most
        Factors between both that agree, on every instance.
    """

    policy: str
    other: str
    claim: str
    published: str
    least: Fraction | int = 0
    most: Fraction | None = None


_BENCHMARKS = {
    "h-sf": "h-sf, which knows all outputs",
    "mc-sf": "shortest first, which knows all outputs",
}
"""Algorithm 3 starts a largest feasible set.  Shortest first finds one if all prompts are equal,
which they are not here, and the paper does not say which of the two was run."""


def _beside(
    policies: Iterable[str],
    claim: str,
    published: str,
    least: Fraction | int = 0,
    most: Fraction | None = None,
) -> list[_Curves]:
    """Return the same claim on each of some policies beside each benchmark."""
    return [
        _Curves(policy, other, f"{policy} has {claim} {name}", published, least, most)
        for policy in policies
        for other, name in _BENCHMARKS.items()
    ]


def _near(*policies: str) -> list[_Curves]:
    published = "curves that nearly coincide"
    return _beside(policies, "nearly the latency of", published, most=CLOSE)


def _far(*policies: str) -> list[_Curves]:
    published = "a curve well above the others"
    return _beside(policies, "a much higher latency than", published, least=CLOSE)


_ROUGH, _BUCKETS, _RELATIVE = (
    "intervals=rough,width=1000", "intervals=buckets,width=100", "intervals=relative,eps=",
)  # fmt: skip
_HALVED = "Buckets of 100 nearly halve the latency that a-max has with 1 .. 1000"

_CHEN = {
    1: [*_near(f"a-min:{_ROUGH}"), *_far(f"a-max:{_ROUGH}")],
    2: [
        *_near(f"a-min:{_BUCKETS}"),
        _Curves(
            f"a-max:{_BUCKETS}", f"a-max:{_ROUGH}", _HALVED, "nearly halved",
            least=Fraction(2, 5), most=Fraction(3, 5),
        ),
    ],
    3: [
        *_near(f"a-max:{_RELATIVE}0.1"),
        *_near(*(f"a-min:{_RELATIVE}{x}" for x in ("0.1", "0.95", "0.99"))),
        *_far(*(f"a-max:{_RELATIVE}{x}" for x in ("0.95", "0.99"))),
    ],
}  # fmt: skip
"""By experiment: an output lies in 1 .. 1000, in a bucket of a hundred, or is known to a share."""

_SWAP, _QUANTILE = "sorted-f:phase1=swap", "sorted-f:phase1=quantile"
_OVERLAP = "lp-swap and sorted-f with swaps have nearly the same latency"

_MIXED = (
    *(
        _Curves(policy, other, claim, "curves", least=1)
        for policy, other, claim in (
            ("mc-sf", _SWAP, "mc-sf is inferior to sorted-f"),
            ("mc-sf", "sorted-lp", "mc-sf is inferior to sorted-lp"),
            (_QUANTILE, _SWAP, "The swap of sorted-f gives less latency than its quantiles"),
            ("sorted-lp", "lp-swap", "lp-swap reduces the latency of sorted-lp"),
        )
    ),
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
            (g[said.policy], g[said.other]) for g in busy if {said.policy, said.other} <= g.keys()
        ]
        if not pairs:
            continue
        pairs.sort(key=lambda pair: -_share(*pair))
        high, low = _share(*pairs[0]), _share(*pairs[-1])
        holds = said.least <= low and (said.most is None or high <= said.most)
        ends = f"{rounded(low, up=False)} to {rounded(high, up=True)}"
        clock = "seconds" if pairs[0][0].in_seconds else "rounds"
        yield Verdict(
            claim=said.claim,
            source=source,
            published=said.published,
            found=f"{said.policy} is {ends} times {said.other}, in {clock}, "
            f"on {len(pairs)} instances",
            verdict="reproduced" if holds else "undecided",
            certificates=certificates_of(mine for mine, _ in pairs),
        )


def _share(mine: Record, its: Record) -> Fraction:
    assert mine.value is not None, "runs without a value are left out"
    assert its.value, "every request takes a round at least"
    return Fraction(mine.value, its.value)


def _lower_bound(records: Iterable[Record]) -> Iterator[Verdict]:
    """Judge the remark that h-sf serves as a lower bound on achievable latency."""
    runs = {r.instance.hash: r for r in records if r.value is not None}
    better = beaten(runs.values())
    optimal = sum(run.value == run.lower for run in runs.values())
    verdict: Judgement = "reproduced" if optimal == len(runs) else "undecided"
    if runs:
        yield Verdict(
            claim="h-sf is a lower bound on the latency that can be achieved",
            source="chen-2025 section 6",
            published="serves as a lower bound on achievable latency",
            found=f"a schedule is better on {len(better)} of {len(runs)} instances; "
            f"h-sf is optimal on {optimal}",
            verdict="refuted" if better else verdict,
            certificates=certificates_of(better),
        )
