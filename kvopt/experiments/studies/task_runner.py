"""Run a task: from its instance to its records and a certificate that was verified."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kvopt.certificates import read_certificate
from kvopt.errors import InvalidInput, KvoptError
from kvopt.experiments.studies.clocks import Result, StudyClock, reached, study_clock
from kvopt.experiments.studies.records import INTERRUPTED, Record, StudiedInstance, record_key
from kvopt.experiments.studies.tasks import Task
from kvopt.files.atomic import write_atomically
from kvopt.kernels.compile_clock import working_time
from kvopt.kernels.modules import import_modules
from kvopt.problem.instance import Instance
from kvopt.simulate.simulator import Stopped
from kvopt.timetable.runs import PolicyRun
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
_WORTH_KEEPING = 10.0
"""Seconds of work from which on each further run is written down at once."""
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
    is_interrupted
        Whether a signal came before the end; the next run of the study begins from what there is.
    """

    records: tuple[Record, ...]
    certificate: str | None = None
    is_interrupted: bool = False


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
    path = _path(task, found)
    place = None if task.folder is None else task.folder / path
    announce("verify", _VERIFYING)
    known: dict[str, Result] = {**_earlier_runs(place), **skip}
    runs: dict[str, Result] = {}
    sides = None
    try:
        for label in task.policies:
            if label not in known:
                announce(f"policy {label}", _PATIENCE * limits.policy_time_limit + 1)
            runs[label] = known.get(label) or _run(clock, instance, label, limits.policy_time_limit)
            if place and label not in known and time.monotonic() - began > _WORTH_KEEPING:
                announce("certify", _SLACK + _COMPILING)
                write_atomically(place, clock.certified(instance, runs, task, 0.0).text or "")
        announce("certify", limits.time_limit + _SLACK + _COMPILING)
        sides = clock.certified(instance, runs, task) if limits.certify else reached(runs)
        announce("verify", _VERIFYING)
        if limits.certify and not sides.is_interrupted:
            _verify(sides.text)
    except KeyboardInterrupt:
        sides = replace(sides or clock.certified(instance, runs, task, 0.0), is_interrupted=True)
    seconds = time.monotonic() - began
    apart = ("text", "attained", "slower", "is_interrupted")
    said = {key: value for key, value in vars(sides).items() if key not in apart}
    said["certificate"] = sides.text and path
    broken = {"error": INTERRUPTED} if sides.is_interrupted else {}
    records = (
        task.record(
            label,
            found,
            seconds,
            **said,
            **(_measures(clock, run) | broken),
            attained=sides.attained.get(label),
            slower_than=sides.slower.get(label),
        )
        for label, run in runs.items()
    )
    return TaskResult(tuple(records), sides.text, sides.is_interrupted)


def _earlier_runs(path: Path | None) -> dict[str, PolicyRun]:
    """Return the finished runs in the certificate of a task that was interrupted."""
    try:
        found = read_certificate(path or "")
    except InvalidInput:  # there is none, mostly
        return {}
    runs = {judged.policy: judged.on(found.instance, found.clock) for judged in found.runs}
    return {label: run for label, run in runs.items() if run is not None}


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
