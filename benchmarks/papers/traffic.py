"""jaillet-2025-v2 section 5.2: mean latency, how much memory to protect, and wrong predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from statistics import LinearRegression, linear_regression, mean, stdev

from verdicts import PRINTED, Judgement, Verdict, grouped, verdict_on

from kvopt.studies import Record, largest_of, mean_of, ratio_of

_NANOSECONDS = 1_000_000_000

_ABOUT = 0.2
"""Ratios agree with those read off printed pictures if they differ by at most this share."""
_CLOSE = 0.05
"""The same for ratios that are printed as numbers."""

_OURS, _BENCHMARK = "mc-sf", "fcfs"
_FEWEST = 3
"""Least number of sizes for a slope."""

_STEEPER = {50.0: 3.0, 10.0: 8.0}
"""Slope of the best other scheduler over that of mc-sf, by requests a second."""

_SLOPES = 1 / 6, 1 / 2
"""Slopes printed for 50 requests a second, in seconds a request: mc-sf and the best other one."""

_TABLE_1: dict[str, float] = PRINTED["v2-5.2-table-1"]
_RATE, _REQUESTS, _LEAST_RUNS = 50.0, 1000, 5
"""Requests a second and requests of the published table, and least draws for a verdict."""
_DEVIATION = 0.35
"""Printed standard deviation of mc-sf."""

Curve = Mapping[int, float]
"""Mean latency by number of requests."""


def latency(record: Record) -> float:
    """Return the mean latency of a completed run in seconds."""
    return (record.value or 0) / (max(record.instance.requests, 1) * _NANOSECONDS)


def by_rate(records: Iterable[Record]) -> dict[float, list[Record]]:
    """Return the runs of policies by requests that arrive in a second, the highest rate first."""
    runs = [r for r in records if r.in_seconds and r.policy is not None]
    found = grouped(runs, lambda record: record.instance.parameters.get("per_second"))
    rates = [rate for rate in found if isinstance(rate, (int, float))]
    return {float(rate): found[rate] for rate in sorted(rates, reverse=True)}


def told(
    name: str, found: str, holds: bool | None, records: Sequence[Record], **facts: object
) -> Verdict:
    """Return a verdict on a claim about data that are not public; None if there is no claim.

    A claim that fails on the stand-in is undecided, since the lengths and the server differ.
    """
    verdict: Judgement = "measured" if holds is None else "reproduced" if holds else "undecided"
    said = f"{found}, on the stand-in" + (": does not agree" if holds is False else "")
    return verdict_on(name, said, verdict, records, **facts)


def is_about(found: float, printed: float, share: float = _ABOUT) -> bool:
    """Whether a number is within a share of a printed one."""
    return abs(found - printed) <= share * printed


def traffic(records: Sequence[Record]) -> Iterator[Verdict]:
    """Test the claims of figure 3, and report how far mc-sf is from the optimum."""
    for rate, runs in by_rate(records).items():
        curves = _curves(runs)
        if len(curves) < 2 or len(curves[_OURS]) < _FEWEST:
            continue
        if rate in _STEEPER:
            yield _order(rate, curves, runs)
        yield from _steeper(rate, curves, runs)
        ours = [record for record in runs if record.policy == _OURS]
        if known := [ratio_of(record) for record in ours if record.value and record.lower]:
            said = f"{mean_of(known)} times the optimum on average over {len(known)} instances"
            said += f", worst {largest_of(known)}"
            yield told("traffic-optimum", said, None, ours, rate=rate)


def _curves(runs: Sequence[Record]) -> dict[str, Curve]:
    """Return the curves of schedulers that completed wherever mc-sf did; means over draws."""
    curves = {
        policy: {
            size: mean(map(latency, draws))
            for size, draws in sorted(grouped(mine, lambda run: run.instance.requests).items())
            if all(run.value is not None for run in draws)
        }
        for policy, mine in grouped(runs, lambda run: run.policy or "").items()
    }
    wanted = curves.get(_OURS, {}).keys()
    return {policy: curve for policy, curve in curves.items() if curve.keys() == wanted}


def _line(curve: Curve) -> LinearRegression:
    return linear_regression(list(curve), list(curve.values()))


def _order(rate: float, curves: Mapping[str, Curve], runs: Sequence[Record]) -> Verdict:
    """Compare the two best schedulers at each number of requests; mc-sf loses a tie."""
    best = [
        sorted(curves, key=lambda name: (curves[name][n], name == _OURS, name == _BENCHMARK))[:2]
        for n in curves[_OURS]
    ]
    first, second = sum(b[0] == _OURS for b in best), best.count([_OURS, _BENCHMARK])
    said = f"mc-sf is the best at {first} of {len(best)} numbers of requests"
    said += f", with fcfs behind it at {second}"
    return told("traffic-order", said, second == len(best), runs, rate=rate)


def _steeper(rate: float, curves: Mapping[str, Curve], runs: Sequence[Record]) -> Iterator[Verdict]:
    """Compare slopes, which need no unit, and the printed ones with table 1 of the same paper."""
    slopes = {policy: _line(curve).slope for policy, curve in curves.items()}
    ours, printed = slopes.pop(_OURS), _STEEPER.get(rate)
    best = min(slopes, key=lambda policy: slopes[policy])
    said, times = "mc-sf does not rise", 0.0
    if ours > 0:
        times = slopes[best] / ours
        highest = max(ours, *slopes.values()) / ours
        said = f"{times:.2f} times ({best}), the others up to {highest:.1f}"
    holds = None if printed is None else is_about(times, printed) and _is_straight(curves[_OURS])
    steeper = "not run" if printed is None else f"{printed:g} times"
    yield told("traffic-slopes", said, holds, runs, rate=rate, printed=steeper)
    if rate == max(_STEEPER):
        yield verdict_on(
            "traffic-seconds",
            f"{ours:.5f} and {slopes[best]:.5f} s, on the stand-in; as printed, 1,000 requests "
            f"would take {1000 * _SLOPES[0]:.0f} and {1000 * _SLOPES[1]:.0f} s on average, where "
            f"table 1 has {_TABLE_1[_OURS]:.0f} and {_TABLE_1[_BENCHMARK]:.0f} s",
            "not reproduced as printed",
            runs,
        )


def _is_straight(curve: Curve) -> bool:
    """Whether a curve rises everywhere and stays within a fifth of a line."""
    slope, start = _line(curve)
    rises = all(before < after for before, after in pairwise(curve.values()))
    return rises and all(is_about(start + slope * x, y) for x, y in curve.items())


def table_1(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge averages, as multiples of mc-sf, and their order."""
    runs = [r for r in by_rate(records).get(_RATE, ()) if r.instance.requests == _REQUESTS]
    completed = grouped((r for r in runs if r.value is not None), lambda run: run.policy or "")
    means = {p: list(map(latency, completed[p])) for p in _TABLE_1 if p in completed}
    counts = {len(found) for found in means.values()}
    if means.keys() != _TABLE_1.keys() or len(counts) > 1 or min(counts) < _LEAST_RUNS:
        return  # averages over different runs cannot be compared
    averages = {policy: mean(found) for policy, found in means.items()}
    ours, printed = averages[_OURS], _TABLE_1[_OURS]
    found, *others = (averages[policy] / ours for policy in _TABLE_1 if policy != _OURS)
    wanted, *theirs = (number / printed for policy, number in _TABLE_1.items() if policy != _OURS)
    first, second, *_, slowest = sorted(averages, key=lambda policy: averages[policy])
    worst = max(_TABLE_1, key=lambda policy: _TABLE_1[policy])
    spread = stdev(means[_OURS])
    rows = {
        "order": (
            f"{first} {averages[first]:.3f} s and {second} {averages[second]:.3f} s",
            [first, second] == [_OURS, _BENCHMARK],
        ),
        "fcfs": (f"{found:.3f}", is_about(found, wanted, _CLOSE)),
        "others": (
            f"{min(others):.2f} to {max(others):.2f}",
            all(is_about(*both, _CLOSE) for both in zip(others, theirs, strict=True)),
        ),
        "worst": (slowest, slowest == worst),
        "mean": (
            f"{ours:.3f} s, by a server that is {printed / ours:.1f} times as fast",
            is_about(ours, printed, _CLOSE),
        ),
        "deviation": (
            f"{spread:.3f} s over {len(means[_OURS])} draws of new conversations",
            is_about(spread, _DEVIATION),
        ),
    }
    for name, (said, holds) in rows.items():
        yield told(f"table-1-{name}", said, holds, runs)


