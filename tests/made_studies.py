"""Folders of real studies: instances drawn, certified and recorded as `kvopt study` does it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kvopt.certificates import Certificate, JudgedRun, certify, write_certificate
from kvopt.families import generate
from kvopt.instance import Instance
from kvopt.runs import Outcome, PolicyRun
from kvopt.studies.records import FILE, Record, StudiedInstance, record_key

Draw = tuple[str, dict[str, Any]]
"""A family and the arguments of `generate`."""


def make_study(
    folder: Path,
    draws: Iterable[Draw],
    policies: Sequence[str],
    *,
    name: str = "made",
    time_limit: float = 0.0,
) -> Path:
    """Certify the draws, and leave what a study leaves."""
    for number, (family, arguments) in enumerate(draws):
        instance = generate(family, **arguments)
        found = certify(instance, policies, time_limit=time_limit, threads=1)
        place = f"certificates/{number:04}.json"
        (folder / "certificates").mkdir(parents=True, exist_ok=True)
        write_certificate(found, folder / place)
        drawn = studied(instance, family, arguments)
        append(folder, (of_run(found, run, drawn, name, place) for run in found.runs))
    return folder


def append(folder: Path, records: Iterable[Record]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE).open("a", encoding="utf-8") as lines:
        for record in records:
            lines.write(json.dumps(record.to_json()) + "\n")


def studied(instance: Instance, family: str, arguments: dict[str, Any]) -> StudiedInstance:
    return StudiedInstance(
        name=instance.name or family,
        family=family,
        parameters={key: value for key, value in arguments.items() if key != "seed"},
        seed=arguments.get("seed"),
        requests=len(instance),
        memory=instance.memory,
        hash=instance.hash,
    )


def of_run(
    found: Certificate, run: JudgedRun, drawn: StudiedInstance, study: str, place: str
) -> Record:
    """Return the record of a judged run, with what the run held counted anew."""
    ended = None
    if run.value is not None:
        ended = PolicyRun(
            found.instance, run.policy, run.starts, run.lost, Outcome.COMPLETED, seconds=0.0
        )
    provenance = found.provenance
    limits = {name: provenance[name] for name in ("time_limit", "threads", "seed")}
    return Record(
        key=record_key(found.instance.hash, run.policy, limits, provenance["versions"]["kvopt"]),
        study=study,
        instance=drawn,
        policy=run.policy,
        limits=limits,
        outcome=run.outcome,
        value=run.value,
        evictions=len(run.lost),
        makespan=None if ended is None else ended.makespan,
        peak_memory=None if ended is None else ended.peak_memory,
        upper=found.objective,
        lower=found.lower_bound,
        bounded_by=provenance["bounded_by"],
        found_by=provenance["found_by"],
        seconds=provenance["seconds"],
        certificate=place,
        versions=provenance["versions"],
    )


def of_failure(drawn: StudiedInstance, error: str, study: str = "made") -> Record:
    """Return the record of an instance that failed as a whole."""
    return Record(
        key=record_key(drawn.hash, None, {}, "0"),
        study=study,
        instance=drawn,
        policy=None,
        outcome="error",
        error=error,
    )
