"""One task from its instance to its records and a certificate that was verified."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kvopt.certificates import Certificate, JudgedRun, certify
from kvopt.certificates.writing import certificate_text
from kvopt.dependencies import versions
from kvopt.errors import KvoptError
from kvopt.files import write_atomically
from kvopt.instance import Instance
from kvopt.policies.registry import policy as policy_from
from kvopt.runs import PolicyRun
from kvopt.simulator import Stopped, simulate
from kvopt.studies.modules import import_modules
from kvopt.studies.records import Record, StudiedInstance, record_key
from kvopt.studies.tasks import Task
from kvopt.verify import verify
from kvopt.version import __version__

FOLDER = "certificates"

Announce = Callable[[str, float], None]
"""Called with what begins now, and within how many seconds it should end."""

_PATIENCE = 1.5
"""Times its limit that a policy gets before it counts as hung: it is asked between rounds only."""
_ROOM = 30.0
"""Seconds beyond the limit for what is no search: loading, compiling, ending a solver."""
_VERIFYING = 900.0
"""Seconds for the verifier, whose own limits end it within some minutes."""


@dataclass(frozen=True)
class Done:
    """What came of a task.

    Parameters
    ----------
    records
        One for each policy, or a single one that says what failed.
    path, certificate
        Where the certificate goes in the folder of the study, and its text; None if there is
        none.
    """

    records: tuple[Record, ...]
    path: str | None = None
    certificate: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as it comes back from the process that did it."""
        records = [record.to_json() for record in self.records]
        return {"records": records, "path": self.path, "certificate": self.certificate}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Done:
        """Build it from what `to_json` returned."""
        records = tuple(Record.from_json(record) for record in value["records"])
        return cls(records, value["path"], value["certificate"])


class Interrupted(KvoptError):
    """A signal ended the work: what was found until then is no result of the study."""


class Unverified(KvoptError):
    """The verifier does not agree with a certificate."""


def carry_out(task: Task, skip: Mapping[str, str], announce: Announce) -> Done:
    """Draw the instance, run its policies, certify, verify.

    Parameters
    ----------
    task
        What to do.
    skip
        Policies that are known to fail, with what is recorded of them.
    announce
        Told of each step, so that a step that never ends can be ended from outside.
    """
    began = time.monotonic()
    announce("instance", task.limits.policy_time_limit + _ROOM)
    import_modules(task.modules)
    instance = task.source.instance(task.policies[0])
    found = task.source.described(instance)
    runs: dict[str, PolicyRun | str | None] = {}
    for label in task.policies:
        if label in skip:
            runs[label] = skip[label]
            continue
        announce(f"policy {label}", _PATIENCE * task.limits.policy_time_limit + 1)
        runs[label] = _run(instance, label, task.limits.policy_time_limit)
    announce("certify", task.limits.time_limit + _ROOM)
    certificate = _certified(instance, runs, task)
    announce("verify", _VERIFYING)
    text = _verified(certificate)
    path = _path(task, found)
    seconds = time.monotonic() - began
    records = [_record(task, found, certificate, label, runs[label], seconds) for label in runs]
    return Done(tuple(replace(record, certificate=path) for record in records), path, text)


def _run(instance: Instance, label: str, limit: float) -> PolicyRun | str | None:
    """Return the run of a policy, what went wrong, or None when time ran out."""
    end = time.monotonic() + limit
    try:
        return simulate(instance, policy_from(label), label, lambda: time.monotonic() > end)
    except Stopped:
        return None
    except Exception as error:  # the code of others may raise anything
        return f"{type(error).__name__}: {error}"


def _certified(
    instance: Instance, runs: Mapping[str, PolicyRun | str | None], task: Task
) -> Certificate:
    limits = task.limits
    found = certify(
        instance,
        [run for run in runs.values() if isinstance(run, PolicyRun)],
        task.source.reference(instance),
        time_limit=limits.time_limit,
        threads=limits.threads,
        seed=limits.seed,
        command=f"kvopt study {task.study}",
    )
    if found.signal_number is not None:
        raise Interrupted(f"signal {found.signal_number}")
    late = [JudgedRun(label, "unfinished") for label, run in runs.items() if run is None]
    return replace(found, runs=(*found.runs, *late))


def _verified(certificate: Certificate) -> str:
    """Return the text of a certificate once the verifier agrees with it."""
    text = certificate_text(certificate)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        write_atomically(path, text)
        verdict = verify(path)
    if not verdict.valid:
        raise Unverified(f"the certificate does not verify: {verdict.lines[-1]}")
    return text


def _path(task: Task, instance: StudiedInstance) -> str:
    policies: Sequence[str] = task.policies
    key = record_key(instance.hash, "\n".join(policies), task.limits.to_json(), __version__)
    return f"{FOLDER}/{key.removeprefix('sha256:')[:32]}.json"


def _record(
    task: Task,
    instance: StudiedInstance,
    certificate: Certificate,
    label: str,
    run: PolicyRun | str | None,
    seconds: float,
) -> Record:
    limits = task.limits.to_json()
    record = Record(
        key=record_key(instance.hash, label, limits, __version__),
        study=task.study,
        instance=instance,
        policy=label,
        limits=limits,
        outcome="unfinished",
        upper=certificate.objective,
        lower=certificate.lower_bound,
        bounded_by=certificate.provenance["bounded_by"],
        found_by=certificate.provenance["found_by"],
        seconds=round(seconds, 3),
        versions=versions(),
    )
    if run is None:
        return record
    if isinstance(run, str):
        return replace(record, outcome="error", error=run)
    finished = run.schedule is not None
    return replace(
        record,
        outcome=str(run.outcome),
        value=run.objective,
        evictions=run.evictions,
        makespan=run.makespan if finished else None,
        peak_memory=run.peak_memory,
    )
