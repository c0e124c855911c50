"""jaillet-2025-v2 section 5.2: mean latency, how much memory to protect, and wrong predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import LinearRegression, linear_regression, mean, stdev

from kvopt.experiments.studies.claims.verdict import Judgement, Verdict, certificates_of
from kvopt.experiments.studies.intervals import largest_of, mean_of, ratio_of
from kvopt.experiments.studies.records import Record, grouped
from kvopt.problem.batch_time import NANOSECONDS

_SOURCE = "jaillet-2025-v2 section 5.2"

_ABOUT = Fraction(1, 5)
"""Share by which ratios may differ from printed ones, which are read off pictures, and agree."""
_CLOSE = Fraction(1, 20)
"""The same of ratios that are printed as numbers."""

_OURS, _BENCHMARK = "mc-sf", "fcfs"
_FEWEST = 3
"""Numbers of requests from which on there is a slope to speak of."""

_STEEPER = {50.0: Fraction(3), 10.0: Fraction(8)}
"""How many times as steeply as mc-sf the best other scheduler rises, by requests a second."""

_SLOPES = Fraction(1, 6), Fraction(1, 2)
"""Printed for 50 requests a second, in seconds a request: of mc-sf and of the best other."""

_TABLE_1 = {
    _OURS: Fraction("32.112"),
    _BENCHMARK: Fraction("46.472"),
    "alpha-protect:alpha=0.3": Fraction("51.933"),
    "alpha-protect:alpha=0.25": Fraction("51.046"),
    "alpha-beta:alpha=0.2,beta=0.2": Fraction("50.401"),
    "alpha-beta:alpha=0.2,beta=0.1": Fraction("50.395"),
    "alpha-beta:alpha=0.1,beta=0.2": Fraction("53.393"),
    "alpha-beta:alpha=0.1,beta=0.1": Fraction("50.862"),
}
"""Average latencies of 1,000 requests at 50 a second, in seconds."""
_RATE, _REQUESTS, _LEAST_RUNS = 50.0, 1000, 5
"""Requests a second and requests of the published table, and least draws to judge it by."""
_DEVIATION = Fraction("0.35")
"""Printed standard deviation of mc-sf."""

Curve = Mapping[int, Fraction]
"""Mean latency by number of requests."""


def latency(record: Record) -> Fraction | None:
    """Return the mean latency of a run in seconds, None unless it completed."""
    if record.value is None or not record.instance.requests:
        return None
    return Fraction(record.value, record.instance.requests * NANOSECONDS)


def by_rate(records: Iterable[Record]) -> dict[float, list[Record]]:
    """Return the runs of policies by requests that arrive in a second, the highest rate first."""
    runs = [r for r in records if r.in_seconds and r.policy is not None]
    found = grouped(runs, lambda record: record.instance.parameters.get("per_second"))
    rates = [rate for rate in found if isinstance(rate, (int, float))]
    return {float(rate): found[rate] for rate in sorted(rates, reverse=True)}


def told(
    claim: str, published: str, found: str, holds: bool | None, records: Sequence[Record]
) -> Verdict:
    """Return a verdict on a claim about data that cannot be had; None claims nothing.

    What does not show on the stand-in is left open: the lengths and the server differ.
    """
    verdict: Judgement = "measured" if holds is None else "reproduced" if holds else "undecided"
    said = f"{found}, on the stand-in" + (": does not agree" if holds is False else "")
    return Verdict(claim, _SOURCE, published, said, verdict, certificates_of(records))


def is_about(found: Fraction | float, printed: Fraction, share: Fraction = _ABOUT) -> bool:
    """Whether a number is within a share of a printed one."""
    return abs(Fraction(found) - printed) <= share * printed


def traffic(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge what is printed of figure 3, and say how far mc-sf is from the optimum."""
    for rate, runs in by_rate(records).items():
        curves = _curves(runs)
        if len(curves.get(_OURS, {})) < _FEWEST or len(curves) < 2:
            continue
        slopes = {policy: _line(curve).slope for policy, curve in curves.items()}
        best = min((policy for policy in slopes if policy != _OURS), key=lambda p: slopes[p])
        if rate in _STEEPER:
            yield _order(rate, curves, runs)
        yield _steeper(rate, curves[_OURS], slopes, best, runs)
        if rate == max(_STEEPER):
            yield _slopes(slopes[_OURS], slopes[best], runs)
        ours = [record for record in runs if record.policy == _OURS]
        if known := [ratio_of(record) for record in ours if record.value and record.lower]:
            yield told(
                f"How far mc-sf is from the optimum at {rate:g} requests a second",
                "nothing: no bound is known there",
                f"{mean_of(known)} times the optimum on average over {len(known)} instances, "
                f"worst {largest_of(known)}",
                None,
                ours,
            )


