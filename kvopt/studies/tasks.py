"""Tasks of a study: an instance, the policies that run on it, and limits.

A task is run from its instance to its records and a certificate that was verified.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kvopt import Certificate, Instance, KvoptError, Outcome, PolicyRun, Scope, certify, run
from kvopt.certificates.certificate_files import certificate_text
from kvopt.errors import Stopped
from kvopt.kernels.budget import wall_time
from kvopt.kernels.extensions import import_modules
from kvopt.kernels.solver_versions import versions
from kvopt.simulate.routers import parts_of
from kvopt.studies.description import Study, TaskLimits
from kvopt.studies.record_lines import Record, StudiedInstance, Times, record_key
from kvopt.studies.sources import Entry
from kvopt.verify import verify_text
from kvopt.version import __version__


@dataclass(frozen=True)
class Task:
    """One instance with the policies that run on it.

    ``source`` draws the instance, which records describe as ``instance``; ``modules`` are imported
    first, and ``study`` is the name of the study.
    """

    study: str
    source: Entry
    policies: tuple[str, ...]
    limits: TaskLimits
    modules: tuple[str, ...]
    instance: StudiedInstance

    def key(self, policy: str | None) -> str:
        """Return the key of a record; the failure of the whole task has that of all policies."""
        content = self.instance.hash if policy else f"{self.instance.hash} of {self.policies}"
        return record_key(content, policy, self.limits.to_json(), __version__)

    def record(
        self, policy: str | None, instance: StudiedInstance, seconds: float, **fields: Any
    ) -> Record:
        """Return a record of this task."""
        return Record(
            key=self.key(policy),
            study=self.study,
            instance=instance,
            policy=policy,
            limits=self.limits.to_json(),
            seconds=round(seconds, 3),
            versions=versions(),
            **fields,
        )

    def failure(self, error: str, seconds: float) -> Record:
        """Return the record of an instance that failed as a whole."""
        return self.record(None, self.instance, seconds, outcome="error", error=error)


def tasks_of(study: Study, limit: int | None = None) -> Iterator[Task]:
    """Yield the tasks of a study, each once: the first ``limit`` draws of each entry.

    Equal instances count once, also in different entries.
    """
    planned: set[str] = set()
    for entry in study.entries:
        for source in entry.sources(limit):
            instance = source.described(source.instance())
            for limits in study.limits:
                policies = entry.policies or ()
                task = Task(study.name, source, policies, limits, study.modules, instance)
                new = tuple(p for p in policies if task.key(p) not in planned)
                planned.update(map(task.key, new))
                if new:
                    yield replace(task, policies=new)


FOLDER = "certificates"

Result = PolicyRun | str
"""Result of a policy: its run, perhaps ended by the limit, or its error."""

Announce = Callable[[str, float], None]
"""Called with the step that begins, and the seconds within which it should end."""

_PATIENCE = 1.5
"""Multiple of its limit after which a policy counts as hung: it can stop between rounds only."""
_SLACK = 30.0
"""Seconds beyond a limit for work other than search: loading, ending a solver."""
_COMPILING = 240.0
"""Seconds beyond the limit for compilation, which limits do not count, on a busy machine."""
_VERIFYING = 900.0
"""Seconds after which the verifier counts as hung; its own limits end it within minutes."""


@dataclass(frozen=True)
class TaskResult:
    """One record for each policy, or a single one with the error.

    ``certificate`` is the text of the certificate whose path they name.
    """

    records: tuple[Record, ...]
    certificate: str | None = None


class Unverified(KvoptError):
    """The verifier refuses a certificate."""


def run_task(task: Task, skip: Mapping[str, str], announce: Announce) -> TaskResult:
    """Draw the instance, run its policies, certify, verify.

    Policies to ``skip`` are known to fail, for a reason.  ``announce`` is called before each step,
    so that a step that hangs can be ended from outside.
    """
    began = time.monotonic()
    limits = task.limits
    announce("instance", limits.policy_time_limit + _SLACK)
    import_modules(task.modules)
    instance = task.source.instance()
    if not limits.scope.covers(Scope.SHARING):  # else the bounds would not cover the runs
        instance = instance.without_prefixes()
    runs: dict[str, Result] = {}
    for label in task.policies:
        if label not in skip:
            announce(f"policy {label}", _PATIENCE * limits.policy_time_limit + 1)
        runs[label] = skip.get(label) or _run(limits, instance, label)
    certificate = text = path = None
    if limits.certify:
        announce("certify", limits.time_limit + _SLACK + _COMPILING)
        certificate = certify(
            instance,
            [run for run in runs.values() if isinstance(run, PolicyRun)],
            clock=limits.clock,
            slo=limits.slo,
            time_limit=limits.time_limit,
            scope=limits.scope,
            threads=limits.threads,
            seed=limits.seed,
            command=f"kvopt study {task.study}",
        )
        if certificate.signal_number is not None:
            raise KeyboardInterrupt  # what a signal cut short is not the result of the limits
        text = certificate_text(certificate)
        announce("verify", _VERIFYING)
        require_valid(text)
        key = task.key("\n".join(task.policies))
        path = f"{FOLDER}/{key.removeprefix('sha256:')[:32]}.json"
    seconds, described = time.monotonic() - began, task.source.described(instance)
    records = []
    for label, result in runs.items():
        optimum = _best_of(runs) if certificate is None else _optimum(certificate, label)
        fields = {"certificate": path, **optimum, **_measures(result)}
        records.append(task.record(label, described, seconds, **fields))
    return TaskResult(tuple(records), text)


def _run(limits: TaskLimits, instance: Instance, label: str) -> Result:
    """Return the run of a policy, or its error."""
    end = wall_time() + limits.policy_time_limit
    router, policy = parts_of(label)
    try:
        return run(
            instance,
            policy,
            router=router,
            clock=limits.clock,
            slo=limits.slo,
            label=label,
            should_stop=lambda: wall_time() > end,
        )
    except Stopped:
        return PolicyRun.unknown(instance, label, Outcome.UNFINISHED, limits.clock)
    except Exception as error:  # code of users may raise anything
        return f"{type(error).__name__}: {error}"


def _optimum(certificate: Certificate, label: str) -> dict[str, Any]:
    """Return the optimum fields of the record of a policy."""
    in_time, lower = certificate.in_time, certificate.lower
    fields = {
        "upper": certificate.objective,
        "lower": certificate.lower_bound,
        "bounded_by": lower and lower.bounded_by,
        "found_by": certificate.provenance["found_by"],
        "ceiling": in_time and in_time.ceiling,
        "best_attained": in_time and in_time.best_attained,
    }
    for judged, attained in zip(certificate.runs, certificate.attained, strict=True):
        if judged.policy == label:
            fields["attained"] = attained
    return fields


def _best_of(runs: Mapping[str, Result]) -> dict[str, Any]:
    """Return the best of the runs as a result without a bound."""
    ended = (
        run for run in runs.values() if isinstance(run, PolicyRun) and run.objective is not None
    )
    best = min(ended, key=lambda run: run.objective or 0, default=None)
    return {} if best is None else {"upper": best.objective, "found_by": best.policy}


def _measures(run: Result) -> dict[str, Any]:
    """Return the run fields of a record."""
    if isinstance(run, str):
        return {"outcome": "error", "error": run}
    if run.outcome is Outcome.UNFINISHED:
        return {"outcome": str(run.outcome)}
    return {
        "outcome": str(run.outcome),
        "value": run.objective,
        "evictions": run.evictions,
        "makespan": run.makespan if run.outcome is Outcome.COMPLETED else None,
        "peak_memory": run.peak_memory,
        "note": run.note,
        "times": None if run.clock.is_even else Times.of(run),
    }


def require_valid(text: str) -> None:
    """Raise an error if the verifier refuses a certificate."""
    verdict = verify_text(text)
    if not verdict.valid:
        raise Unverified(f"the certificate does not verify: {verdict.lines[-1]}")