_SAFE = {50.0: 0.21, 10.0: 0.24}
"""Smallest alpha without a loop, by requests a second."""
_STEP = 0.01
_LEAST_ALPHAS = 5
"""Least number of values of alpha for a grid."""
_LOOPS_AT = 0.15
_LOW = 0.1
_BEST = 0.15, 0.25

_WELL_BELOW = 0.9
"""Share of the benchmark, fcfs, below which a curve is well below it."""


def keys_of(policy: str | None) -> tuple[str, dict[str, str]]:
    """Return the name of a policy and its keys."""
    name, _, keys = (policy or "").partition(":")
    return name, dict(part.partition("=")[::2] for part in keys.split(",") if part)


def protection(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge the smallest alpha, the loop of version 1, and the curves over alpha."""
    for rate, runs in by_rate(records).items():
        kinds = grouped(runs, lambda run: keys_of(run.policy)[0])
        grid = kinds.get("alpha-protect", [])
        yield from _smallest(rate, grid)
        loopy = [record for record in grid if _alpha(record) == _LOOPS_AT]
        if loopy and rate == max(_SAFE):
            loops = [record for record in loopy if record.outcome == "livelock"]
            said = f"{len(loops)} of {len(loopy)} runs loop"
            yield told("alpha-loops", said, bool(loops), loops or loopy, rate=rate)
        swept = kinds.get("alpha-beta", [])
        sweeps = grouped(swept, lambda record: keys_of(record.policy)[1]["beta"])
        for beta, sweep in sorted(sweeps.items()):
            yield from _curve(f"{rate:g} requests a second, beta = {beta}", sweep)


def _alpha(record: Record) -> float:
    return float(keys_of(record.policy)[1]["alpha"])


def _smallest(rate: float, grid: Sequence[Record]) -> Iterator[Verdict]:
    """Compare with the least alpha from which on every run of an instance completes."""
    safe: dict[int, list[float | None]] = {}
    for runs in grouped(grid, lambda record: record.instance.hash).values():
        if len(runs) >= _LEAST_ALPHAS:
            safe.setdefault(runs[0].instance.requests, []).append(_safe_alpha(runs))
    if safe and rate in _SAFE:
        printed = _SAFE[rate]
        said = "; ".join(
            f"{', '.join('none' if a is None else f'{a:g}' for a in alphas)} with {n:,} requests"
            for n, alphas in sorted(safe.items())
        )
        least = safe[max(safe)]
        holds = all(a is not None and round(abs(a - printed), 9) <= _STEP for a in least)
        yield told("alpha-least", said, holds, grid, rate=rate, printed=printed)


def _safe_alpha(runs: Iterable[Record]) -> float | None:
    falling = sorted(runs, key=_alpha, reverse=True)
    safe = list(takewhile(lambda record: record.value is not None, falling))
    return _alpha(safe[-1]) if safe else None


def _curve(setting: str, sweep: Sequence[Record]) -> Iterator[Verdict]:
    """Judge figures 9 and 12, of which the sweep has a curve for each beta."""
    means = {_alpha(r): latency(r) for r in sweep if r.value is not None}
    if len(sweep) < _LEAST_ALPHAS or _LOW not in means:
        return
    lowest, best = min(map(_alpha, sweep)), min(means, key=lambda alpha: (means[alpha], alpha))
    low = f"{means[lowest]:.2f} s" if lowest in means else "no end"
    flat = len(set(means.values())) == 1 and len(means) == len(sweep)
    said = f"{low} at {lowest}, {means[_LOW]:.2f} s at {_LOW}"
    holds = lowest not in means or means[lowest] > means[_LOW]
    yield told("alpha-low", said, holds, sweep, low=_LOW, setting=setting)
    said = "all alike" if flat else f"least at {best}, {means[best]:.2f} s"
    holds = not flat and _BEST[0] <= best <= _BEST[1]
    yield told("alpha-best", said, holds, sweep, ends=_BEST, setting=setting)


def errors(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge section 5.2.2, figure 5, if memory overflows: otherwise errors change nothing."""
    for rate, runs in by_rate(records).items():
        best = {r.instance.hash: latency(r) for r in runs if r.policy == _BENCHMARK and r.value}
        noisy = [r for r in runs if "eps" in keys_of(r.policy)[1] and r.instance.hash in best]
        margins = grouped(noisy, lambda record: "alpha" in keys_of(record.policy)[1])
        guarded, bare = margins.get(True, []), margins.get(False, [])
        loops, endless = ([r for r in some if r.outcome != "completed"] for some in (guarded, bare))
        if guarded:
            shares = [latency(r) / best[r.instance.hash] for r in guarded if r.value is not None]
            said = f"{min(shares):.2f} to {max(shares):.2f} times fcfs; " if shares else ""
            said += f"{len(loops)} of {len(guarded)} runs do not complete"
            holds = not loops and max(shares) <= _WELL_BELOW
            yield told("errors-margin", said, holds, loops or guarded, rate=rate)
        if bare:
            evicting = sum(record.evictions > 0 for record in bare)
            said = f"{evicting} of {len(bare)} runs evict, {len(endless)} never end"
            # Without a margin, which the paper adds to avoid this.
            yield told("errors-bare", said, evicting > 0, endless or bare, rate=rate)
