"""mc-sf against the hindsight optimum: jaillet-2025-v2 section 5.1, and v1 theorem 4.2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt

from kvopt.experiments.studies.claims.verdict import Judgement, Verdict, beaten, certificates_of
from kvopt.experiments.studies.intervals import largest_of, mean_of, ratio_of
from kvopt.experiments.studies.records import Record

_SOURCE = "jaillet-2025-v2 section 5.1"
_TRIALS = 200
_HALF_A_DIGIT = Fraction(1, 2000)

UNLIKELY = Fraction(1, 1000)
"""Probability below which a difference is not put down to chance."""


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
            claim="mc-sf is optimal when everything is there at once and all prompts are equal",
            source="jaillet-2025-v1 theorem 4.2, withdrawn in version 2",
            published="optimal in terms of average end-to-end latency",
            found=said,
            verdict="refuted" if better else "undecided",
            certificates=certificates_of(better),
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
        claim=f"In {printed.model} mc-sf is {float(printed.mean):g} times the optimum on average",
        source=_SOURCE,
        published=f"mean {float(printed.mean):g} over {_TRIALS} trials",
        found=f"mean in {mean} over {len(runs)} draws of the printed distribution",
        verdict=verdict,
        certificates=certificates_of(runs),
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
        claim=f"In {printed.model} mc-sf is at most {float(printed.worst):g} times the optimum",
        source=_SOURCE,
        published=f"worst {float(printed.worst):g} of {_TRIALS} trials",
        found=f"worst in {worst}; {len(above)} of {len(runs)} draws are certainly above",
        verdict=verdict,
        certificates=certificates_of(above or runs),
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
        claim=f"In {printed.model} mc-sf is optimal in {exact} of {_TRIALS} trials",
        source=_SOURCE,
        published=f"{exact} of {_TRIALS}",
        found=f"optimal in {optimal} of {len(runs)} draws, certainly not in {len(better)}",
        verdict=verdict,
        certificates=certificates_of(better),
    )


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
    own = float(sum(values, Fraction()) / len(values))
    variance = sum((float(value) - own) ** 2 for value in values) / (len(values) - 1)
    error = sqrt(variance / len(values) + (mean - 1) * (worst - mean) / trials)
    return own - mean > 4 * error
