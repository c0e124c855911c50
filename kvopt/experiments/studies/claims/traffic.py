"""jaillet-2025-v2 section 5.2, figure 3: mean latency over the number of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from kvopt.experiments.studies.claims.latencies import (
    ABOUT,
    SOURCE,
    at_rate,
    is_about,
    latency,
    rates_of,
    slope,
    told,
)
from kvopt.experiments.studies.claims.verdict import Verdict, certificates_of
from kvopt.experiments.studies.intervals import largest_of, mean_of, ratio_of
from kvopt.experiments.studies.records import Record

_OURS, _BENCHMARK = "mc-sf", "fcfs"
_FEWEST = 3
"""Numbers of requests from which on there is a slope to speak of."""

_STEEPER = {50.0: Fraction(3), 10.0: Fraction(8)}
"""How many times as steeply as mc-sf the best other scheduler rises, by requests a second."""

_SLOPES = Fraction(1, 6), Fraction(1, 2)
"""Printed for 50 requests a second, in seconds a request: of mc-sf and of the best other."""
_TABLE_1 = Fraction("32.112"), Fraction("46.472")
"""Printed for the same at 1,000 requests, in seconds."""

Curves = Mapping[str, Mapping[int, Fraction]]
"""Mean latency of each scheduler by number of requests."""


def traffic(records: Sequence[Record]) -> list[Verdict]:
    """Judge what is printed of figure 3, and say how far mc-sf is from the optimum."""
    found: list[Verdict] = []
    for rate in rates_of(records):
        runs = at_rate(records, rate)
        curves = _curves(runs)
        if len(curves.get(_OURS, {})) < _FEWEST or len(curves) < 2:
            continue
        if rate in _STEEPER:
            found.append(_order(rate, curves, runs))
        found.append(_steeper(rate, curves, runs))
        if rate == max(_STEEPER):
            found.append(_slopes(curves, runs))
        found += _optimum(rate, runs)
    return found


def _curves(runs: Sequence[Record]) -> Curves:
    """Return the curves of schedulers that completed wherever mc-sf did; of draws the means."""
    values: dict[str, dict[int, list[Fraction | None]]] = {}
    for run in runs:
        sizes = values.setdefault(run.policy or "", {})
        sizes.setdefault(run.instance.requests, []).append(latency(run))
    curves = {
        policy: {
            size: sum((v for v in found if v is not None), Fraction()) / len(found)
            for size, found in sorted(sizes.items())
            if None not in found
        }
        for policy, sizes in values.items()
    }
    wanted = curves.get(_OURS, {}).keys()
    return {policy: curve for policy, curve in curves.items() if curve.keys() == wanted}


def _order(rate: float, curves: Curves, runs: Sequence[Record]) -> Verdict:
    """Compare the two best at each number of requests."""
    sizes = curves[_OURS]
    first = [n for n in sizes if _is_best(_OURS, curves, n)]
    others = {policy: curve for policy, curve in curves.items() if policy != _OURS}
    second = [n for n in first if _is_best(_BENCHMARK, others, n)]
    return told(
        f"At {rate:g} requests a second mc-sf is the best of eight, MC-Benchmark (fcfs) the second",
        "curves in this order",
        f"mc-sf is the best at {len(first)} of {len(sizes)} numbers of requests, "
        f"with fcfs behind it at {len(second)}",
        len(second) == len(sizes),
        runs,
    )


def _is_best(policy: str, curves: Curves, n: int) -> bool:
    """Whether a scheduler is faster than every other one of some curves."""
    rest = [curve[n] for other, curve in curves.items() if other != policy]
    return policy in curves and all(curves[policy][n] < mean for mean in rest)


def _steeper(rate: float, curves: Curves, runs: Sequence[Record]) -> Verdict:
    """Compare slopes, which need no unit."""
    slopes = {policy: slope(curve) for policy, curve in curves.items()}
    best = min((policy for policy in slopes if policy != _OURS), key=lambda p: slopes[p])
    ours = slopes[_OURS]
    times = slopes[best] / ours if ours > 0 else None
    said = "mc-sf does not rise" if times is None else f"{float(times):.2f} times ({best})"
    said += f", the others up to {float(max(slopes.values()) / ours):.1f}" if ours > 0 else ""
    printed = _STEEPER.get(rate)
    claim = f"At {rate:g} requests a second the best other scheduler rises more steeply than mc-sf"
    if printed is None:
        said += ", on the stand-in"
        return Verdict(claim, SOURCE, "not run", said, "measured", certificates_of(runs))
    holds = times is not None and is_about(times, printed) and _is_straight(curves[_OURS])
    return told(claim, f"{float(printed):g} times", said, holds, runs)


def _is_straight(curve: Mapping[int, Fraction]) -> bool:
    """Whether a curve rises everywhere and stays within a fifth of a line."""
    line = slope(curve)
    middle, level = Fraction(sum(curve), len(curve)), sum(curve.values(), Fraction()) / len(curve)
    rises = all(before < after for before, after in pairwise(curve.values()))
    return rises and all(
        abs(y - level - line * (x - middle)) <= ABOUT * y for x, y in curve.items()
    )


def _slopes(curves: Curves, runs: Sequence[Record]) -> Verdict:
    """Compare the printed slopes with what the same paper prints in table 1."""
    ours = slope(curves[_OURS])
    others = min(slope(curve) for policy, curve in curves.items() if policy != _OURS)
    at_thousand = [float(1000 * printed) for printed in _SLOPES]
    return Verdict(
        claim="At 50 requests a second a request more costs 1/6 s with mc-sf, 1/2 s with the next",
        source=SOURCE,
        published="slopes 1/6 and 1/2",
        found=f"{float(ours):.5f} and {float(others):.5f} s, on the stand-in; as printed, 1,000 "
        f"requests would take {at_thousand[0]:.0f} and {at_thousand[1]:.0f} s on average, where "
        f"table 1 has {float(_TABLE_1[0]):.0f} and {float(_TABLE_1[1]):.0f} s",
        verdict="not reproduced as printed",
        certificates=certificates_of(runs),
    )


def _optimum(rate: float, runs: Sequence[Record]) -> list[Verdict]:
    """Say how far mc-sf is from the optimum, which no paper can."""
    known = [ratio_of(r) for r in runs if r.policy == _OURS and r.value and r.lower]
    if not known:
        return []
    return [
        Verdict(
            claim=f"How far mc-sf is from the optimum at {rate:g} requests a second",
            source=SOURCE,
            published="nothing: no bound is known there",
            found=f"{mean_of(known)} times the optimum on average over {len(known)} instances, "
            f"worst {largest_of(known)}, on the stand-in",
            verdict="measured",
            certificates=certificates_of(r for r in runs if r.policy == _OURS),
        )
    ]
