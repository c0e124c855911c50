"""mc-sf against the hindsight optimum: jaillet-2025-v2 section 5.1, and v1 theorems 4.2 and 5.3.

The regret of a run is its mean latency less that of the optimum.  A checked schedule is an upper
bound on the optimum, so mc-sf less that schedule is regret for certain; mc-sf less a proved lower
bound is at least the regret.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import sqrt
from statistics import fmean, variance

from verdicts import PRINTED, Verdict, beaten, grouped, settled, verdict_on

from kvopt.studies import Interval, Record, largest_of, mean_of, ratio_of

_TRIALS = 200
"""Draws of the published experiment; means over fewer are not compared."""
_HALF_A_DIGIT = Fraction(1, 2000)

UNLIKELY = Fraction(1, 1000)
"""Level of significance of a difference."""

_LINEAR = Fraction(1, 2)
"""Least growth of the certain regret over that of the horizon, from each to the next, that counts
as linear.  For a bounded regret it falls towards 0."""

_LEAST_HORIZONS, _LEAST_SPAN, _LEAST_DRAWS = 3, 8, 3
"""With fewer horizons, a smaller factor between the ends, or fewer draws the claim is undecided."""


def arrivals(records: Sequence[Record], name: str) -> Iterator[Verdict]:
    """Test the printed figures of an arrival model: mean, worst ratio, and share of 1."""
    printed = PRINTED[name]
    exact = printed.get("exact")
    printed_mean, limit = Fraction(printed["mean"]), Fraction(printed["worst"]) + _HALF_A_DIGIT
    runs = _largest_first(_completed(records))
    if not runs:
        return
    ratios, is_enough = list(map(ratio_of, runs)), len(runs) >= _TRIALS
    mean, ends = mean_of(ratios), [ratio.lower for ratio in ratios if ratio.lower is not None]
    low, high = printed_mean - _HALF_A_DIGIT, printed_mean + _HALF_A_DIGIT
    worst, draws = largest_of(ratios), len(runs)
    above = [record for record in runs if (ratio_of(record).lower or 0) > limit]
    # Claim, measured quantity, whether it agrees if the draws are enough, or contradicts, and runs.
    rows = [
        (
            "arrivals-mean",
            f"mean in {mean} over {draws} draws of the printed distribution",
            mean.is_within(low, high),
            mean_is_above(ends, float(high), float(printed["worst"]), _TRIALS),
            runs,
        ),
        (
            "arrivals-worst",
            f"worst in {worst}; {len(above)} of {draws} draws are certainly above",
            worst.is_within(Fraction(), limit),
            _is_unlikely(len(above), draws, 0),
            above or runs,
        ),
    ]
    if exact is not None:
        better, optimal = beaten(runs), sum(record.value == record.lower for record in runs)
        said = f"optimal in {optimal} of {draws} draws, certainly not in {len(better)}"
        fewer = _is_unlikely(len(better), draws, _TRIALS - exact)
        wrong, is_whole = (
            fewer or _is_unlikely(optimal, draws, exact),
            len(better) + optimal == draws,
        )
        rows.append(("arrivals-exact", said, is_whole, wrong, better))
    for claim, said, agrees, contradicts, shown in rows:
        verdict = settled(agrees=is_enough and agrees, contradicts=contradicts)
        yield verdict_on(claim, said, verdict, shown, **printed)


def equal_prompts(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge the theorem on equal prompts: one instance with a better schedule refutes it."""
    runs = _completed(records)
    better = _largest_first(sorted(beaten(runs), key=lambda record: record.instance.requests))
    said = f"beaten on {len(better)} of {len(runs)} instances"
    if better:
        smallest = min(better, key=lambda record: record.instance.requests)
        said += (
            f", with {smallest.instance.requests} requests {smallest.value} against "
            f"{smallest.upper}; worst ratio in {largest_of(map(ratio_of, runs))}"
        )
        better = [smallest, *better]
    if runs:
        yield verdict_on("equal-prompts", said, "refuted" if better else "undecided", better)


def _completed(records: Sequence[Record]) -> list[Record]:
    return [r for r in records if r.policy == "mc-sf" and r.value is not None and r.upper]


def _largest_first(runs: Sequence[Record]) -> list[Record]:
    return sorted(runs, key=lambda record: -(ratio_of(record).lower or 0))


def regret(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge each setting that was drawn for several horizons."""
    runs = [r for r in records if r.policy == "mc-sf" and r.value is not None]
    drawn = [record for record in runs if record.instance.parameters.get("rounds") is not None]
    for setting, mine in sorted(grouped(drawn, _setting).items()):
        horizons = grouped(mine, lambda record: int(record.instance.parameters["rounds"]))
        if len(horizons) >= _LEAST_HORIZONS:
            yield _bounded(setting, sorted(horizons.items()))


def _setting(record: Record) -> str:
    """Return the setting from which a run was drawn, without its horizon."""
    keys = {k: v for k, v in record.instance.parameters.items() if k != "rounds"}
    return f"{record.instance.family} {json.dumps(keys, sort_keys=True)}"


def regret_of(record: Record) -> Interval:
    """Return the interval that holds the regret of a run, in rounds a request."""
    value, requests, sides = record.value, record.instance.requests, (record.upper, record.lower)
    if value is None or not requests:
        return Interval(None, None)
    return Interval(*(None if end is None else Fraction(value - end, requests) for end in sides))


def grows_linearly(found: Sequence[tuple[int, Interval]]) -> bool:
    """Whether the certain regret grows with the horizon from each to the next."""
    return all(
        earlier.lower is not None
        and later.lower is not None
        and earlier.lower > 0
        and later.lower / earlier.lower >= _LINEAR * Fraction(after, before)
        for (before, earlier), (after, later) in pairwise(found)
    )


def _bounded(setting: str, runs: Sequence[tuple[int, list[Record]]]) -> Verdict:
    found = [(horizon, mean_of(map(regret_of, draws))) for horizon, draws in runs]
    enough = runs[-1][0] >= _LEAST_SPAN * runs[0][0] and all(
        len(draws) >= _LEAST_DRAWS for _, draws in runs
    )
    grows = enough and grows_linearly(found)
    said = "; ".join(f"{mean.to_places(2)} at T = {horizon:,}" for horizon, mean in found)
    return verdict_on(
        "regret",
        f"mean regret a request, in rounds, over {len(runs[-1][1])} draws: {said}"
        + (": what is certain of it grows with T" if grows else ""),
        "refuted" if grows else "undecided",
        (record for _, draws in reversed(runs) for record in draws),
        setting=setting,
    )


def _is_unlikely(ours: int, draws: int, theirs: int) -> bool:
    """Whether so many hits in our draws are significant, given the share that the paper prints.

    Fisher's exact test, one-sided: were both samples of one law, of all hits together at least
    ``ours`` would fall among our draws.
    """
    from scipy.stats import hypergeom  # it takes a second to load

    return bool(hypergeom.sf(ours - 1, draws + _TRIALS, ours + theirs, draws) < UNLIKELY)


def mean_is_above(values: list[Fraction], mean: float, worst: float, trials: int) -> bool:
    """Whether our mean is more than four standard errors above a printed mean of ratios.

    The paper prints no variance of the ratios; between 1 and ``worst`` with that mean it is at most
    (mean - 1) (worst - mean).
    """
    if len(values) < 2:
        return False
    scatter = float(variance(values)) / len(values)
    error = sqrt(scatter + (mean - 1) * (worst - mean) / trials)
    return fmean(values) - mean > 4 * error
