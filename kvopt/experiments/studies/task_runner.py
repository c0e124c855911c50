"""Run a task: from its instance to its records and a certificate that was verified."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvopt.errors import KvoptError
from kvopt.experiments.studies.clocks import Result, StudyClock, reached, study_clock
from kvopt.experiments.studies.records import Record, StudiedInstance, record_key
from kvopt.experiments.studies.tasks import Task
from kvopt.files import write_atomically
from kvopt.kernels.compiling import working_time
from kvopt.kernels.modules import import_modules
from kvopt.model.instance import Instance
from kvopt.simulation.simulator import Stopped
from kvopt.verify import verify
from kvopt.version import __version__

FOLDER = "certificates"

Announce = Callable[[str, float], None]
"""Called with what begins now, and within how many seconds it should end."""

_PATIENCE = 1.5
"""Factor of its limit after which a policy counts as hung: it is asked between rounds only."""
_SLACK = 30.0
"""Seconds beyond a limit for what is no search: loading, ending a solver."""
_COMPILING = 240.0
"""Seconds beyond the limit for compiling, which limits do not count, on a busy machine."""
_VERIFYING = 900.0
"""Seconds after which the verifier counts as hung; its own limits end it within minutes."""


@dataclass(frozen=True)
class TaskResult:
    """Result of a task.

    Parameters
    ----------
    records
        One for each policy, or a single one that says what failed.
    certificate
        Text of the certificate, whose path they name; None if there is none.
    """

    records: tuple[Record, ...]
    certificate: str | None = None


class Unverified(KvoptError):
    """The verifier does not agree with a certificate."""


def run_task(task: Task, skip: Mapping[str, str], announce: Announce) -> TaskResult:
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
    limits, clock = task.limits, study_clock(task.limits.batch_time)
    announce("instance", limits.policy_time_limit + _SLACK)
    import_modules(task.modules)
    instance = task.source.instance(task.policies[0])
    found = task.source.described(instance)
    runs: dict[str, Result] = {}
    for label in task.policies:
        if label in skip:
            runs[label] = skip[label]
            continue
        announce(f"policy {label}", _PATIENCE * limits.policy_time_limit + 1)
        runs[label] = _run(clock, instance, label, limits.policy_time_limit)
    path = None
    if limits.certify:
        announce("certify", limits.time_limit + _SLACK + _COMPILING)
        sides = clock.certified(instance, runs, task)
        announce("verify", _VERIFYING)
        _verify(sides.text)
        path = _path(task, found)
    else:
        sides = reached(runs)
    seconds = time.monotonic() - began
    apart = ("text", "attained", "slower")
    known = {key: value for key, value in vars(sides).items() if key not in apart}
    known["certificate"] = path
    records = (
        task.record(
            label,
            found,
            seconds,
            **known,
            **_measures(clock, run),
            attained=sides.attained.get(label),
            slower_than=sides.slower.get(label),
        )
        for label, run in runs.items()
    )
    return TaskResult(tuple(records), sides.text)


def _run(clock: StudyClock, instance: Instance, label: str, limit: float) -> Result:
    """Return the run of a policy, what went wrong, or None when time ran out."""
    end = working_time() + limit
    try:
        return clock.run(instance, label, lambda: working_time() > end)
    except Stopped:
        return None
    except Exception as error:  # the code of others may raise anything
        return f"{type(error).__name__}: {error}"


def _verify(text: str | None) -> None:
    """Refuse a certificate that the verifier does not agree with."""
    assert text is not None, "a task that certifies has a certificate"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        write_atomically(path, text)
        verdict = verify(path)
    if not verdict.valid:
        raise Unverified(f"the certificate does not verify: {verdict.lines[-1]}")


def _measures(clock: StudyClock, run: Result) -> dict[str, Any]:
    if run is None:
        return {"outcome": "unfinished"}
    return {"outcome": "error", "error": run} if isinstance(run, str) else clock.measures(run)


def _path(task: Task, instance: StudiedInstance) -> str:
    key = record_key(instance.hash, "\n".join(task.policies), task.limits.to_json(), __version__)
    return f"{FOLDER}/{key.removeprefix('sha256:')[:32]}.json"