def _curves(runs: Sequence[Record]) -> dict[str, Curve]:
    """Return the curves of schedulers that completed wherever mc-sf did; of draws the means."""
    curves: dict[str, Curve] = {}
    for policy, mine in grouped(runs, lambda run: run.policy or "").items():
        sizes = sorted(grouped(mine, lambda run: run.instance.requests).items())
        means = {size: [m for run in draws if (m := latency(run))] for size, draws in sizes}
        curves[policy] = {n: mean(means[n]) for n, draws in sizes if len(means[n]) == len(draws)}
    wanted = curves.get(_OURS, {}).keys()
    return {policy: curve for policy, curve in curves.items() if curve.keys() == wanted}


def _line(curve: Curve) -> LinearRegression:
    return linear_regression(list(curve), list(map(float, curve.values())))


def _order(rate: float, curves: Mapping[str, Curve], runs: Sequence[Record]) -> Verdict:
    """Compare the two best at each number of requests."""
    sizes = curves[_OURS]
    others = {policy: curve for policy, curve in curves.items() if policy != _OURS}
    best = [n for n in sizes if _is_best(_OURS, curves, n)]
    first, second = len(best), sum(_is_best(_BENCHMARK, others, n) for n in best)
    return told(
        f"At {rate:g} requests a second mc-sf is the best of eight, MC-Benchmark (fcfs) the second",
        "curves in this order",
        f"mc-sf is the best at {first} of {len(sizes)} numbers of requests, "
        f"with fcfs behind it at {second}",
        second == len(sizes),
        runs,
    )


def _is_best(policy: str, curves: Mapping[str, Curve], n: int) -> bool:
    """Whether a scheduler is faster than every other one of some curves."""
    rest = [curve[n] for other, curve in curves.items() if other != policy]
    return policy in curves and all(curves[policy][n] < mean for mean in rest)


def _steeper(
    rate: float, curve: Curve, slopes: Mapping[str, float], best: str, runs: Sequence[Record]
) -> Verdict:
    """Compare slopes, which need no unit."""
    ours, printed = slopes[_OURS], _STEEPER.get(rate)
    said, holds = "mc-sf does not rise", False
    if ours > 0:
        times = slopes[best] / ours
        said = f"{times:.2f} times ({best}), the others up to {max(slopes.values()) / ours:.1f}"
        holds = printed is not None and is_about(times, printed)
    return told(
        f"At {rate:g} requests a second the best other scheduler rises more steeply than mc-sf",
        "not run" if printed is None else f"{float(printed):g} times",
        said,
        None if printed is None else holds and _is_straight(curve),
        runs,
    )


def _is_straight(curve: Curve) -> bool:
    """Whether a curve rises everywhere and stays within a fifth of a line."""
    slope, start = _line(curve)
    rises = all(before < after for before, after in pairwise(curve.values()))
    return rises and all(is_about(start + slope * x, y) for x, y in curve.items())


def _slopes(ours: float, other: float, runs: Sequence[Record]) -> Verdict:
    """Compare the printed slopes with what the same paper prints in table 1."""
    at_thousand = [float(1000 * printed) for printed in _SLOPES]
    means = [float(_TABLE_1[policy]) for policy in (_OURS, _BENCHMARK)]
    return Verdict(
        "At 50 requests a second a request more costs 1/6 s with mc-sf, 1/2 s with the next",
        _SOURCE,
        "slopes 1/6 and 1/2",
        f"{ours:.5f} and {other:.5f} s, on the stand-in; as printed, 1,000 "
        f"requests would take {at_thousand[0]:.0f} and {at_thousand[1]:.0f} s on average, where "
        f"table 1 has {means[0]:.0f} and {means[1]:.0f} s",
        "not reproduced as printed",
        certificates_of(runs),
    )


