"""What it is worth that schedules may do more: the optima of two scopes, side by side.

A schedule that starts runs and ends them is one that may pause, so both optima share what is known
of either: the wider one is not above any schedule of the narrower one, and the narrower one not
below any bound of the wider one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from kvopt.experiments.studies.intervals import Interval, largest_of, mean_of
from kvopt.experiments.studies.records import Record, StudiedInstance, grouped
from kvopt.problem.scopes import Scope


@dataclass(frozen=True)
class Worth:
    """Both optima of an instance.

    Parameters
    ----------
    instance
        The instance.
    scope
        The wider scope; the narrower one is ``runs``.
    runs, wider
        The intervals that hold the optima, in the unit of the clock.
    certificates
        Of the narrower scope, then of the wider one.
    """

    instance: StudiedInstance
    scope: Scope
    runs: Interval
    wider: Interval
    certificates: tuple[str | None, str | None]

    @property
    def share(self) -> Interval:
        """By which share of the optimum of runs the wider one is below it."""
        least = _saved(self.wider.most, self.runs.least)
        return Interval(
            None if least is None else max(least, Fraction()),
            _saved(self.wider.least, self.runs.most),
        )


@dataclass(frozen=True)
class FamilyWorth:
    """What a wider scope is worth on the instances of a family, on average and at most."""

    family: str
    scope: Scope
    instances: tuple[Worth, ...]

    @property
    def mean(self) -> Interval:
        """Mean share."""
        return mean_of(each.share for each in self.instances)

    @property
    def largest(self) -> Interval:
        """Largest share."""
        return largest_of(each.share for each in self.instances)


def worths(records: Iterable[Record]) -> list[Worth]:
    """Return a comparison for each instance that was certified with both scopes."""
    found = []
    for group in grouped((r for r in records if r.policy is not None), _work).values():
        scopes = {scope: sides[0] for scope, sides in grouped(group, _scope).items()}
        narrow = scopes.pop(Scope.RUNS, None)
        for scope, wide in sorted(scopes.items()):
            if narrow is not None and not Scope.RUNS.covers(scope):
                found.append(_worth(narrow, wide, scope))
    return found


def by_family(found: Iterable[Worth]) -> list[FamilyWorth]:
    """Return the comparisons of each family, or file, and scope."""
    groups: dict[tuple[str, Scope], list[Worth]] = {}
    for each in found:
        key = each.instance.family or each.instance.name, each.scope
        groups.setdefault(key, []).append(each)
    return [FamilyWorth(*key, tuple(group)) for key, group in groups.items()]


def _worth(narrow: Record, wide: Record, scope: Scope) -> Worth:
    uppers = [upper for upper in (narrow.upper, wide.upper) if upper is not None]
    lowers = [lower for lower in (narrow.lower, wide.lower) if lower is not None]
    return Worth(
        narrow.instance,
        scope,
        _interval(max(lowers, default=None), narrow.upper),
        _interval(wide.lower, min(uppers, default=None)),
        (narrow.certificate, wide.certificate),
    )


def _interval(lower: int | None, upper: int | None) -> Interval:
    return Interval(*(None if end is None else Fraction(end) for end in (lower, upper)))


def _saved(wider: Fraction | None, runs: Fraction | None) -> Fraction | None:
    return None if wider is None or not runs else 1 - wider / runs


def _scope(record: Record) -> Scope:
    return record.scope


def _work(record: Record) -> tuple[str, str]:
    """Return what two records share that differ in their scopes alone."""
    limits = {key: value for key, value in record.limits.items() if key != "scope"}
    return record.instance.hash, repr(sorted(limits.items()))
