"""jaillet-2025-v2 table 1: mean latencies of eight schedulers over 50 runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import stdev

from kvopt.experiments.studies.claims.curves import CLOSE
from kvopt.experiments.studies.claims.latencies import at_rate, is_about, latency, told
from kvopt.experiments.studies.claims.verdict import Verdict
from kvopt.experiments.studies.records import Record

_RATE, _REQUESTS = 50.0, 1000
_OURS, _BENCHMARK = "mc-sf", "fcfs"
_PRINTED = {
    _OURS: Fraction("32.112"),
    _BENCHMARK: Fraction("46.472"),
    "alpha-protect:alpha=0.3": Fraction("51.933"),
    "alpha-protect:alpha=0.25": Fraction("51.046"),
    "alpha-beta:alpha=0.2,beta=0.2": Fraction("50.401"),
    "alpha-beta:alpha=0.2,beta=0.1": Fraction("50.395"),
    "alpha-beta:alpha=0.1,beta=0.2": Fraction("53.393"),
    "alpha-beta:alpha=0.1,beta=0.1": Fraction("50.862"),
}
"""Average latencies, in seconds."""
_DEVIATION = Fraction("0.35")
"""Printed standard deviation of mc-sf."""
_LEAST_RUNS = 5

Averages = Mapping[str, Fraction]


def table_1(records: Sequence[Record]) -> list[Verdict]:
    """Judge averages, as multiples of mc-sf, and their order."""
    runs = [r for r in at_rate(records, _RATE) if r.instance.requests == _REQUESTS]
    means: dict[str, list[Fraction]] = {}
    for run in runs:
        mean = latency(run)
        if run.policy in _PRINTED and mean is not None:
            means.setdefault(run.policy, []).append(mean)
    counts = {len(found) for found in means.values()}
    if means.keys() != _PRINTED.keys() or len(counts) > 1 or min(counts) < _LEAST_RUNS:
        return []  # averages over different runs cannot be compared
    averages = {policy: sum(found, Fraction()) / len(found) for policy, found in means.items()}
    return [
        _order(averages, runs),
        _benchmark(averages, runs),
        _others(averages, runs),
        _worst(averages, runs),
        _seconds(averages, runs),
        _deviation(means[_OURS], runs),
    ]


def _times(averages: Averages, policy: str) -> Fraction:
    return averages[policy] / averages[_OURS]


def _order(averages: Averages, runs: Sequence[Record]) -> Verdict:
    first = sorted(averages, key=lambda policy: averages[policy])[:2]
    return told(
        "mc-sf is the best of the eight schedulers of table 1, MC-Benchmark (fcfs) the second",
        f"{float(_PRINTED[_OURS])} and {float(_PRINTED[_BENCHMARK])} s",
        " and ".join(f"{policy} {float(averages[policy]):.3f} s" for policy in first),
        first == [_OURS, _BENCHMARK],
        runs,
    )


def _benchmark(averages: Averages, runs: Sequence[Record]) -> Verdict:
    printed, found = _times(_PRINTED, _BENCHMARK), _times(averages, _BENCHMARK)
    return told(
        "MC-Benchmark (fcfs) as a multiple of mc-sf",
        f"{float(printed):.3f}",
        f"{float(found):.3f}",
        is_about(found, printed, CLOSE - 1),
        runs,
    )


def _others(averages: Averages, runs: Sequence[Record]) -> Verdict:
    others = [policy for policy in _PRINTED if policy not in (_OURS, _BENCHMARK)]
    printed = [_times(_PRINTED, policy) for policy in others]
    found = [_times(averages, policy) for policy in others]
    return told(
        "The six others as multiples of mc-sf",
        f"{float(min(printed)):.2f} to {float(max(printed)):.2f}",
        f"{float(min(found)):.2f} to {float(max(found)):.2f}",
        all(is_about(a, b, CLOSE - 1) for a, b in zip(found, printed, strict=True)),
        runs,
    )


def _worst(averages: Averages, runs: Sequence[Record]) -> Verdict:
    printed, found = (max(of, key=lambda policy: of[policy]) for of in (_PRINTED, averages))
    return told("The worst of the eight", printed, found, found == printed, runs)


def _seconds(averages: Averages, runs: Sequence[Record]) -> Verdict:
    printed, found = _PRINTED[_OURS], averages[_OURS]
    return told(
        "Average latency of mc-sf in seconds",
        f"{float(printed)} s",
        f"{float(found):.3f} s, by a server that is {float(printed / found):.1f} times as fast",
        is_about(found, printed, CLOSE - 1),
        runs,
    )


def _deviation(found: Sequence[Fraction], runs: Sequence[Record]) -> Verdict:
    deviation = Fraction(stdev(map(float, found)))
    return told(
        "Standard deviation of mc-sf over the runs",
        f"{float(_DEVIATION)} s",
        f"{float(deviation):.3f} s over {len(found)} draws of new conversations",
        is_about(deviation, _DEVIATION),
        runs,
    )
