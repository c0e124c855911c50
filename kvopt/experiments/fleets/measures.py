"""What is counted of fleets, the less the better: total latency, or misses of a deadline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from kvopt.bounds.deadlines import deadline_ceiling, least_times
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.volume import volume_bound
from kvopt.certificates.certificate import Certificate
from kvopt.experiments.fleets.targets import Target, latency_target, least_total, misses_target
from kvopt.problem.clocks import Clock, Seconds
from kvopt.problem.deadlines import Aim, Deadline, attained
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.timetable.runs import PolicyRun


@dataclass(frozen=True)
class Measure(ABC):
    """What is counted of a schedule.

    Parameters
    ----------
    instance
        The problem; its number of workers does not count.
    clock
        How long rounds last.
    """

    instance: Instance
    clock: Clock

    @abstractmethod
    def target(self, text: str) -> Target:
        """Return the target that a text says."""

    @abstractmethod
    def of_run(self, run: PolicyRun) -> int | None:
        """Return how much a run has, None where it never came to an end."""

    @abstractmethod
    def quick_bound(self, workers: int, scope: Scope) -> int:
        """Return what no schedule is below, by a bound that takes no time."""

    @abstractmethod
    def least(self) -> tuple[int, str]:
        """Return what there is where each request has a machine of its own, and say it."""

    @abstractmethod
    def lower(self, found: Certificate) -> int | None:
        """Return what no schedule is below, by a certificate."""

    @abstractmethod
    def upper(self, found: Certificate) -> int | None:
        """Return how much its best schedule has."""

    @abstractmethod
    def found_by(self, found: Certificate) -> str | None:
        """Return where that schedule is from."""

    @abstractmethod
    def runs(self, found: Certificate) -> dict[str, int | None]:
        """Return how much its runs have, by name."""

    @abstractmethod
    def worded(self, value: int | None, *, up: bool) -> str:
        """Return so much for a table, rounded outward."""

    @abstractmethod
    def shown(self, value: int) -> float:
        """Return so much in the unit of the picture."""

    name: ClassVar[str]
    """Of a column that has its least value."""
    scale: ClassVar[str]
    """Of the axis of a picture."""

    @property
    @abstractmethod
    def axis(self) -> str:
        """What the axis of a picture has."""

    @property
    @abstractmethod
    def unit(self) -> str:
        """Unit of values in JSON."""

    @property
    def within(self) -> str:
        """By when what should be there, in words, where that counts."""
        return ""

    @abstractmethod
    def said(self, target: Target) -> str:
        """Return a target in a line of its own."""


@dataclass(frozen=True)
class Latency(Measure):
    """Total latency, in units of the clock; tables have means."""

    name: ClassVar[str] = "mean"
    scale: ClassVar[str] = "log"

    @property
    def _words(self) -> str:
        return "rounds" if self.clock.is_even else "seconds"

    @property
    def axis(self) -> str:
        """What the axis of a picture has."""
        return f"mean latency, {self._words}"

    @property
    def unit(self) -> str:
        """Unit of values in JSON."""
        return "rounds" if self.clock.is_even else "ns"

    def target(self, text: str) -> Target:
        """Return the target that ``mean=5s`` says."""
        return latency_target(text, self.instance, self.clock)

    def of_run(self, run: PolicyRun) -> int | None:
        """Return the total latency of a run."""
        return run.objective

    def quick_bound(self, workers: int, scope: Scope) -> int:
        """Return the volume bound, in seconds that of the first shares."""
        fleet = replace(self.instance, workers=workers)
        if isinstance(self.clock, Seconds):
            model = self.clock.batch_time
            return seconds_bound(fleet, model, scope=scope, time_limit=0.0).value_ns
        return volume_bound(fleet)

    def least(self) -> tuple[int, str]:
        """Return the sum of what requests take alone."""
        total, unit = (
            least_total(self.instance, self.clock),
            "rounds" if self.clock.is_even else "s",
        )
        mean = self.worded(total, up=False)
        return total, f"a request with a machine of its own takes {mean} {unit} on average"

    def lower(self, found: Certificate) -> int | None:
        """Return the bound on total latency."""
        return found.lower_bound

    def upper(self, found: Certificate) -> int | None:
        """Return the least total latency known."""
        return found.objective

    def found_by(self, found: Certificate) -> str | None:
        """Return where the best schedule is from."""
        return found.provenance.get("found_by")

    def runs(self, found: Certificate) -> dict[str, int | None]:
        """Return total latencies by name."""
        return {run.policy: run.value for run in found.runs}

    @property
    def _of_a_mean(self) -> int:
        return max(len(self.instance), 1) * self.clock.scale

    def worded(self, value: int | None, *, up: bool) -> str:
        """Return the mean of a total, in rounds or seconds, rounded outward."""
        if value is None:
            return "-"
        unit = self._of_a_mean
        thousandths = -(-1000 * value // unit) if up else 1000 * value // unit
        return f"{thousandths // 1000:,}.{thousandths % 1000:03}"

    def shown(self, value: int) -> float:
        """Return the mean of a total."""
        return value / self._of_a_mean

    def said(self, target: Target) -> str:
        """Return the mean that is asked for."""
        return f"{self.worded(target.most, up=False)} {self._words} on average"


@dataclass(frozen=True)
class Misses(Measure):
    """Requests that do not attain a deadline; tables have shares.

    Parameters
    ----------
    deadline
        By when a request should be done.
    """

    deadline: Deadline

    name: ClassVar[str] = "misses"
    scale: ClassVar[str] = "linear"
    axis: ClassVar[str] = "misses, % of requests"
    unit: ClassVar[str] = "misses"

    @property
    def within(self) -> str:
        """By when what should be there, in words."""
        return f" {self.deadline.worded}"

    @cached_property
    def _allowed(self) -> list[int]:
        return self.deadline.allowed(self.instance, rounds=self.clock.is_even)

    @property
    def _model(self) -> Any:
        return self.clock.batch_time if isinstance(self.clock, Seconds) else None

    def target(self, text: str) -> Target:
        """Return the target that ``misses=1%`` says."""
        return misses_target(text, len(self.instance), self.deadline)

    def of_run(self, run: PolicyRun) -> int | None:
        """Return how many miss in a run."""
        if run.objective is None:
            return None
        first = self.deadline.aim is Aim.FIRST_TOKEN
        times = run.first_tokens if first else run.completions
        return len(self.instance) - attained(times, run.arrivals, self._allowed)

    def quick_bound(self, workers: int, scope: Scope) -> int:
        """Return how many miss by a ceiling of equal prices."""
        fleet, aim = replace(self.instance, workers=workers), self.deadline.aim
        found = deadline_ceiling(
            fleet, self._allowed, aim, self._model, scope=scope, time_limit=0.0
        )
        return len(self.instance) - found.value

    def least(self) -> tuple[int, str]:
        """Return how many miss even alone."""
        alone = least_times(self.instance, self.deadline.aim, self._model)
        late = sum(own > most for own, most in zip(alone, self._allowed, strict=True))
        share = self.worded(late, up=False)
        return late, (
            f"{late:,} of {len(self.instance):,} requests ({share}) take longer than their "
            "deadline with a machine of their own"
        )

    def lower(self, found: Certificate) -> int | None:
        """Return how many miss by the ceiling."""
        return None if found.in_time is None else len(self.instance) - found.in_time.ceiling

    def upper(self, found: Certificate) -> int | None:
        """Return how many miss in the run in which most attain."""
        if found.in_time is None or found.in_time.best_attained is None:
            return None
        return len(self.instance) - found.in_time.best_attained

    def found_by(self, found: Certificate) -> str | None:
        """Return where that run is from."""
        return found.provenance.get("attained_by")

    def runs(self, found: Certificate) -> dict[str, int | None]:
        """Return how many miss by name."""
        if found.in_time is None:
            return {}
        pairs = zip(found.runs, found.in_time.attained, strict=True)
        return {
            run.policy: None if count is None else len(self.instance) - count
            for run, count in pairs
        }

    def worded(self, value: int | None, *, up: bool) -> str:
        """Return the share of all requests, rounded outward."""
        if value is None:
            return "-"
        count = max(len(self.instance), 1)
        parts = -(-10_000 * value // count) if up else 10_000 * value // count
        return f"{parts // 100}.{parts % 100:02}%"

    def shown(self, value: int) -> float:
        """Return the share of all requests, in percent."""
        return 100 * value / max(len(self.instance), 1)

    def said(self, target: Target) -> str:
        """Return how many may miss."""
        return f"at most {target.most:,} of {len(self.instance):,} requests miss"


def measure_of(instance: Instance, clock: Clock, deadline: Deadline | None) -> Measure:
    """Return what is counted: without a deadline latency."""
    return Latency(instance, clock) if deadline is None else Misses(instance, clock, deadline)
