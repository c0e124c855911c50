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
        scopes = {record.scope: record for record in reversed(group)}
        narrow = scopes.pop(Scope.RUNS, None)
        for scope, wide in sorted(scopes.items()):
            if narrow is None or Scope.RUNS.covers(scope):
                continue
            upper, lower = (
                end((value for value in both if value is not None), default=None)
                for end, both in (
                    (min, (narrow.upper, wide.upper)),
                    (max, (narrow.lower, wide.lower)),
                )
            )
            runs, wider = Interval.between(lower, narrow.upper), Interval.between(wide.lower, upper)
            certificates = narrow.certificate, wide.certificate
            found.append(Worth(narrow.instance, scope, runs, wider, certificates))
    return found


def by_family(found: Iterable[Worth]) -> list[FamilyWorth]:
    """Return the comparisons of each family, or file, and scope."""
    groups = grouped(found, lambda each: (each.instance.family or each.instance.name, each.scope))
    return [FamilyWorth(*key, tuple(group)) for key, group in groups.items()]


def _saved(wider: Fraction | None, runs: Fraction | None) -> Fraction | None:
    return None if wider is None or not runs else 1 - wider / runs


def _work(record: Record) -> tuple[str, str]:
    """Return what two records share that differ in their scopes alone."""
    limits = {key: value for key, value in record.limits.items() if key != "scope"}
    return record.instance.hash, repr(sorted(limits.items()))
