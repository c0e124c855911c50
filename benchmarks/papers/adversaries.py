"""Lower bounds on every online scheduler, and instances against single rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import log

from verdicts import Verdict, grouped, settled, verdict_on

from kvopt.studies import Interval, Record, by_policy, ratio_of

_GROWING = 0.35
"""A slope of the logarithm of the ratio over that of n that counts as growth like sqrt(n)."""

_Ratio = Callable[[int], float]

_AGAINST_ONE_RULE: dict[str, tuple[str, _Ratio]] = {
    "thm-2.1": ("mc-sf", lambda memory: memory**0.25 / 11),
    "thm-8.2": ("mc-sf-total", lambda memory: 2 * memory**0.5 / 3),
}
"""Claims of wang-2025 by family: the policy, and the least ratio."""

_AGAINST_ALL = ("v1-thm-6.2", "v1-thm-6.4")
"""Families against every scheduler."""


def adversary(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge each game and each fixed construction."""
    completed = (record for record in records if record.value is not None)
    families = grouped(completed, lambda record: record.instance.family)
    yield from _square_root(families.get("thm-4.1", []))
    for family, (policy, ratio) in _AGAINST_ONE_RULE.items():
        runs = [r for r in families.get(family, []) if r.policy == policy and r.value]
        if len(runs) >= 2:
            runs.sort(key=lambda run: run.instance.memory)
            yield _against_one_rule(runs, family, ratio)
    for family in _AGAINST_ALL:
        if family in families:
            yield _no_constant(families[family], family)


def _square_root(runs: Iterable[Record]) -> Iterator[Verdict]:
    """Compare the certain ratio of the best policy with the root of n.

    The slope begins at the smallest size at which every policy is above the optimum.
    """
    judged = grouped((r for r in runs if ratio_of(r).lower), lambda run: run.instance.requests)
    best = [(n, min(judged[n], key=lambda run: ratio_of(run).lower or 0)) for n in sorted(judged)]
    ratios = [(n, ratio_of(run)) for n, run in best]
    hurt = [(n, ratio.lower) for n, ratio in ratios if ratio.lower and ratio.lower > 1]
    if len(hurt) < 2:
        return
    (first, low), (last, high) = hurt[0], hurt[-1]
    slope = log(float(high / low)) / log(last / first)
    yield verdict_on(
        "thm-4.1",
        f"of the schedulers played, the one that does best: {_list(ratios)}; "
        f"slope of the logarithms from n = {first} on: {slope:.2f}",
        "reproduced" if slope >= _GROWING else "undecided",
        (run for _, run in reversed(best)),
    )


def _against_one_rule(runs: Sequence[Record], family: str, printed: _Ratio) -> Verdict:
    ratios = [(run.instance.memory, ratio_of(run)) for run in runs]
    grows = all(
        before.upper is not None and after.lower is not None and before.upper < after.lower
        for (_, before), (_, after) in pairwise(ratios)
    )
    below = [
        f"{m:,}" for m, ratio in ratios if ratio.upper is not None and ratio.upper < printed(m)
    ]
    said = ": it grows, certified at each step" if grows else ""
    said += f"; for certain below what is printed at M = {', '.join(below)}" if below else ""
    verdict = settled(agrees=grows, contradicts=bool(below))
    return verdict_on(family, _list(ratios, "M") + said, verdict, reversed(runs))


def _no_constant(runs: Sequence[Record], family: str) -> Verdict:
    """Report the measurement: no finite set of sizes decides a theorem about every constant."""
    rows = by_policy(runs)
    best, worst = (end(rows, key=lambda row: row.mean.lower or 0) for end in (min, max))
    return verdict_on(
        family,
        f"mean ratio of the best scheduler, {best.policy}, in {best.mean}, of the worst, "
        f"{worst.policy}, in {worst.mean}, over {len(best.records)} instances",
        "measured",
        runs,
    )


def _list(ratios: Sequence[tuple[int, Interval]], name: str = "n") -> str:
    return ", ".join(f"{ratio} at {name} = {size:,}" for size, ratio in ratios)
