"""Claims about schedulers on backlogs: printed curves, words and a table.

chen-2025 section 6: schedulers that know an interval for each output.  wang-2025 section 7: short
and long prompts together; table 4: total latency of three schedulers on five distributions.
``printed.toml`` has the printed values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray
from verdicts import (
    PRINTED,
    Judgement,
    Verdict,
    beaten,
    certificates_of,
    grouped,
    rounded,
    settled,
    verdict_on,
)

from kvopt.studies import Record

Totals = NDArray[np.int64]


def chen(records: Sequence[Record], experiments: Sequence[int]) -> Iterator[Verdict]:
    """Judge experiments of chen-2025, and the remark that h-sf is a lower bound."""
    for number in experiments:
        source = f"chen-2025 section 6, experiment {number}, figure {4 + number}"
        yield from _compared(records, f"chen-{number}", source)
        if number == experiments[0]:
            yield from _lower_bound([r for r in records if r.policy == "h-sf"])


def mixed(records: Sequence[Record]) -> Iterator[Verdict]:
    """Test the claims of wang-2025 about the curves."""
    return _compared(records, "wang-mixed", "wang-2025 section 7, figures 8 and 10")


def _by_instance(records: Iterable[Record]) -> list[dict[str | None, Record]]:
    """Return for each instance the completed runs on it, by policy."""
    runs = (r for r in records if r.policy is not None and r.value is not None)
    groups = grouped(runs, lambda run: run.instance.hash).values()
    return [{run.policy: run for run in group} for group in groups]


def _compared(records: Sequence[Record], name: str, source: str) -> Iterator[Verdict]:
    """Judge claims on curves.

    Instances on which all policies agree, because no request has to wait, are ignored.  The papers
    measured seconds on data that are not public; a claim that fails on the stand-in is undecided,
    not refuted.
    """
    groups = _by_instance(records)
    busy = [group for group in groups if len({run.value for run in group.values()}) > 1]
    for said in PRINTED[name]:
        for policy, other in product(said["policies"], said["others"]):
            pairs = [
                (Fraction(runs[policy].value or 0, runs[other].value or 1), runs[policy])
                for runs in busy
                if {policy, other} <= runs.keys()
            ]
            if not pairs:
                continue
            pairs.sort(key=lambda pair: -pair[0])
            high, low = pairs[0][0], pairs[-1][0]
            ends = f"{rounded(low, up=False)} to {rounded(high, up=True)}"
            clock = "seconds" if pairs[0][1].in_seconds else "rounds"
            least, most = Fraction(said.get("least", 0)), Fraction(said.get("most", high))
            named = PRINTED["names"].get(other, other)
            yield Verdict(
                said["claim"].format(policy=policy, other=named),
                source,
                said["published"],
                f"{policy} is {ends} times {other}, in {clock}, on {len(pairs)} instances",
                "reproduced" if least <= low and high <= most else "undecided",
                certificates_of(mine for _, mine in pairs),
            )


def _lower_bound(records: Iterable[Record]) -> Iterator[Verdict]:
    """Judge the remark that h-sf serves as a lower bound on achievable latency."""
    runs = {r.instance.hash: r for r in records if r.value is not None}
    better = beaten(runs.values())
    optimal = sum(run.value == run.lower for run in runs.values())
    verdict: Judgement = "reproduced" if optimal == len(runs) else "undecided"
    if runs:
        yield verdict_on(
            "lower-bound",
            f"a schedule is better on {len(better)} of {len(runs)} instances; "
            f"h-sf is optimal on {optimal}",
            "refuted" if better else verdict,
            better,
        )


_POLICIES = ("sorted-lp", "sorted-f:phase1=swap", "lp-swap")
"""Policies of the table, in the order of its columns."""

_FACTOR = 2
"""From this factor between both on, single draws refute the printed mean."""
_LEAST_DRAWS = 5
"""Least number of draws that decide an order."""


def table_4(records: Sequence[Record]) -> Iterator[Verdict]:
    """Judge each row of the table."""
    for family, printed in PRINTED["wang-table-4"].items():
        runs = [r for r in records if r.instance.family == family and r.policy in _POLICIES]
        whole = [found for found in _by_instance(runs) if len(found) == len(_POLICIES)]
        if not whole:
            continue
        rows = np.array([[found[policy].value for policy in _POLICIES] for found in whole])
        said = f"{_named(rows.mean(axis=0))}, over {len(rows)} draws"
        yield _possible(family, runs, rows, printed, said)
        order = " < ".join(policy for _, policy in sorted(zip(printed, _POLICIES, strict=True)))
        verdict = _order(rows, printed)
        yield verdict_on("table-4-order", said, verdict, runs, family=family, order=order)


def _possible(
    family: str,
    runs: Sequence[Record],
    rows: Totals,
    printed: Sequence[float],
    said: str,
) -> Verdict:
    """Compare printed values with the least bound and the best schedules."""
    least = min((r.lower for r in runs if r.lower is not None), default=None)
    most = max((r.upper for r in runs if r.upper is not None), default=None)
    is_above = least is not None and least > _FACTOR * max(printed)
    is_below = _FACTOR * rows.max() < min(printed)
    if least is not None and most is not None:
        said += f"; every optimum is in [{least:,}, {most:,}]"
    if is_above:
        said += ": no schedule of any draw comes near what is printed"
    elif is_below:
        said += ": the worst run of any draw is far below what is printed"
    verdict = settled(agrees=False, contradicts=is_above or is_below)
    return verdict_on("table-4", said, verdict, runs, family=family, means=_named(printed))


def _order(rows: Totals, printed: Sequence[float]) -> Judgement:
    """Compare the order, pair by pair; a pair counts if it exceeds the scatter of draws.

    One is better than another if it saves more than four standard errors.
    """
    if len(rows) < _LEAST_DRAWS:
        return "undecided"
    saved = rows[:, np.newaxis] - rows[:, :, np.newaxis]  # matched by draw
    better = saved.mean(axis=0) > 4 * saved.std(axis=0, ddof=1) / np.sqrt(len(rows))
    claimed = np.less.outer(printed, printed)
    return settled(agrees=better[claimed].all(), contradicts=better[claimed.T].any())


def _named(numbers: Iterable[float]) -> str:
    pairs = zip(_POLICIES, numbers, strict=True)
    return ", ".join(f"{policy} {number:,.1f}" for policy, number in pairs)
