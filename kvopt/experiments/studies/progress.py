"""How far a study is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvopt.experiments.studies.records import Record


@dataclass(frozen=True)
class StudyProgress:
    """How far a study is.

    Parameters
    ----------
    instances, done, failed
        All instances; those with records; those of them where something failed.
    before
        Those that were done when this run began.
    seconds
        Of this run.
    worst
        The record with the largest ratio that is certain, ``value / upper``.
    """

    instances: int
    done: int
    failed: int
    before: int
    seconds: float
    worst: Record | None

    @property
    def rate(self) -> float | None:
        """Instances a second, None before the first is done."""
        new = self.done - self.before
        return new / self.seconds if new and self.seconds else None

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the rest takes at this rate."""
        return None if self.rate is None else (self.instances - self.done) / self.rate


StudyObserver = Callable[[StudyProgress], None]


class Tally:
    """Counts for an observer."""

    def __init__(self, instances: int, observer: StudyObserver | None) -> None:
        self._instances = instances
        self._observer = observer
        self._began = time.monotonic()
        self._done = self._failed = self._before = 0
        self._worst: Record | None = None

    def know(self, records: Iterable[Record]) -> None:
        """Count an instance that was done before."""
        self._count(records)
        self._before += 1

    def add(self, records: Iterable[Record]) -> None:
        """Count an instance that was done now, and say so."""
        self._count(records)
        self.tell()

    def tell(self) -> None:
        """Tell the observer where the study is."""
        if self._observer is not None:
            self._observer(self.progress())

    def progress(self) -> StudyProgress:
        """Return where the study is."""
        return StudyProgress(
            instances=self._instances,
            done=self._done,
            failed=self._failed,
            before=self._before,
            seconds=time.monotonic() - self._began,
            worst=self._worst,
        )

    def _count(self, records: Iterable[Record]) -> None:
        failed = False
        for record in records:
            failed |= record.outcome == "error"
            ratio = record.ratio[0]
            worst = None if self._worst is None else self._worst.ratio[0]
            if ratio is not None and (worst is None or ratio > worst):
                self._worst = record
        self._done += 1
        self._failed += failed
