"""Runs to draw: starts and lost work from a certificate, checked against its record."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from kvopt.errors import InvalidInput, shown
from kvopt.files.instances import instance_from_json
from kvopt.files.reading import check_schema, parse_json, read_text
from kvopt.instance import Instance
from kvopt.reports.study import Run, Study
from kvopt.runs import Lost, Outcome, PolicyRun

_SCHEMA = "kvopt.certificate/1"
BEST = "best schedule found"


@dataclass(frozen=True)
class Pair:
    """A run of a policy beside the best schedule of the same instance."""

    run: Run
    best: PolicyRun
    found: PolicyRun


def worst_runs(study: Study, few: int, most: int) -> list[Run]:
    """Return the worst run of each policy, then the second of each, as long as there is room.

    Parameters
    ----------
    study
        The study.
    few
        How many to return; more where there are more policies, one of each.
    most
        How many to return at most.
    """
    beaten = [run for run in study.judged if run.ratio and run.ratio.least and run.ratio.least > 1]
    seen: Counter[str | None] = Counter()
    turns = []
    for place, run in enumerate(beaten):
        turns.append((seen[run.record.policy], place))
        seen[run.record.policy] += 1
    count = min(max(few, len(seen)), most)
    return [beaten[place] for _, place in sorted(turns)[:count]]


def read_pair(study: Study, run: Run) -> Pair:
    """Read both schedules of a run from its certificate and check them in integers.

    Raises
    ------
    InvalidInput
        If the certificate cannot be read, is of another instance or claims other numbers.
    """
    record = run.record
    if record.certificate is None:
        raise InvalidInput("has no certificate", field=record.instance.name)
    path = study.folder / record.certificate
    try:
        value = parse_json(read_text(path))
        if not isinstance(value, dict):
            raise InvalidInput(f"must be an object, got {shown(value)}")
        check_schema(value, _SCHEMA)
        instance = instance_from_json(value.get("instance"))
        if instance.hash != record.instance.hash:
            raise InvalidInput("is of another instance than its record", field="instance")
        best = _run(instance, BEST, value.get("upper"), record.upper)
        found = _run(instance, record.policy or "", _of_policy(value, record.policy), record.value)
        return Pair(run, best, found)
    except InvalidInput as error:
        raise error.located(file=str(path)) from None


def _of_policy(value: dict[str, Any], policy: str | None) -> object:
    rows = value.get("policies")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("policy") == policy:
            return row
    raise InvalidInput("is not in the certificate", field=str(policy))


def _run(instance: Instance, label: str, content: object, value: int | None) -> PolicyRun:
    try:
        assert isinstance(content, dict)
        lost = [Lost(*map(int, piece)) for piece in content.get("lost", ())]
        starts = tuple(map(int, content["starts"]))
        assert len(starts) == len(instance)
        made = PolicyRun(instance, label, starts, tuple(lost), Outcome.COMPLETED, 0.0)
        broken = made.violations()
    except (AssertionError, KeyError, IndexError, TypeError, ValueError):
        raise InvalidInput("is not as it was written", field=label) from None
    if broken or made.objective != value:
        reason = broken[0] if broken else f"starts give {made.objective}, the record says {value}"
        raise InvalidInput(reason, field=label)
    return made
