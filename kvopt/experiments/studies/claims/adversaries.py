"""Lower bounds on what an online scheduler can do, and instances against single rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import log

from kvopt.experiments.studies.claims.verdict import Judgement, Verdict, certificates_of
from kvopt.experiments.studies.intervals import Interval, mean_of, ratio_of
from kvopt.experiments.studies.records import Record

_GROWING = 0.35
"""A slope of the logarithm of the ratio over that of n that counts as growth like sqrt(n)."""


@dataclass(frozen=True)
class _Printed:
    """What a paper says that a construction reaches."""

    text: str
    ratio: Callable[[int], float]


_ELEVENTH = _Printed("the ratio is at least M^(1/4) / 11", lambda memory: memory**0.25 / 11)
_THIRDS = _Printed("the ratio is at least 2 sqrt(M) / 3", lambda memory: 2 * memory**0.5 / 3)


def adversary(records: Sequence[Record]) -> list[Verdict]:
    """Judge each game and each fixed construction."""
    return [
        *_square_root(records),
        *_against_one_rule(records, "thm-2.1", "mc-sf", "wang-2025 theorem 2.1", _ELEVENTH),
        *_against_one_rule(records, "thm-8.2", "mc-sf-total", "wang-2025 theorem 8.2", _THIRDS),
        *_no_constant(records, "v1-thm-6.2", "deterministic", "jaillet-2025-v1 theorem 6.2"),
        *_no_constant(records, "v1-thm-6.4", "randomised", "jaillet-2025-v1 theorem 6.4"),
    ]


def _square_root(records: Sequence[Record]) -> list[Verdict]:
    """Compare the certain ratio of the policy that does best with the root of n.

    The slope is taken from the smallest size at which every policy is hurt.
    """
    best = _best_by_size(records, "thm-4.1")
    hurt = [(n, run) for n, run in best if (ratio_of(run).least or 0) > 1]
    if len(hurt) < 2:
        return []
    (first, low), (last, high) = hurt[0], hurt[-1]
    ratios = [(n, ratio_of(run)) for n, run in best]
    a, b = ratio_of(low).least, ratio_of(high).least
    slope = log(float(b / a)) / log(last / first) if a and b else 0.0
    verdict: Judgement = "reproduced" if slope >= _GROWING else "undecided"
    return [
        Verdict(
            claim="Every deterministic scheduler is at least c sqrt(n) times the optimum",
            source="jaillet-2025-v2 theorem 4.1",
            published="competitive ratio Omega(sqrt(n))",
            found=f"of the schedulers played, the one that does best: {_list(ratios)}; "
            f"slope of the logarithms from n = {first} on: {slope:.2f}",
            verdict=verdict,
            certificates=certificates_of(run for _, run in reversed(best)),
        )
    ]


def _best_by_size(records: Sequence[Record], game: str) -> list[tuple[int, Record]]:
    """Return the run with the smallest certain ratio for each number of requests."""
    found: dict[int, Record] = {}
    for record in records:
        least = ratio_of(record).least
        if record.instance.family != game or least is None:
            continue
        known = found.get(record.instance.requests)
        if known is None or least < (ratio_of(known).least or 0):
            found[record.instance.requests] = record
    return sorted(found.items())


def _against_one_rule(
    records: Sequence[Record], family: str, policy: str, source: str, printed: _Printed
) -> list[Verdict]:
    runs = sorted(
        (r for r in records if r.instance.family == family and r.policy == policy and r.value),
        key=lambda record: record.instance.memory,
    )
    if len(runs) < 2:
        return []
    ratios = [(run.instance.memory, ratio_of(run)) for run in runs]
    ends = [ratio for _, ratio in ratios]
    grows = all(
        before.most is not None and after.least is not None and before.most < after.least
        for before, after in pairwise(ends)
    )
    below = [m for m, ratio in ratios if ratio.most is not None and ratio.most < printed.ratio(m)]
    said = ": it grows, certified at each step" if grows else ""
    if below:
        said += f"; for certain below what is printed at M = {', '.join(f'{m:,}' for m in below)}"
    verdict: Judgement = "reproduced" if grows else "undecided"
    return [
        Verdict(
            claim=f"{policy} has no constant competitive ratio when prompts differ, by the "
            f"construction {family}",
            source=source,
            published=f"{printed.text}, so it grows without bound",
            found=f"{_list(ratios, 'M')}{said}",
            verdict="not reproduced as printed" if below else verdict,
            certificates=certificates_of(reversed(runs)),
        )
    ]


def _no_constant(records: Sequence[Record], family: str, kind: str, source: str) -> list[Verdict]:
    """Say what was measured: a theorem about every constant is not settled by sizes."""
    policies: dict[str, list[Interval]] = {}
    runs = [r for r in records if r.instance.family == family and r.value is not None]
    for run in runs:
        policies.setdefault(run.policy or "", []).append(ratio_of(run))
    if not policies:
        return []
    means = {policy: mean_of(ratios) for policy, ratios in policies.items()}
    best = min(means, key=lambda policy: means[policy].least or Fraction(0))
    worst = max(means, key=lambda policy: means[policy].least or Fraction(0))
    return [
        Verdict(
            claim=f"No {kind} scheduler has a constant competitive ratio",
            source=source,
            published="no constant, independent of M",
            found=f"mean ratio of the best scheduler, {best}, in {means[best]}, of the worst, "
            f"{worst}, in {means[worst]}, over {len(policies[best])} instances",
            verdict="measured",
            certificates=certificates_of(runs),
        )
    ]


def _list(ratios: Sequence[tuple[int, Interval]], name: str = "n") -> str:
    return ", ".join(f"{ratio} at {name} = {size:,}" for size, ratio in ratios)
