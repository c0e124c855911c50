"""jaillet-2025-v2 section 5.2.2, figure 5: predictions with noise, and a margin for it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from kvopt.experiments.studies.claims.latencies import at_rate, keys_of, latency, rates_of, told
from kvopt.experiments.studies.claims.verdict import Verdict
from kvopt.experiments.studies.records import Record

_BENCHMARK = "fcfs"
_WELL_BELOW = Fraction(9, 10)
"""Share of the benchmark below which a curve is well below it."""


def errors(records: Sequence[Record]) -> list[Verdict]:
    """Judge the claim where memory overflows: where it never does, errors change nothing."""
    found: list[Verdict] = []
    for rate in rates_of(records):
        runs = at_rate(records, rate)
        best = {r.instance.hash: latency(r) for r in runs if r.policy == _BENCHMARK}
        noisy = [r for r in runs if "eps" in keys_of(r.policy)[1] and best.get(r.instance.hash)]
        guarded = [record for record in noisy if "alpha" in keys_of(record.policy)[1]]
        bare = [record for record in noisy if "alpha" not in keys_of(record.policy)[1]]
        if guarded:
            found.append(_guarded(rate, guarded, best))
        if bare:
            found.append(_bare(rate, bare))
    return found


def _guarded(rate: float, runs: Sequence[Record], best: dict[str, Fraction | None]) -> Verdict:
    pairs = [(latency(run), best[run.instance.hash]) for run in runs]
    shares = [ours / its for ours, its in pairs if ours is not None and its]
    loops = [record for record in runs if record.outcome != "completed"]
    said = f"{len(loops)} of {len(runs)} runs do not complete"
    if shares:
        said = f"{float(min(shares)):.2f} to {float(max(shares)):.2f} times fcfs; {said}"
    return told(
        f"With a margin of 0.1 mc-sf stays well below MC-Benchmark (fcfs) whatever the errors, "
        f"{rate:g} requests a second",
        "curves below the benchmark, no loop",
        said,
        not loops and max(shares) <= _WELL_BELOW,
        loops or runs,
    )


def _bare(rate: float, runs: Sequence[Record]) -> Verdict:
    """Say what happens without a margin, which the paper adds to avoid it."""
    loops = [record for record in runs if record.outcome != "completed"]
    return told(
        f"Without a margin errors make memory overflow, {rate:g} requests a second",
        "why there is a margin",
        f"{sum(r.evictions > 0 for r in runs)} of {len(runs)} runs evict, {len(loops)} never end",
        any(record.evictions for record in runs),
        loops or runs,
    )
