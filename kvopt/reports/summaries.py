"""What the runs of one policy on one family come to."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from kvopt.experiments.studies.intervals import Interval, largest_of, mean_of
from kvopt.reports.quantiles import mean_width, quantile_of
from kvopt.reports.study import Run, Study

_MANY = 5
_HALF, _MOST = Fraction(1, 2), Fraction(95, 100)


@dataclass(frozen=True)
class Group:
    """The runs of one policy on one family within the same limits.

    Parameters
    ----------
    family, policy
        What they have in common.
    limits
        Limits of the search for optima where the study has several, else empty.
    runs
        All of them, completed or not.
    """

    family: str
    policy: str
    limits: str
    runs: tuple[Run, ...]

    @property
    def label(self) -> str:
        """The policy, with its limits where these differ."""
        return f"{self.policy}, {self.limits}" if self.limits else self.policy

    @property
    def ratios(self) -> list[Interval]:
        """Of runs that completed; an optimum of 0 has no ratio and is left out."""
        return [run.ratio for run in self.runs if run.ratio is not None and run.ratio.least]

    @property
    def are_many(self) -> bool:
        """Whether pictures of single runs tell more than the table."""
        return len(self.ratios) >= _MANY

    @property
    def mean(self) -> Interval:
        """Mean ratio."""
        return mean_of(self.ratios)

    @property
    def median(self) -> Interval:
        """Ratio that half of the runs do not exceed."""
        return quantile_of(self.ratios, _HALF)

    @property
    def high(self) -> Interval:
        """Ratio that 95% of the runs do not exceed."""
        return quantile_of(self.ratios, _MOST)

    @property
    def worst(self) -> Interval:
        """Largest ratio."""
        return largest_of(self.ratios)

    @property
    def width(self) -> Fraction | None:
        """Mean width of the intervals, as a share of their upper end: the mean gap."""
        return mean_width(self.ratios)

    @property
    def optimal(self) -> int:
        """Runs that are proved to be optimal."""
        return sum(ratio.most == 1 for ratio in self.ratios)

    @property
    def beaten(self) -> int:
        """Runs that are proved not to be optimal."""
        return sum(ratio.least is not None and ratio.least > 1 for ratio in self.ratios)

    def ended(self, outcome: str) -> int:
        """Return how many runs ended like this."""
        return sum(run.record.outcome == outcome for run in self.runs)

    @property
    def evictions(self) -> int:
        """Evictions in all runs."""
        return sum(run.record.evictions for run in self.runs)


def groups(study: Study) -> list[Group]:
    """Return the groups of a study: family by family, the least mean ratio first."""
    unequal = _unequal(study)
    found: dict[tuple[str, str, str], list[Run]] = {}
    for run in study.runs:
        record = run.record
        limits = ", ".join(f"{name} {record.limits.get(name)}" for name in unequal)
        heading = record.instance.family or ""
        found.setdefault((heading, record.policy or "", limits), []).append(run)
    made = [Group(*key, tuple(runs)) for key, runs in found.items()]
    return sorted(made, key=_order)


def _unequal(study: Study) -> list[str]:
    """Return the names of limits that are not the same for all runs."""
    found: dict[str, set[str]] = {}
    for run in study.runs:
        for name, value in run.record.limits.items():
            found.setdefault(name, set()).add(str(value))
    return sorted(name for name, values in found.items() if len(values) > 1)


def _order(group: Group) -> tuple[str, bool, Fraction, str]:
    average = group.mean.least
    return group.family, average is None, average or Fraction(0), group.label
