"""Whether certificates are true and say what the records say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kvopt.experiments.report.study import Study
from kvopt.experiments.studies.records import Record, grouped
from kvopt.files.reading import parse_json, read_text
from kvopt.verify import verify


@dataclass(frozen=True, slots=True)
class Checked:
    """How many certificates were verified, and what is wrong with others."""

    certificates: int
    faults: tuple[str, ...]


def check_certificates(study: Study, progress: Callable[[int, int], None]) -> Checked:
    """Verify every certificate and compare it with its records; say how many of how many are."""
    known = [record for record in study.records if record.certificate is not None]
    owners = grouped(known, lambda record: record.certificate or "")
    faults = []
    for done, (certificate, records) in enumerate(sorted(owners.items()), 1):
        path = study.folder / certificate
        verdict = verify(path)
        wrong = [] if verdict.valid else [verdict.lines[-1]]
        if verdict.valid:
            content = parse_json(read_text(path))
            wrong = [said for record in records for said in _differences(content, record)]
        faults += [f"{certificate}: {said}" for said in wrong[:1]]
        progress(done, len(owners))
    return Checked(len(owners) - len(faults), tuple(faults))


def _differences(content: Mapping[str, Any], record: Record) -> list[str]:
    """Return what a record says and its certificate does not."""
    runs = {run["policy"]: run for run in content.get("policies", ())}
    nothing = {"value": None}
    said = {
        "instance": (record.instance.hash, content["hash"]),
        "upper": (record.upper, (content["upper"] or nothing)["value"]),
        "lower": (record.lower, (content["lower"] or nothing)["value"]),
        "value": (record.value, runs.get(record.policy, nothing)["value"]),
    }
    if claim := content.get("deadlines"):
        counts = dict(zip(runs, claim["attained"], strict=True))
        said["ceiling"] = (record.ceiling, claim["ceiling"])
        said["attained"] = (record.attained, counts.get(record.policy))
    return [
        f"{record.policy}: {name} is {ours} in the record and {theirs} in the certificate"
        for name, (ours, theirs) in said.items()
        if ours != theirs
    ]
