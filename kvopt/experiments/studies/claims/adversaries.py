"""Lower bounds on every online scheduler, and instances against single rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import log

from kvopt.experiments.studies.claims.verdict import Verdict, certificates_of, settled
from kvopt.experiments.studies.intervals import Interval, by_policy, ratio_of
from kvopt.experiments.studies.records import Record, grouped

_GROWING = 0.35
"""A slope of the logarithm of the ratio over that of n that counts as growth like sqrt(n)."""

_Ratio = Callable[[int], float]

_AGAINST_ONE_RULE: tuple[tuple[str, str, str, str, _Ratio], ...] = (
    ("thm-2.1", "mc-sf", "theorem 2.1", "M^(1/4) / 11", lambda memory: memory**0.25 / 11),
    ("thm-8.2", "mc-sf-total", "theorem 8.2", "2 sqrt(M) / 3", lambda memory: 2 * memory**0.5 / 3),
)
"""Claims of wang-2025: family, policy, place, and the least ratio, also in words."""

_AGAINST_ALL = (
    ("v1-thm-6.2", "deterministic", "jaillet-2025-v1 theorem 6.2"),
    ("v1-thm-6.4", "randomised", "jaillet-2025-v1 theorem 6.4"),
)
"""Family, the schedulers that it is against, and its source."""


def adversary(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge each game and each fixed construction."""
    completed = (record for record in records if record.value is not None)
    families = grouped(completed, lambda record: record.instance.family)
    yield from _square_root(families.get("thm-4.1", []))
    for family, policy, place, text, ratio in _AGAINST_ONE_RULE:
        runs = [r for r in families.get(family, []) if r.policy == policy and r.value]
        if len(runs) >= 2:
            runs.sort(key=lambda run: run.instance.memory)
            yield _against_one_rule(runs, family, f"wang-2025 {place}", text, ratio)
    for family, kind, source in _AGAINST_ALL:
        if family in families:
            yield _no_constant(families[family], kind, source)


def _square_root(runs: Iterable[Record]) -> Iterator[Verdict]:
    """Compare the certain ratio of the best policy with the root of n.

    The slope begins at the smallest size at which every policy is above the optimum.
    """
    judged = grouped((r for r in runs if ratio_of(r).least), lambda run: run.instance.requests)
    best = [(n, min(judged[n], key=lambda run: ratio_of(run).least or 0)) for n in sorted(judged)]
    ratios = [(n, ratio_of(run)) for n, run in best]
    hurt = [(n, ratio.least) for n, ratio in ratios if ratio.least and ratio.least > 1]
    if len(hurt) < 2:
        return
    (first, low), (last, high) = hurt[0], hurt[-1]
    slope = log(float(high / low)) / log(last / first)
    yield Verdict(
        "Every deterministic scheduler is at least c sqrt(n) times the optimum",
        "jaillet-2025-v2 theorem 4.1",
        "competitive ratio Omega(sqrt(n))",
        f"of the schedulers played, the one that does best: {_list(ratios)}; "
        f"slope of the logarithms from n = {first} on: {slope:.2f}",
        "reproduced" if slope >= _GROWING else "undecided",
        certificates_of(run for _, run in reversed(best)),
    )


def _against_one_rule(
    runs: Sequence[Record], family: str, source: str, text: str, printed: _Ratio
) -> Verdict:
    ratios = [(run.instance.memory, ratio_of(run)) for run in runs]
    grows = all(
        before.most is not None and after.least is not None and before.most < after.least
        for (_, before), (_, after) in pairwise(ratios)
    )
    below = [f"{m:,}" for m, ratio in ratios if ratio.most is not None and ratio.most < printed(m)]
    said = ": it grows, certified at each step" if grows else ""
    said += f"; for certain below what is printed at M = {', '.join(below)}" if below else ""
    return Verdict(
        f"{runs[0].policy} has no constant competitive ratio when prompts differ, by the "
        f"construction {family}",
        source,
        f"the ratio is at least {text}, so it grows without bound",
        _list(ratios, "M") + said,
        settled(agrees=grows, contradicts=bool(below)),
        certificates_of(reversed(runs)),
    )


def _no_constant(runs: Sequence[Record], kind: str, source: str) -> Verdict:
    """Report the measurement: no finite set of sizes decides a theorem about every constant."""
    rows = by_policy(runs)
    best, worst = (end(rows, key=lambda row: row.mean.least or 0) for end in (min, max))
    return Verdict(
        f"No {kind} scheduler has a constant competitive ratio",
        source,
        "no constant, independent of M",
        f"mean ratio of the best scheduler, {best.policy}, in {best.mean}, of the worst, "
        f"{worst.policy}, in {worst.mean}, over {len(best.records)} instances",
        "measured",
        certificates_of(runs),
    )


def _list(ratios: Sequence[tuple[int, Interval]], name: str = "n") -> str:
    return ", ".join(f"{ratio} at {name} = {size:,}" for size, ratio in ratios)
