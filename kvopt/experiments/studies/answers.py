"""What a study answers, in sentences that its certified intervals prove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial

from kvopt.experiments.studies.claims import Verdict
from kvopt.experiments.studies.intervals import (
    Interval,
    largest_of,
    mean_of,
    percents,
    ratio_of,
    rounded,
)
from kvopt.experiments.studies.records import Record, grouped
from kvopt.experiments.studies.worth import FamilyWorth, by_family, worths
from kvopt.show.summary import UNDECIDED, far_apart

_ALL = 4
"""Schedulers up to which each is named; of more, the one certain to be good and the worst."""


def answer(records: Sequence[Record], verdicts: Sequence[Verdict] = ()) -> list[str]:
    """Return the sentences: claims that were put to the test, then how good each scheduler is.

    Parameters
    ----------
    records
        Of the study.
    verdicts
        Published claims beside what was found.

    Returns
    -------
    list of str
        None where nothing completed and nothing was claimed.
    """
    said = [_claims(verdicts)] if verdicts else []
    scopes = grouped(records, lambda record: record.scope)
    for scope, mine in scopes.items():
        name = f"Scope {scope}: " if len(scopes) > 1 else ""
        said += [name + sentence for sentence in _of_schedulers(mine)]
    return said + [_worth(each) for each in by_family(worths(records))]


def _of_schedulers(records: Sequence[Record]) -> list[str]:
    """Return how good each scheduler is beside one optimum."""
    runs = grouped((r for r in records if r.policy is not None), lambda r: r.policy or "")
    counts = {name: sum(r.value is not None for r in mine) for name, mine in runs.items()}
    partly = [name for name, mine in runs.items() if counts[name] < len(mine)]
    judged = {
        name: known
        for name, mine in runs.items()
        if name not in partly and (known := [record for record in mine if ratio_of(record).least])
    }
    said = _judged(judged) if judged else []
    said += [
        f"{name} completed {counts[name]:,} of {len(runs[name]):,} runs." for name in partly[:_ALL]
    ]
    if rest := len(partly[_ALL:]):
        others = "1 other scheduler" if rest == 1 else f"{rest:,} other schedulers"
        said.append(f"{others} did not complete all of their runs.")
    return said


def left_out(records: Iterable[Record]) -> list[str]:
    """Return, for each trace, how many of its requests a study left out, and why."""
    found = {}
    for record in records:
        asked, name = record.instance.parameters, record.instance.name
        if asked.get("left_out"):
            total = record.instance.requests + asked["left_out"]
            why = f"they have more than {asked['max_total']:,} tokens (max_total)"
            found[name, why] = (
                f"{name}: {asked['left_out']:,} of {total:,} requests left out: {why}"
            )
        if asked.get("unread"):
            found[name, "unread"] = f"{name}: {asked['unread']:,} lines left out: no request"
    return list(found.values())


def _claims(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(each.verdict for each in verdicts)
    said = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())
    one = "published claim" if len(verdicts) == 1 else "published claims"
    sentence = f"Of {len(verdicts):,} {one}: {said}."
    failed = [each.claim for each in verdicts if each.verdict.startswith(("refuted", "not "))]
    return sentence + (f" Not upheld: {'; '.join(failed)}." if 0 < len(failed) <= _ALL else "")


def _worth(found: FamilyWorth) -> str:
    """Return by how much the optimum falls where schedules may do more."""
    count = len(found.instances)
    beside = f"{found.family}: with scope {found.scope} the optimum is {percents(found.mean)}"
    beside += " below that of runs"
    if count == 1:
        return f"{beside} on the one instance."
    largest = percents(found.largest)
    return f"{beside} on average over {count:,} instances, and {largest} where it is most."


def _judged(runs: dict[str, list[Record]]) -> list[str]:
    """Return what the ratios of each scheduler prove, on average and of any single run."""
    means = {name: mean_of(map(ratio_of, mine)) for name, mine in runs.items()}
    order = sorted(means, key=lambda name: (means[name].most is None, means[name].most or 0))
    if len(order) > _ALL:
        slowest = max(order, key=lambda name: means[name].least or Fraction())
        order = list(dict.fromkeys([order[0], slowest]))
    several = any(len(mine) > 1 for mine in runs.values())
    place = f"{'On average over' if several else 'On'} {_over([runs[name] for name in order])}"
    if all(mean.most is None for mean in means.values()):
        beside = "; ".join(f"{name} takes {_single(means[name].least)}" for name in order)
        said = [f"{place}, no bound on the optimum is known; {beside} the best schedule found."]
    else:
        first, *others = order
        parts = [f"{first} certainly takes {_times(means[first])} the least total latency possible"]
        parts += [f"{name} {_times(means[name], ' that')}" for name in others]
        said = [f"{place}, {'; '.join(parts)}."]
        if (width := means[first].width) and (apart := far_apart(float(width))):
            said.append(f"There {apart}: {UNDECIDED}.")
        if several:
            worst = ((largest_of(map(ratio_of, runs[name])), name) for name in order)
            each = "; ".join(
                f"at least {_rounded(ratio.least, up=False)} ({name})"
                if ratio.most is None
                else f"at most {_rounded(ratio.most, up=True)} ({name})"
                for ratio, name in worst
            )
            said.append(f"Of single runs the largest ratio is {each}.")
    if len(order) < len(runs):
        said.append(
            f"Of {len(runs):,} schedulers these have the least upper end and the largest lower end."
        )
    return said


def _over(runs: Sequence[Sequence[Record]]) -> str:
    """Return in words which instances schedulers met."""
    met = {frozenset(record.instance.hash for record in mine) for mine in runs}
    counts = sorted({len(each) for each in met})
    if len(met) > 1:
        span = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        return f"the instances that each scheduler met ({span})"
    if counts[0] == 1:
        return "the one instance"
    axes = []
    for key in ("memory", "rate", "workers"):
        keys = (record.instance.parameters for record in runs[0])
        values = {parameters[key] for parameters in keys if key in parameters}
        if len(values) > 1:
            axes.append(f"{key} {min(values):,} to {max(values):,}")
    return f"all {counts[0]:,} instances" + (f" ({', '.join(axes)})" if axes else "")


_rounded = partial(rounded, places=2)


def _single(ratio: Fraction | None) -> str:
    return f"{float(ratio or 0):,.2f} times"


def _times(ratio: Interval, that: str = "") -> str:
    """Return the ends of a ratio in words, rounded outward."""
    least, most = _rounded(ratio.least, up=False), _rounded(ratio.most, up=True)
    if ratio.most == 1:
        return f"exactly{that}"
    if ratio.most is None:
        return f"at least {least} times"
    if least == "1.00":
        return f"at most {most} times"
    return _single(ratio.most) if ratio.least == ratio.most else f"{least} to {most} times"
