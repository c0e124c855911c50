"""chen-2025 section 6: schedulers that know an interval for each output."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from kvopt.experiments.studies.claims.curves import CLOSE, Runs, by_instance, compared
from kvopt.experiments.studies.claims.verdict import Judgement, Verdict, certificates_of
from kvopt.experiments.studies.records import Record

_ROUGH_MAX = "a-max:intervals=rough,width=1000"
_BUCKET_MAX = "a-max:intervals=buckets,width=100"
_BENCHMARKS = {
    "h-sf": "h-sf, which knows all outputs",
    "mc-sf": "shortest first, which knows all outputs",
}
"""Algorithm 3 starts a largest feasible set.  Shortest first finds one if all prompts are equal,
which they are not here, and the paper does not say which of the two was run."""

_ACCURACIES = ("0.1", "0.95", "0.99")


def chen_1(records: Sequence[Record]) -> list[Verdict]:
    """Judge experiment 1: every output lies in 1 .. 1000."""
    groups, source = by_instance(records), "chen-2025 section 6, experiment 1, figure 5"
    return [
        *_close(groups, "a-min:intervals=rough,width=1000", source),
        *_far(groups, _ROUGH_MAX, source),
        *_benchmark(groups),
    ]


def chen_2(records: Sequence[Record]) -> list[Verdict]:
    """Judge experiment 2: buckets of a hundred."""
    groups, source = by_instance(records), "chen-2025 section 6, experiment 2, figure 6"
    halved = compared(
        groups,
        _BUCKET_MAX,
        _ROUGH_MAX,
        least=Fraction(2, 5),
        most=Fraction(3, 5),
        claim="Buckets of 100 nearly halve the latency that a-max has with 1 .. 1000",
        source=source,
        published="nearly halved",
    )
    return [
        *_close(groups, "a-min:intervals=buckets,width=100", source),
        *halved,
        *_benchmark(groups),
    ]


def chen_3(records: Sequence[Record]) -> list[Verdict]:
    """Judge experiment 3: outputs known up to a share."""
    groups, source = by_instance(records), "chen-2025 section 6, experiment 3, figure 7"
    found = _close(groups, "a-max:intervals=relative,eps=0.1", source)
    for x in _ACCURACIES:
        found += _close(groups, f"a-min:intervals=relative,eps={x}", source)
    for x in _ACCURACIES[1:]:
        found += _far(groups, f"a-max:intervals=relative,eps={x}", source)
    return [*found, *_benchmark(groups)]


def chen_6(records: Sequence[Record]) -> list[Verdict]:
    """Judge all three on the same requests."""
    found = [*chen_1(records), *chen_2(records), *chen_3(records)]
    return list({verdict.claim: verdict for verdict in found}.values())


def _close(groups: Sequence[Runs], policy: str, source: str) -> list[Verdict]:
    found: list[Verdict] = []
    for benchmark, name in _BENCHMARKS.items():
        found += compared(
            groups,
            policy,
            benchmark,
            most=CLOSE,
            claim=f"{policy} has nearly the latency of {name}",
            source=source,
            published="curves that nearly coincide",
        )
    return found


def _far(groups: Sequence[Runs], policy: str, source: str) -> list[Verdict]:
    found: list[Verdict] = []
    for benchmark, name in _BENCHMARKS.items():
        found += compared(
            groups,
            policy,
            benchmark,
            least=CLOSE,
            claim=f"{policy} has a much higher latency than {name}",
            source=source,
            published="a curve well above the others",
        )
    return found


def _benchmark(groups: Sequence[Runs]) -> list[Verdict]:
    """Judge the remark that h-sf serves as a lower bound on achievable latency."""
    runs = [group["h-sf"] for group in groups if "h-sf" in group]
    beaten = [r for r in runs if r.value is not None and r.upper is not None and r.value > r.upper]
    optimal = [r for r in runs if r.value == r.lower]
    if not runs:
        return []
    verdict: Judgement = "undecided"
    if beaten:
        verdict = "refuted"
    elif len(optimal) == len(runs):
        verdict = "reproduced"
    return [
        Verdict(
            claim="h-sf is a lower bound on the latency that can be achieved",
            source="chen-2025 section 6",
            published="serves as a lower bound on achievable latency",
            found=f"a schedule is better on {len(beaten)} of {len(runs)} instances; "
            f"h-sf is optimal on {len(optimal)}",
            verdict=verdict,
            certificates=certificates_of(beaten),
        )
    ]
