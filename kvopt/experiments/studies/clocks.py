"""The two clocks of a study: how a policy is run, certified and recorded on each.

Everything else about the work on an instance is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from kvopt.certificates import JudgedRun, certify
from kvopt.certificates.writing import certificate_text
from kvopt.errors import KvoptError
from kvopt.experiments.studies.tasks import Task
from kvopt.experiments.studies.times import Times
from kvopt.model.batch_time import BatchTime
from kvopt.model.instance import Instance
from kvopt.policies.registry import policy as policy_from
from kvopt.simulation.runs import Outcome, PolicyRun
from kvopt.simulation.seconds import simulate_seconds
from kvopt.simulation.seconds_run import SecondsRun
from kvopt.simulation.simulator import simulate

Run = PolicyRun | SecondsRun
Runs = Mapping[str, Run | str | None]
"""Result of each policy: its run, what went wrong, or None when time ran out."""


class Interrupted(KvoptError):
    """A signal ended the work: what was found until then is no result of the study."""


@dataclass(frozen=True)
class Sides:
    """What is known of the optimum of an instance.

    Parameters
    ----------
    upper, lower
        The optimum lies between them; None while a side is unknown.
    bounded_by, found_by
        Where they came from.
    text
        The certificate that proves both, None where none was asked for.
    """

    upper: int | None = None
    lower: int | None = None
    bounded_by: str | None = None
    found_by: str | None = None
    text: str | None = None


class StudyClock(Protocol):
    """What differs between rounds and seconds."""

    def run(self, instance: Instance, label: str, is_late: Callable[[], bool]) -> Run:
        """Simulate a policy."""

    def certified(self, instance: Instance, runs: Runs, task: Task) -> Sides:
        """Bound the optimum, and judge the runs."""

    def measures(self, run: Run) -> dict[str, Any]:
        """Return what a record says of a run."""


def study_clock(batch_time: BatchTime | None) -> StudyClock:
    """Return the clock of a study with this model, or the one of rounds."""
    return StudyInRounds() if batch_time is None else StudyInSeconds(batch_time)


def reached(runs: Runs, clock: StudyClock) -> Sides:
    """Return the best of the runs as all that is known, where nothing is bounded."""
    totals = {
        label: clock.measures(run)["value"]
        for label, run in runs.items()
        if isinstance(run, (PolicyRun, SecondsRun))
    }
    known = {label: total for label, total in totals.items() if total is not None}
    best = min(known, key=lambda label: known[label], default=None)
    return Sides() if best is None else Sides(upper=known[best], found_by=best)


class StudyInRounds:
    """The clock that counts rounds."""

    def run(self, instance: Instance, label: str, is_late: Callable[[], bool]) -> Run:
        """Simulate a policy."""
        return simulate(instance, policy_from(label), label, is_late)

    def certified(self, instance: Instance, runs: Runs, task: Task) -> Sides:
        """Bound the optimum, and judge the runs."""
        limits = task.limits
        found = certify(
            instance,
            [run for run in runs.values() if isinstance(run, PolicyRun)],
            task.source.reference(instance),
            time_limit=limits.time_limit,
            threads=limits.threads,
            seed=limits.seed,
            command=_command(task),
        )
        if found.signal_number is not None:
            raise Interrupted(f"signal {found.signal_number}")
        late = [JudgedRun(label, "unfinished") for label in _late(runs)]
        origin = found.provenance
        return Sides(
            found.objective,
            found.lower_bound,
            origin["bounded_by"],
            origin["found_by"],
            certificate_text(replace(found, runs=(*found.runs, *late))),
        )

    def measures(self, run: Run) -> dict[str, Any]:
        """Return what a record says of a run."""
        assert isinstance(run, PolicyRun)
        finished = run.schedule is not None
        return {
            "outcome": str(run.outcome),
            "value": run.objective,
            "evictions": run.evictions,
            "makespan": run.makespan if finished else None,
            "peak_memory": run.peak_memory,
        }


@dataclass(frozen=True)
class StudyInSeconds:
    """The clock of a batch-time model, in nanoseconds."""

    model: BatchTime

    def run(self, instance: Instance, label: str, is_late: Callable[[], bool]) -> Run:
        """Simulate a policy."""
        return simulate_seconds(instance, label, self.model, should_stop=is_late)

    def certified(self, instance: Instance, runs: Runs, task: Task) -> Sides:
        """Bound the optimum, and judge the runs."""
        from kvopt.certificates.seconds import certify_seconds
        from kvopt.certificates.seconds_writing import seconds_certificate_text

        found = certify_seconds(
            instance,
            self.model,
            [run for run in runs.values() if isinstance(run, SecondsRun)],
            time_limit=task.limits.time_limit,
            command=_command(task),
        )
        if found.interrupted:
            raise Interrupted("a signal")
        return Sides(
            found.objective_ns,
            found.lower_bound_ns,
            None if found.lower is None else "shares",
            found.provenance["found_by"],
            seconds_certificate_text(replace(found, unfinished=tuple(_late(runs)))),
        )

    def measures(self, run: Run) -> dict[str, Any]:
        """Return what a record says of a run."""
        assert isinstance(run, SecondsRun)
        finished = run.outcome is Outcome.COMPLETED
        return {
            "outcome": str(run.outcome),
            "value": run.objective_ns,
            "evictions": run.evictions,
            "makespan": run.makespan_ns if finished else None,
            "peak_memory": run.peak_memory,
            "times": Times.of(run),
        }


def _late(runs: Runs) -> Sequence[str]:
    return [label for label, run in runs.items() if run is None]


def _command(task: Task) -> str:
    return f"kvopt study {task.study}"
