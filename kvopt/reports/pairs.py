"""Runs to draw: starts and lost work from a certificate, checked against its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from kvopt.errors import InvalidInput, shown
from kvopt.files.instances import instance_from_json
from kvopt.files.reading import check_schema, parse_json, read_text
from kvopt.model.instance import Instance
from kvopt.reports.study import Run, Study
from kvopt.simulation.runs import Lost, Outcome, PolicyRun

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


class Certificates:
    """Reads certificates of a study; the last stays at hand, for it is of several runs."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._last: tuple[Path, _Content] | None = None

    def pair(self, run: Run) -> Pair:
        """Return both schedules of a run, checked in integers.

        Raises
        ------
        InvalidInput
            If the certificate cannot be read, is of another instance or claims other numbers.
        """
        record = run.record
        if record.certificate is None:
            raise InvalidInput("has no certificate", field=record.instance.name)
        path = self._study.folder / record.certificate
        try:
            content = self._content(path)
            if content.instance.hash != record.instance.hash:
                raise InvalidInput("is of another instance than its record", field="instance")
            return Pair(run, content.best(record.upper), content.run(record.policy, record.value))
        except InvalidInput as error:
            raise error.located(file=str(path)) from None

    def _content(self, path: Path) -> _Content:
        if self._last is None or self._last[0] != path:
            self._last = None  # large ones need not be in memory together
            self._last = path, _Content(path)
        return self._last[1]


class _Content:
    """What a certificate holds, as far as a picture needs it."""

    def __init__(self, path: Path) -> None:
        value = parse_json(read_text(path))
        if not isinstance(value, dict):
            raise InvalidInput(f"must be an object, got {shown(value)}")
        check_schema(value, _SCHEMA)
        self.instance = instance_from_json(value.get("instance"))
        self._upper, self._policies = value.get("upper"), value.get("policies")
        self._best: PolicyRun | None = None

    def best(self, value: int | None) -> PolicyRun:
        if self._best is None or self._best.objective != value:
            self._best = _run(self.instance, BEST, self._upper, value)
        return self._best

    def run(self, policy: str | None, value: int | None) -> PolicyRun:
        for row in self._policies if isinstance(self._policies, list) else ():
            if isinstance(row, dict) and row.get("policy") == policy:
                return _run(self.instance, policy or "", row, value)
        raise InvalidInput("is not in the certificate", field=str(policy))


def _run(instance: Instance, label: str, content: object, value: int | None) -> PolicyRun:
    """Build a run from its part of a certificate, and check it."""
    try:
        if not isinstance(content, dict):
            raise TypeError
        lost = [Lost(*_integers(piece)) for piece in content.get("lost", ())]
        starts = _integers(content["starts"])
        if any(piece.request not in range(len(instance)) for piece in lost):
            raise IndexError
        made = PolicyRun(instance, label, starts, tuple(lost), Outcome.COMPLETED, 0.0)
        broken = made.violations()  # refuses starts that are too few or too many
    except (KeyError, IndexError, TypeError, ValueError):
        raise InvalidInput("is not as it was written", field=label) from None
    if broken or made.objective != value:
        reason = broken[0] if broken else f"starts give {made.objective}, the record says {value}"
        raise InvalidInput(reason, field=label)
    return made


def _integers(values: Iterable[object]) -> tuple[int, ...]:
    found = tuple(values)
    if any(type(value) is not int for value in found):
        raise TypeError
    return cast(tuple[int, ...], found)
