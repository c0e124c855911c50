"""mc-sf against the hindsight optimum: jaillet-2025-v2 section 5.1, and v1 theorems 4.2 and 5.3.

The regret of a run is its mean latency less that of the optimum.  A checked schedule is an upper
bound on the optimum, so mc-sf less that schedule is regret for certain; mc-sf less a proved lower
bound is at least the regret.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import comb, sqrt
from statistics import fmean, variance

from kvopt.experiments.studies.claims.verdict import Judgement, Verdict, beaten, certificates_of
from kvopt.experiments.studies.intervals import (
    Interval,
    largest_of,
    mean_of,
    ratio_of,
    rounded,
)
from kvopt.experiments.studies.records import Record, grouped

_SOURCE = "jaillet-2025-v2 section 5.1"
_TRIALS = 200
"""Draws of the published experiment, from which on a mean of ours is compared."""
_HALF_A_DIGIT = Fraction(1, 2000)

UNLIKELY = Fraction(1, 1000)
"""Probability below which a difference is not put down to chance."""

_LINEAR = Fraction(1, 2)
"""Growth of the certain regret over growth of the horizon, from each to the next, that counts as
linear.  Were the regret bounded, this would fall towards 0."""

_LEAST_HORIZONS, _LEAST_SPAN, _LEAST_DRAWS = 3, 8, 3
"""Fewer horizons, a smaller factor between the ends, or fewer draws leave the matter undecided."""


@dataclass(frozen=True)
class Printed:
    """What the paper prints of an arrival model: the mean, the worst ratio, and how often 1."""

    model: str
    mean: Fraction
    worst: Fraction
    exact: int | None = None


ONE = Printed("arrival model 1", Fraction("1.005"), Fraction("1.074"), 114)
TWO = Printed("arrival model 2", Fraction("1.047"), Fraction("1.227"))


def arrivals(records: Sequence[Record], printed: Printed) -> Iterator[Verdict]:
    """Judge what is printed of an arrival model."""
    if runs := _largest_first(_completed(records)):
        yield _mean(runs, printed)
        yield _worst(runs, printed)
        if printed.exact is not None:
            yield _exact(runs, printed, printed.exact)


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
        yield Verdict(
            "mc-sf is optimal when everything is there at once and all prompts are equal",
            "jaillet-2025-v1 theorem 4.2, withdrawn in a later version",
            "optimal in terms of average end-to-end latency",
            said,
            "refuted" if better else "undecided",
            certificates_of(better),
        )


def _completed(records: Sequence[Record]) -> list[Record]:
    return [r for r in records if r.policy == "mc-sf" and r.value is not None and r.upper]


def _largest_first(runs: Sequence[Record]) -> list[Record]:
    return sorted(runs, key=lambda record: -(ratio_of(record).least or 0))


def _mean(runs: Sequence[Record], printed: Printed) -> Verdict:
    ratios = [ratio_of(record) for record in runs]
    mean, ends = mean_of(ratios), [r.least for r in ratios if r.least is not None]
    low, high = printed.mean - _HALF_A_DIGIT, printed.mean + _HALF_A_DIGIT
    verdict: Judgement = "undecided"
    if mean_is_above(ends, float(high), float(printed.worst), _TRIALS):
        verdict = "not reproduced as printed"
    elif len(runs) >= _TRIALS and mean.is_within(low, high):
        verdict = "reproduced"
    return Verdict(
        f"In {printed.model} mc-sf is {float(printed.mean):g} times the optimum on average",
        _SOURCE,
        f"mean {float(printed.mean):g} over {_TRIALS} trials",
        f"mean in {mean} over {len(runs)} draws of the printed distribution",
        verdict,
        certificates_of(runs),
    )


def _worst(runs: Sequence[Record], printed: Printed) -> Verdict:
    limit = printed.worst + _HALF_A_DIGIT
    above = [record for record in runs if (ratio_of(record).least or 0) > limit]
    worst = largest_of(map(ratio_of, runs))
    verdict: Judgement = "undecided"
    if worst.most is not None and worst.most <= limit and len(runs) >= _TRIALS:
        verdict = "reproduced"
    elif above and chance_of_as_many(len(above), len(runs), 0, _TRIALS) < UNLIKELY:
        verdict = "not reproduced as printed"
    return Verdict(
        f"In {printed.model} mc-sf is at most {float(printed.worst):g} times the optimum",
        _SOURCE,
        f"worst {float(printed.worst):g} of {_TRIALS} trials",
        f"worst in {worst}; {len(above)} of {len(runs)} draws are certainly above",
        verdict,
        certificates_of(above or runs),
    )


def _exact(runs: Sequence[Record], printed: Printed, exact: int) -> Verdict:
    better = beaten(runs)
    optimal = sum(record.value == record.lower for record in runs)
    chance = chance_of_as_many(len(better), len(runs), _TRIALS - exact, _TRIALS)
    same = chance_of_as_many(optimal, len(runs), exact, _TRIALS)
    verdict: Judgement = "undecided"
    if chance < UNLIKELY or same < UNLIKELY:
        verdict = "not reproduced as printed"
    elif len(better) + optimal == len(runs) >= _TRIALS:
        verdict = "reproduced"
    return Verdict(
        f"In {printed.model} mc-sf is optimal in {exact} of {_TRIALS} trials",
        _SOURCE,
        f"{exact} of {_TRIALS}",
        f"optimal in {optimal} of {len(runs)} draws, certainly not in {len(better)}",
        verdict,
        certificates_of(better),
    )


def regret(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge each setting that was drawn for several horizons."""
    runs = [r for r in records if r.policy == "mc-sf" and r.value is not None]
    drawn = [record for record in runs if record.instance.parameters.get("rounds") is not None]
    for setting, mine in sorted(grouped(drawn, _setting).items()):
        horizons = grouped(mine, lambda record: int(record.instance.parameters["rounds"]))
        if len(horizons) >= _LEAST_HORIZONS:
            yield _bounded(setting, sorted(horizons.items()))


