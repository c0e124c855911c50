"""jaillet-2025-v1 theorem 5.3: the regret of mc-sf is bounded, whatever the horizon.

The regret of a run is its mean latency less that of the optimum.  A checked schedule is an upper
bound on the optimum, so mc-sf less that schedule is regret for certain; mc-sf less a proved lower
bound is at least the regret.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from kvopt.experiments.studies.claims.verdict import Verdict, certificates_of
from kvopt.experiments.studies.intervals import Interval, mean_of, rounded
from kvopt.experiments.studies.records import Record

_LINEAR = Fraction(1, 2)
"""Growth of the certain regret over growth of the horizon, from each to the next, that counts as
linear.  Were the regret bounded, this would fall towards 0."""

_LEAST_HORIZONS, _LEAST_SPAN, _LEAST_DRAWS = 3, 8, 3
"""Fewer horizons, a smaller factor between the ends, or fewer draws leave the matter undecided."""


def regret(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge each setting that was drawn for several horizons."""
    settings: dict[str, dict[int, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        parameters = dict(record.instance.parameters)
        horizon = parameters.pop("rounds", None)
        if record.policy == "mc-sf" and record.value is not None and horizon is not None:
            setting = f"{record.instance.family} {json.dumps(parameters, sort_keys=True)}"
            settings[setting][int(horizon)].append(record)
    for setting, runs in sorted(settings.items()):
        if len(runs) >= _LEAST_HORIZONS:
            yield _judged(setting, sorted(runs.items()))


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


def _judged(setting: str, runs: Sequence[tuple[int, list[Record]]]) -> Verdict:
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
        claim=f"The regret of mc-sf is bounded by a constant, on {setting}",
        source="jaillet-2025-v1 theorem 5.3",
        published="mean latency within a constant of the optimum, whatever the horizon",
        found=f"mean regret a request, in rounds, over {len(runs[-1][1])} draws: {said}"
        + (": what is certain of it grows with T" if grows else ""),
        verdict="refuted" if grows else "undecided",
        certificates=certificates_of(record for _, draws in reversed(runs) for record in draws),
    )


def _mean_difference(record: Record, by: int | None) -> Fraction | None:
    if record.value is None or by is None or not record.instance.requests:
        return None
    return Fraction(record.value - by, record.instance.requests)
