"""Resuming a study: the records of its earlier runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kvopt.experiments.studies.records import Record
from kvopt.experiments.studies.tasks import Task, origin_key


class EarlierRecords:
    """Records, found again by what they are about."""

    def __init__(self, directory: Path, records: Iterable[Record], retry: bool) -> None:
        self._directory = directory
        self._records: dict[str, Record] = {}
        for record in records:
            for key in (record.key, origin_key(record)):
                self._records[key] = record
        if retry:
            kept = ((key, r) for key, r in self._records.items() if r.outcome != "error")
            self._records = dict(kept)

    def records(self, task: Task) -> list[Record] | None:
        """Return the records of a task, None if it is not done."""
        found = [self._records.get(task.handle(policy)) for policy in task.policies]
        proved = [
            record
            for record in found
            if record is not None and (self._is_proved(record) or not task.limits.certify)
        ]
        if len(proved) == len(found):
            return proved
        whole = self._records.get(task.handle(None))
        return None if whole is None else [whole]

    def _is_proved(self, record: Record) -> bool:
        return record.certificate is not None and (self._directory / record.certificate).is_file()
