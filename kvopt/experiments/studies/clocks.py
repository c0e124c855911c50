"""The clock of a study: how a policy is run, certified and recorded on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from kvopt.certificates import Certificate, JudgedRun, certify
from kvopt.certificates.judged import UNFINISHED
from kvopt.certificates.writing import certificate_text
from kvopt.experiments.studies.tasks import Task
from kvopt.experiments.studies.times import Times
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.instance import Instance
from kvopt.simulate.routers.labels import parts_of
from kvopt.simulate.running import run
from kvopt.timetable.runs import Outcome, PolicyRun

Result = PolicyRun | str | None
"""What became of a policy: its run, what went wrong, or None when time ran out."""
Runs = Mapping[str, Result]


@dataclass(frozen=True)
class KnownSides:
    """What is known of the optimum of an instance.

    Parameters
    ----------
    upper, lower
        The optimum lies between them; None while a side is unknown.
    bounded_by, found_by
        Where they came from.
    text
        The certificate that proves both, None where none was asked for.
    ceiling, best_attained
        How many requests attain a deadline at most, and in the best run known.
    attained
        The same of each policy.
    slower
        How much slower a machine may be at most on which a schedule is as good, by policy.
    is_interrupted
        Whether a signal ended the search for them.
    """

    upper: int | None = None
    lower: int | None = None
    bounded_by: str | None = None
    found_by: str | None = None
    text: str | None = None
    ceiling: int | None = None
    best_attained: int | None = None
    attained: Mapping[str, int | None] = field(default_factory=dict)
    slower: Mapping[str, float] = field(default_factory=dict)
    is_interrupted: bool = False


@dataclass(frozen=True)
class StudyClock:
    """What a study does with an instance, on one clock."""

    clock: Clock

    def run(self, instance: Instance, label: str, is_late: Callable[[], bool]) -> PolicyRun:
        """Simulate a policy."""
        router, policy = parts_of(label)
        return run(
            instance, policy, router=router, clock=self.clock, label=label, should_stop=is_late
        )

    def certified(
        self, instance: Instance, runs: Runs, task: Task, seconds: float = inf
    ) -> KnownSides:
        """Bound the optimum within the limit, or within some seconds, and judge the runs."""
        limits = task.limits
        found = certify(
            instance,
            [run for run in runs.values() if isinstance(run, PolicyRun)],
            task.source.reference(instance) if self.clock.is_even else None,
            clock=self.clock,
            deadline=limits.deadline,
            time_limit=min(limits.time_limit, seconds),
            scope=limits.scope,
            threads=limits.threads,
            seed=limits.seed,
            slower=limits.slower,
            command=f"kvopt study {task.study}",
        )
        late = [JudgedRun(label, UNFINISHED) for label, run in runs.items() if run is None]
        in_time = found.in_time
        if in_time is not None:
            in_time = replace(in_time, attained=(*in_time.attained, *(None for _ in late)))
        found = replace(found, runs=(*found.runs, *late), in_time=in_time)
        return KnownSides(
            found.objective,
            found.lower_bound,
            None if found.lower is None else found.lower.bounded_by,
            found.provenance["found_by"],
            certificate_text(found),
            None if in_time is None else in_time.ceiling,
            None if in_time is None else in_time.best_attained,
            {}
            if in_time is None
            else dict(zip((run.policy for run in found.runs), in_time.attained, strict=True)),
            _slower(found) if limits.slower else {},
            found.signal_number is not None,
        )

    def measures(self, run: PolicyRun) -> dict[str, Any]:
        """Return what a record says of a run."""
        finished = run.outcome is Outcome.COMPLETED
        said = {
            "outcome": str(run.outcome),
            "value": run.objective,
            "evictions": run.evictions,
            "makespan": run.makespan if finished else None,
            "peak_memory": run.peak_memory,
            "note": run.note,
        }
        return said if self.clock.is_even else {**said, "times": Times.of(run)}


def _slower(found: Certificate) -> dict[str, float]:
    known = ((run.policy, found.slower_than(run)) for run in found.runs)
    return {policy: float(phi) for policy, phi in known if phi is not None}


def study_clock(batch_time: BatchTime | None) -> StudyClock:
    """Return the clock of a study with this model, or the one of rounds."""
    return StudyClock(ROUNDS if batch_time is None else Seconds(batch_time))


def reached(runs: Runs) -> KnownSides:
    """Return the best of the runs as all that is known, where nothing is bounded."""
    known = {
        label: run.objective
        for label, run in runs.items()
        if isinstance(run, PolicyRun) and run.objective is not None
    }
    best = min(known, key=lambda label: known[label], default=None)
    return KnownSides() if best is None else KnownSides(upper=known[best], found_by=best)
