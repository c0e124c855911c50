"""jaillet-2025: how much memory has to be protected, what that costs, and wrong predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from kvopt.experiments.studies.claims.traffic import by_rate, latency, told
from kvopt.experiments.studies.claims.verdict import Verdict
from kvopt.experiments.studies.records import Record, grouped

_SAFE = {50.0: Fraction(21, 100), 10.0: Fraction(24, 100)}
"""Smallest alpha without a loop, by requests a second."""
_STEP = Fraction(1, 100)
_FEWEST = 5
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
        if len(runs) >= _FEWEST:
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
    if len(sweep) < _FEWEST or _LOW not in means:
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