def table_1(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge averages, as multiples of mc-sf, and their order."""
    runs = [r for r in by_rate(records).get(_RATE, ()) if r.instance.requests == _REQUESTS]
    means: dict[str, list[Fraction]] = {}
    for run in runs:
        if run.policy in _TABLE_1 and (mean := latency(run)) is not None:
            means.setdefault(run.policy, []).append(mean)
    counts = {len(found) for found in means.values()}
    if means.keys() != _TABLE_1.keys() or len(counts) > 1 or min(counts) < _LEAST_RUNS:
        return  # averages over different runs cannot be compared
    for claim, published, said, holds in _averages_judged(means):
        yield told(claim, published, said, holds, runs)


def _averages_judged(
    means: Mapping[str, Sequence[Fraction]],
) -> tuple[tuple[str, str, str, bool], ...]:
    """Return claims of table 1, what is printed, what was found and whether they agree.

    ``means`` are the mean latencies of the runs of each policy.
    """
    averages = {policy: mean(found) for policy, found in means.items()}
    ours, printed = averages[_OURS], _TABLE_1[_OURS]
    times = {p: (averages[p] / ours, _TABLE_1[p] / printed) for p in _TABLE_1 if p != _OURS}
    found, wanted = times.pop(_BENCHMARK)
    others, theirs = zip(*times.values(), strict=True)
    first = sorted(averages, key=lambda policy: averages[policy])
    slowest, worst = first[-1], max(_TABLE_1, key=lambda policy: _TABLE_1[policy])
    spread = Fraction(stdev(map(float, means[_OURS])))
    return (
        (
            "mc-sf is the best of the eight schedulers of table 1, MC-Benchmark (fcfs) the second",
            f"{float(printed)} and {float(_TABLE_1[_BENCHMARK])} s",
            " and ".join(f"{policy} {float(averages[policy]):.3f} s" for policy in first[:2]),
            first[:2] == [_OURS, _BENCHMARK],
        ),
        (
            "MC-Benchmark (fcfs) as a multiple of mc-sf",
            f"{float(wanted):.3f}",
            f"{float(found):.3f}",
            is_about(found, wanted, _CLOSE),
        ),
        (
            "The six others as multiples of mc-sf",
            f"{float(min(theirs)):.2f} to {float(max(theirs)):.2f}",
            f"{float(min(others)):.2f} to {float(max(others)):.2f}",
            all(is_about(*both, _CLOSE) for both in times.values()),
        ),
        ("The worst of the eight", worst, slowest, slowest == worst),
        (
            "Average latency of mc-sf in seconds",
            f"{float(printed)} s",
            f"{float(ours):.3f} s, by a server that is {float(printed / ours):.1f} times as fast",
            is_about(ours, printed, _CLOSE),
        ),
        (
            "Standard deviation of mc-sf over the runs",
            f"{float(_DEVIATION)} s",
            f"{float(spread):.3f} s over {len(means[_OURS])} draws of new conversations",
            is_about(spread, _DEVIATION),
        ),
    )


_SAFE = {50.0: Fraction(21, 100), 10.0: Fraction(24, 100)}
"""Smallest alpha without a loop, by requests a second."""
_STEP = Fraction(1, 100)
_LEAST_ALPHAS = 5
"""Values of alpha from which on there is a grid to speak of."""
_LOOPS_AT = Fraction(15, 100)
_LOW = Fraction(1, 10)
_BEST = Fraction(15, 100), Fraction(25, 100)

_WELL_BELOW = Fraction(9, 10)
"""Share of the benchmark, fcfs, below which a curve is well below it."""


def keys_of(policy: str | None) -> tuple[str, dict[str, str]]:
    """Return the name of a policy and its keys."""
    name, _, keys = (policy or "").partition(":")
    return name, dict(part.partition("=")[::2] for part in keys.split(",") if part)


def protection(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge the smallest alpha, the loop of version 1, and the curves over alpha."""
    for rate, runs in by_rate(records).items():
        grid = [r for r in runs if keys_of(r.policy)[0] == "alpha-protect"]
        yield from _smallest(rate, grid)
        loopy = [record for record in grid if _alpha(record) == _LOOPS_AT]
        if loopy and rate == max(_SAFE):
            loops = [record for record in loopy if record.outcome == "livelock"]
            yield told(
                f"alpha-protect with alpha = {float(_LOOPS_AT)} loops at {rate:g} requests a "
                "second (version 1, figure 7)",
                "an endless loop",
                f"{len(loops)} of {len(loopy)} runs loop",
                bool(loops),
                loops or loopy,
            )
        swept = [r for r in runs if keys_of(r.policy)[0] == "alpha-beta"]
        sweeps = grouped(swept, lambda record: keys_of(record.policy)[1]["beta"])
        for beta, sweep in sorted(sweeps.items()):
            yield from _curve(f"{rate:g} requests a second, beta = {beta}", sweep)


def _alpha(record: Record) -> Fraction:
    return Fraction(keys_of(record.policy)[1]["alpha"])


def _smallest(rate: float, grid: Sequence[Record]) -> Iterator[Verdict]:
    """Compare with the alpha from which on every run of an instance completes."""
    safe: dict[int, list[Fraction | None]] = {}
    for runs in grouped(grid, lambda record: record.instance.hash).values():
        if len(runs) >= _LEAST_ALPHAS:
            safe.setdefault(runs[0].instance.requests, []).append(_safe_alpha(runs))
    if safe and rate in _SAFE:
        yield told(
            f"The smallest alpha from which on alpha-protect completes, {rate:g} requests a second",
            f"{float(_SAFE[rate])}",
            "; ".join(
                f"{', '.join('none' if a is None else f'{float(a):g}' for a in alphas)} "
                f"with {n:,} requests"
                for n, alphas in sorted(safe.items())
            ),
            all(a is not None and abs(a - _SAFE[rate]) <= _STEP for a in safe[max(safe)]),
            grid,
        )


def _safe_alpha(runs: Iterable[Record]) -> Fraction | None:
    safe = None
    for record in sorted(runs, key=_alpha, reverse=True):
        if record.value is None:
            break
        safe = _alpha(record)
    return safe


def _curve(setting: str, sweep: Sequence[Record]) -> Iterator[Verdict]:
    """Judge figures 9 and 12, of which the sweep has a curve for each beta."""
    means = {_alpha(r): mean for r in sweep if (mean := latency(r)) is not None}
    if len(sweep) < _LEAST_ALPHAS or _LOW not in means:
        return
    lowest, best = min(map(_alpha, sweep)), min(means, key=lambda a: (means[a], a))
    low = f"{float(means[lowest]):.2f} s" if lowest in means else "no end"
    flat = len(set(means.values())) == 1 and len(means) == len(sweep)
    yield told(
        f"Less protection than alpha = {float(_LOW)} makes alpha-beta slower, {setting}",
        "curves that rise to the left",
        f"{low} at {float(lowest)}, {float(means[_LOW]):.2f} s at {float(_LOW)}",
        lowest not in means or means[lowest] > means[_LOW],
        sweep,
    )
    yield told(
        f"alpha between {float(_BEST[0])} and {float(_BEST[1])} is best, {setting}",
        "curves with their least values there",
        "all alike" if flat else f"least at {float(best)}, {float(means[best]):.2f} s",
        not flat and _BEST[0] <= best <= _BEST[1],
        sweep,
    )


def errors(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge section 5.2.2, figure 5, where memory overflows: else errors change nothing."""
    for rate, runs in by_rate(records).items():
        best = {r.instance.hash: latency(r) for r in runs if r.policy == "fcfs"}
        noisy = [r for r in runs if "eps" in keys_of(r.policy)[1] and best.get(r.instance.hash)]
        guarded = [record for record in noisy if "alpha" in keys_of(record.policy)[1]]
        bare = [record for record in noisy if "alpha" not in keys_of(record.policy)[1]]
        loops = [record for record in guarded if record.outcome != "completed"]
        pairs = [(latency(run), best[run.instance.hash]) for run in guarded]
        shares = [ours / its for ours, its in pairs if ours is not None and its]
        said = f"{len(loops)} of {len(guarded)} runs do not complete"
        if shares:
            said = f"{float(min(shares)):.2f} to {float(max(shares)):.2f} times fcfs; {said}"
        if guarded:
            yield told(
                "With a margin of 0.1 mc-sf stays well below MC-Benchmark (fcfs) whatever the "
                f"errors, {rate:g} requests a second",
                "curves below the benchmark, no loop",
                said,
                not loops and max(shares) <= _WELL_BELOW,
                loops or guarded,
            )
        loops = [record for record in bare if record.outcome != "completed"]
        evicting = sum(record.evictions > 0 for record in bare)
        if bare:
            yield told(  # what happens without a margin, which the paper adds to avoid it
                f"Without a margin errors make memory overflow, {rate:g} requests a second",
                "why there is a margin",
                f"{evicting} of {len(bare)} runs evict, {len(loops)} never end",
                evicting > 0,
                loops or bare,
            )