def _setting(record: Record) -> str:
    """Return what a run was drawn from, without its horizon."""
    keys = {k: v for k, v in record.instance.parameters.items() if k != "rounds"}
    return f"{record.instance.family} {json.dumps(keys, sort_keys=True)}"


def regret_of(record: Record) -> Interval:
    """Return the interval that holds the regret of a run, in rounds a request."""
    return Interval(_mean_difference(record, record.upper), _mean_difference(record, record.lower))


def grows_linearly(found: Sequence[tuple[int, Interval]]) -> bool:
    """Whether the certain regret keeps pace with the horizon from each to the next."""
    return all(
        earlier.least is not None
        and later.least is not None
        and earlier.least > 0
        and later.least / earlier.least >= _LINEAR * Fraction(after, before)
        for (before, earlier), (after, later) in pairwise(found)
    )


def _bounded(setting: str, runs: Sequence[tuple[int, list[Record]]]) -> Verdict:
    found = [(horizon, mean_of(map(regret_of, draws))) for horizon, draws in runs]
    enough = runs[-1][0] >= _LEAST_SPAN * runs[0][0] and all(
        len(draws) >= _LEAST_DRAWS for _, draws in runs
    )
    grows = enough and grows_linearly(found)
    said = "; ".join(
        f"[{rounded(interval.least, up=False, places=2)}, "
        f"{rounded(interval.most, up=True, places=2)}] at T = {horizon:,}"
        for horizon, interval in found
    )
    return Verdict(
        f"The regret of mc-sf is bounded by a constant, on {setting}",
        "jaillet-2025-v1 theorem 5.3",
        "mean latency within a constant of the optimum, whatever the horizon",
        f"mean regret a request, in rounds, over {len(runs[-1][1])} draws: {said}"
        + (": what is certain of it grows with T" if grows else ""),
        "refuted" if grows else "undecided",
        certificates_of(record for _, draws in reversed(runs) for record in draws),
    )


def _mean_difference(record: Record, by: int | None) -> Fraction | None:
    if record.value is None or by is None or not record.instance.requests:
        return None
    return Fraction(record.value - by, record.instance.requests)


def chance_of_as_many(ours: int, draws: int, theirs: int, trials: int) -> Fraction:
    """Return the chance of so many hits in our draws if both samples were of one law.

    Fisher's exact test, one-sided: of all hits together, at least ``ours`` fall among our draws.
    """
    hits, everything = ours + theirs, draws + trials
    ways = sum(comb(draws, k) * comb(trials, hits - k) for k in range(ours, min(draws, hits) + 1))
    return Fraction(ways, comb(everything, hits))


def mean_is_above(values: list[Fraction], mean: float, worst: float, trials: int) -> bool:
    """Whether our mean is more than four standard errors above a printed mean of ratios.

    Nothing is printed of how the ratios scatter; between 1 and ``worst`` with that mean their
    variance is at most (mean - 1) (worst - mean).
    """
    if len(values) < 2:
        return False
    scatter = float(variance(values)) / len(values)
    error = sqrt(scatter + (mean - 1) * (worst - mean) / trials)
    return fmean(values) - mean > 4 * error
