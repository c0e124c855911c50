"""jaillet-2025-v2 section 5.1: mc-sf against the hindsight optimum in two arrival models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from kvopt.experiments.studies.claims.chance import UNLIKELY, chance_of_as_many, mean_is_above
from kvopt.experiments.studies.claims.verdict import Judgement, Verdict, certificates_of
from kvopt.experiments.studies.intervals import largest_of, mean_of, ratio_of
from kvopt.experiments.studies.records import Record

_TRIALS = 200


@dataclass(frozen=True)
class _Printed:
    """What the paper prints of an arrival model: the mean, the worst ratio, and how often 1."""

    model: str
    mean: Fraction
    worst: Fraction
    exact: int | None = None


_ONE = _Printed("arrival model 1", Fraction("1.005"), Fraction("1.074"), 114)
_TWO = _Printed("arrival model 2", Fraction("1.047"), Fraction("1.227"))
_HALF_A_DIGIT = Fraction(1, 2000)


def arrival_1(records: Sequence[Record]) -> list[Verdict]:
    """Judge what is printed of arrival model 1."""
    return _judged(records, _ONE)


def arrival_2(records: Sequence[Record]) -> list[Verdict]:
    """Judge what is printed of arrival model 2."""
    return _judged(records, _TWO)


def _judged(records: Sequence[Record], printed: _Printed) -> list[Verdict]:
    runs = [r for r in records if r.policy == "mc-sf" and r.value is not None and r.upper]
    if not runs:
        return []
    found = [_mean(runs, printed), _worst(runs, printed)]
    return found if printed.exact is None else [*found, _exact(runs, printed, printed.exact)]


def _mean(runs: Sequence[Record], printed: _Printed) -> Verdict:
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
        source="jaillet-2025-v2 section 5.1",
        published=f"mean {float(printed.mean):g} over {_TRIALS} trials",
        found=f"mean in {mean} over {len(runs)} draws of the printed distribution",
        verdict=verdict,
        certificates=certificates_of(_largest_first(runs)),
    )


def _worst(runs: Sequence[Record], printed: _Printed) -> Verdict:
    above = [r for r in runs if (ratio_of(r).least or 0) > printed.worst + _HALF_A_DIGIT]
    chance = chance_of_as_many(len(above), len(runs), 0, _TRIALS)
    verdict: Judgement = "not reproduced as printed" if above and chance < UNLIKELY else "undecided"
    worst = largest_of(map(ratio_of, runs))
    if (
        worst.most is not None
        and worst.most <= printed.worst + _HALF_A_DIGIT
        and len(runs) >= _TRIALS
    ):
        verdict = "reproduced"
    return Verdict(
        claim=f"In {printed.model} mc-sf is at most {float(printed.worst):g} times the optimum",
        source="jaillet-2025-v2 section 5.1",
        published=f"worst {float(printed.worst):g} of {_TRIALS} trials",
        found=f"worst in {worst}; {len(above)} of {len(runs)} draws are certainly above",
        verdict=verdict,
        certificates=certificates_of(_largest_first(above or runs)),
    )


def _exact(runs: Sequence[Record], printed: _Printed, exact: int) -> Verdict:
    beaten = [r for r in runs if r.value is not None and r.upper is not None and r.value > r.upper]
    optimal = [record for record in runs if record.value == record.lower]
    chance = chance_of_as_many(len(beaten), len(runs), _TRIALS - exact, _TRIALS)
    same = chance_of_as_many(len(optimal), len(runs), exact, _TRIALS)
    verdict: Judgement = "undecided"
    if chance < UNLIKELY or same < UNLIKELY:
        verdict = "not reproduced as printed"
    elif len(beaten) + len(optimal) == len(runs) >= _TRIALS:
        verdict = "reproduced"
    return Verdict(
        claim=f"In {printed.model} mc-sf is optimal in {exact} of {_TRIALS} trials",
        source="jaillet-2025-v2 section 5.1",
        published=f"{exact} of {_TRIALS}",
        found=f"optimal in {len(optimal)} of {len(runs)} draws, certainly not in {len(beaten)}",
        verdict=verdict,
        certificates=certificates_of(_largest_first(beaten)),
    )


def _largest_first(runs: Sequence[Record]) -> list[Record]:
    return sorted(runs, key=lambda record: -(ratio_of(record).least or 0))
