"""Results for each number of machines, and the answer that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvopt import Certificate, Instance, InvalidInput, Scope, read_certificate, write_certificate
from kvopt.fleets.targets import Band, Measure, Target
from kvopt.incumbent.proofs import CheckedBound
from kvopt.problem.problem import Problem
from kvopt.show.dataframes import frame
from kvopt.show.summary import Facts, Summarised, counted, far_apart, relative_gap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


def bands_of(certificates: Mapping[int, Certificate], measure: Measure) -> tuple[Band, ...]:
    """Return the band that certificates prove for each number of workers.

    Fewer machines are never better: a bound holds for fewer too, and a schedule for more.
    """
    proved = [measure.band(certificates[count]) for count in sorted(certificates)]
    bands = []
    for band in proved:
        bounds = [b for b in proved if b.workers >= band.workers and b.lower is not None]
        best = [b for b in proved if b.workers <= band.workers and b.upper is not None]
        low = max(bounds, key=lambda b: (b.lower, b.workers), default=Band(0))
        up = min(best, key=lambda b: (b.upper, b.workers), default=Band(0))
        lower = replace(band, lower=low.lower, lower_from=low.lower_from, bounded_by=low.bounded_by)
        upper = replace(lower, upper=up.upper, upper_from=up.upper_from, found_by=up.found_by)
        bands.append(upper)
    return tuple(bands)


@dataclass(frozen=True, repr=False)
class FleetSizes(Summarised):
    """How many machines a target takes.

    Parameters
    ----------
    target
        The target of a fleet.
    bands
        The band of each number of machines, the fewest first.
    measure
        The measure of the problem, with the machines of a run to match, or its own.
    left
        Numbers of machines that were not evaluated, after Ctrl-C.
    signal_number
        The signal that ended the work, if any.
    gpus
        GPUs of a machine, None if unknown.
    formula
        With a service level arrival rate over service rate, rounded up: neither a bound nor known
        to suffice.
    """

    target: Target
    bands: tuple[Band, ...]
    measure: Measure
    left: tuple[int, ...] = ()
    signal_number: int | None = None
    gpus: int | None = None
    formula: int | None = None

    @property
    def instance(self) -> Instance:
        """The instance of the problem."""
        return self.measure.instance

    @property
    def scope(self) -> Scope:
        """Scope of the bounds."""
        return self.measure.problem.scope

    @property
    def machines(self) -> tuple[int | None, int | None]:
        """The fewest machines not ruled out, and the fewest that are known to be enough."""
        if not self.bands:
            return None, None
        excluded = [band.workers for band in self.bands if self.is_impossible(band)]
        return max(excluded, default=0) + 1, min(self._enough(), default=None)

    def _enough(self) -> dict[int, str]:
        """Return the numbers of machines known to be enough, and the run that shows it."""
        names = {} if self.target.run is None else dict([self.target.run])
        for band in self.bands:
            if self.is_reached(band):
                names[band.workers] = (band.found_by or "a schedule").removeprefix("policy ")
        return names

    def is_impossible(self, band: Band) -> bool:
        """Whether no schedule reaches the target with so many machines."""
        return band.lower is not None and band.lower > self.target.limit

    def is_reached(self, band: Band) -> bool:
        """Whether a schedule is known that reaches it."""
        return band.upper is not None and band.upper <= self.target.limit

    @property
    def needs(self) -> dict[str, int | None]:
        """The fewest machines on which each scheduler reached the target, None if on none."""
        enough = {
            label: [
                band.workers
                for band in self.bands
                if (value := band.runs.get(label)) is not None and value <= self.target.limit
            ]
            for label in self.labels
        }
        if self.target.run is not None:
            workers, label = self.target.run
            enough.setdefault(label, []).append(workers)
        return {label: min(counts, default=None) for label, counts in enough.items()}

    @property
    def answer(self) -> str:
        """Return the conclusions from the certificates, in sentences."""
        lowest, enough = self.machines
        if lowest is None:
            return "Nothing is known yet."
        proof = {band.workers: band.bounded_by for band in self.bands}.get(lowest - 1)
        claim = f"No number of machines is ruled out for {self.target.words}; "
        if lowest > 1:
            by = f", by {proof}" if proof else ""
            needed = self._counted(lowest)
            claim = f"Any covered scheduler needs at least {needed} for {self.target.words}{by}; "
        if enough is None:
            claim += "no schedule is known that does."
        else:
            run = f"a schedule is known that does ({self._enough()[enough]})"
            claim += f"with {self._counted(enough)} {run}{self._between(lowest, enough)}."
        claim += self._needed
        if self.formula is not None:
            machines = self._counted(self.formula)
            claim += f" The formula of planners makes {machines}, and proves nothing."
        return claim

    def _counted(self, machines: int) -> str:
        """Return a number of machines, and of their GPUs."""
        gpus = "" if self.gpus is None else f" ({counted(machines * self.gpus, 'GPU')})"
        return counted(machines, "machine") + gpus

    @property
    def _needed(self) -> str:
        """Return what each scheduler needs behind its best router, as a sentence."""
        largest = self._counted(max((band.workers for band in self.bands), default=0))
        best: dict[str, tuple[str, int | None]] = {}
        for label, count in sorted(self.needs.items(), key=lambda row: row[1] or math.inf):
            best.setdefault(label.rpartition(" + ")[2], (label, count))
        parts = [
            f"{label} needs {f'more than {largest}' if count is None else self._counted(count)}"
            for label, count in best.values()
        ]
        return f" As a scheduler, {'; '.join(parts)}." if parts else ""

    def _between(self, lowest: int, enough: int) -> str:
        """Return whether fewer machines than are known to be enough may be enough."""
        if lowest == enough:
            return ", so with hindsight that is the least"
        open_ = str(lowest) if lowest == enough - 1 else f"{lowest} to {enough - 1}"
        gaps = {band.workers: relative_gap(band.upper, band.lower) for band in self.bands}
        apart = far_apart(gaps.get(lowest))
        why = f", as with {counted(lowest, 'machine')} {apart}" if apart else ""
        return f", and whether {open_} can be enough is open{why}"

    @property
    def labels(self) -> list[str]:
        """Names of the schedulers with their routers, in the order in which they ran."""
        return list(dict.fromkeys(label for band in self.bands for label in band.runs))

    def facts(self) -> Facts:
        """Return the facts of a summary."""
        return {
            "instance": self.instance.name,
            "target": self.target.words,
            "answer": self.answer,
            **{
                f"{band.workers} machines": f"{self.measure.worded(band.lower, up=False)} to "
                f"{self.measure.worded(band.upper, up=True)}"
                for band in self.bands
            },
        }

    @property
    def footnote(self) -> str:  # type: ignore[override]
        """Sentence about the schedules that the bounds cover."""
        return self.scope.sentence

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt fleet --json`` prints."""
        return {
            "fleets": [vars(band) for band in self.bands],
            "machines": list(self.machines),
            "needs": self.needs,
            "formula": self.formula,
            "gpus": self.gpus,
            "target": self.target.limit,
            "target_said": self.target.words,
            "unit": self.measure.unit,
            "requests": len(self.instance),
            "instance": self.instance.hash,
            "scope": str(self.scope),
            "answer": self.answer,
            "left": list(self.left),
        }

    def _curves(self) -> dict[str, list[float | None]]:
        """Return both sides, then schedulers, over machines: means, or shares in percent."""
        sides = [(band.lower, band.upper) for band in self.bands]
        columns = {"lower": [low for low, _ in sides], "upper": [up for _, up in sides]}
        columns |= {label: [band.runs.get(label) for band in self.bands] for label in self.labels}
        return {
            name: [None if value is None else float(self.measure.mean(value)) for value in values]
            for name, values in columns.items()
        }

    def to_dataframe(self) -> DataFrame:
        """Return a row for each number of machines: means, in rounds or in seconds, or percent."""
        return frame({"workers": [band.workers for band in self.bands], **self._curves()})

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the measure against the number of machines, with schedulers.

        Parameters
        ----------
        ax
            Axes to draw on; by default a new figure.
        """
        from kvopt.show.plots import fleet_sizes
        from kvopt.show.plots.style import figure_of

        counts, curves = [band.workers for band in self.bands], self._curves()
        sides = list(zip(counts, curves.pop("lower"), curves.pop("upper"), strict=True))
        lines = {
            label: [
                (n, value) for n, value in zip(counts, values, strict=True) if value is not None
            ]
            for label, values in curves.items()
        }
        measure, target = self.measure, float(self.measure.mean(self.target.limit))
        return figure_of(fleet_sizes(sides, lines, target, measure.axis, ax, scale=measure.scale))


_SUFFIX = ".cert.json"


def read_folder(directory: Path, problem: Problem) -> dict[int, Certificate]:
    """Return the certificates of a folder by number of workers, each checked again.

    Raises
    ------
    InvalidInput
        For a certificate that is not true, or of another problem.
    """
    certificates: dict[int, Certificate] = {}
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        name = path.name.removesuffix(_SUFFIX)
        if not name.isdecimal():
            continue
        certificate = certificates[int(name)] = read_certificate(path)
        fleet = replace(problem, instance=replace(problem.instance, workers=int(name)))
        if other := difference(certificate, fleet):
            reason = f"is a certificate of another {other}: name another folder"
            raise InvalidInput(reason, field="--out", file=str(path))
    return certificates


def difference(certificate: Certificate, problem: Problem) -> str | None:
    """Return in what a certificate is of another problem, None if it is not."""
    slo = None if certificate.in_time is None else certificate.in_time.slo
    pairs = {
        "instance": (certificate.instance.hash, problem.instance.hash),
        "clock": (certificate.clock, problem.clock),
        "scope": (certificate.scope, problem.scope),
        "service level": (slo, problem.slo),
    }
    return next((name for name, (its, wanted) in pairs.items() if its != wanted), None)


def keep(directory: Path, certificate: Certificate) -> None:
    """Write a certificate."""
    directory.mkdir(parents=True, exist_ok=True)
    write_certificate(certificate, directory / f"{certificate.instance.workers}{_SUFFIX}")


def better(
    latest: Certificate, earlier: Certificate | None, bound: CheckedBound | None
) -> Certificate:
    """Return a certificate with the better sides of another one, and a bound if it is better."""
    facts = dict(latest.provenance)
    for other in (None if earlier is None else earlier.lower, bound):
        if other is not None and (latest.lower is None or other.value > latest.lower.value):
            latest, facts["bounded_by"] = replace(latest, lower=other), other.bounded_by
    if earlier is None:
        return replace(latest, provenance=facts)
    before, now = earlier.objective, latest.objective
    if before is not None and (now is None or before < now):
        latest = replace(latest, upper=earlier.upper)
        facts["found_by"] = earlier.provenance.get("found_by")
    in_time, before_levels = latest.in_time, earlier.in_time
    if in_time is not None and before_levels is not None:
        if before_levels.ceiling < in_time.ceiling:
            in_time = replace(in_time, ceiling=before_levels.ceiling, proof=before_levels.proof)
        if (before_levels.best_attained or 0) > (in_time.best_attained or 0):
            in_time = replace(in_time, best=before_levels.best)
            facts["attained_by"] = earlier.provenance.get("attained_by")
    return replace(latest, provenance=facts, in_time=in_time)
