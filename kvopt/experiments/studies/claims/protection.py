"""jaillet-2025: how much memory has to be protected, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from kvopt.experiments.studies.claims.latencies import at_rate, keys_of, latency, rates_of, told
from kvopt.experiments.studies.claims.verdict import Verdict
from kvopt.experiments.studies.records import Record

_SAFE = {50.0: Fraction(21, 100), 10.0: Fraction(24, 100)}
"""Smallest alpha without a loop, by requests a second."""
_STEP = Fraction(1, 100)
_FEWEST = 5
"""Values of alpha from which on there is a grid to speak of."""
_LOOPS_AT = Fraction(15, 100)
_LOW = Fraction(1, 10)
_BEST = Fraction(15, 100), Fraction(25, 100)


def protection(records: Sequence[Record]) -> list[Verdict]:
    """Judge the smallest alpha, the loop of version 1, and the curves over alpha."""
    found: list[Verdict] = []
    for rate in rates_of(records):
        runs = at_rate(records, rate)
        grid = [r for r in runs if keys_of(r.policy)[0] == "alpha-protect"]
        sweep = [r for r in runs if keys_of(r.policy)[0] == "alpha-beta"]
        found += [*_smallest(rate, grid), *_loop(rate, grid), *_curve(rate, sweep)]
    return found


def _alpha(record: Record) -> Fraction:
    return Fraction(keys_of(record.policy)[1]["alpha"])


def _smallest(rate: float, grid: Sequence[Record]) -> list[Verdict]:
    """Compare with the alpha from which on every run of an instance completes."""
    safe: dict[int, list[Fraction | None]] = {}
    for hash_ in dict.fromkeys(record.instance.hash for record in grid):
        mine = [record for record in grid if record.instance.hash == hash_]
        if len(mine) >= _FEWEST:
            safe.setdefault(mine[0].instance.requests, []).append(_safe_alpha(mine))
    if not safe or rate not in _SAFE:
        return []
    said = "; ".join(
        f"{', '.join('none' if a is None else f'{float(a):g}' for a in alphas)} with {n:,} requests"
        for n, alphas in sorted(safe.items())
    )
    largest = safe[max(safe)]
    holds = all(a is not None and abs(a - _SAFE[rate]) <= _STEP for a in largest)
    return [
        told(
            f"The smallest alpha from which on alpha-protect completes, {rate:g} requests a second",
            f"{float(_SAFE[rate])}",
            said,
            holds,
            grid,
        )
    ]


def _safe_alpha(runs: Sequence[Record]) -> Fraction | None:
    safe = None
    for record in sorted(runs, key=_alpha, reverse=True):
        if record.value is None:
            break
        safe = _alpha(record)
    return safe


def _loop(rate: float, grid: Sequence[Record]) -> list[Verdict]:
    mine = [record for record in grid if _alpha(record) == _LOOPS_AT]
    if not mine or rate != max(_SAFE):
        return []
    loops = [record for record in mine if record.outcome == "livelock"]
    return [
        told(
            f"alpha-protect with alpha = {float(_LOOPS_AT)} loops at {rate:g} requests a second "
            "(version 1, figure 7)",
            "an endless loop",
            f"{len(loops)} of {len(mine)} runs loop",
            bool(loops),
            loops or mine,
        )
    ]


def _curve(rate: float, sweep: Sequence[Record]) -> list[Verdict]:
    """Judge figures 9 and 12, of which the sweep has a curve for each beta."""
    found: list[Verdict] = []
    for beta in sorted({keys_of(record.policy)[1]["beta"] for record in sweep}):
        mine = [record for record in sweep if keys_of(record.policy)[1]["beta"] == beta]
        means = {_alpha(r): mean for r in mine if (mean := latency(r)) is not None}
        if len(mine) < _FEWEST or _LOW not in means:
            continue
        setting = f"{rate:g} requests a second, beta = {beta}"
        lowest, best = min(map(_alpha, mine)), min(means, key=lambda a: (means[a], a))
        low = f"{float(means[lowest]):.2f} s" if lowest in means else "no end"
        flat = len(set(means.values())) == 1 and len(means) == len(mine)
        found.append(
            told(
                f"Less protection than alpha = {float(_LOW)} makes alpha-beta slower, {setting}",
                "curves that rise to the left",
                f"{low} at {float(lowest)}, {float(means[_LOW]):.2f} s at {float(_LOW)}",
                lowest not in means or means[lowest] > means[_LOW],
                mine,
            )
        )
        found.append(
            told(
                f"alpha between {float(_BEST[0])} and {float(_BEST[1])} is best, {setting}",
                "curves with their least values there",
                "all alike" if flat else f"least at {float(best)}, {float(means[best]):.2f} s",
                not flat and _BEST[0] <= best <= _BEST[1],
                mine,
            )
        )
    return found
