"""The work of a study, piece by piece: an instance, the policies that meet it, and limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kvopt.experiments.studies.description import Limits, Study
from kvopt.experiments.studies.records import Record, StudiedInstance, record_key
from kvopt.experiments.studies.sources import Source
from kvopt.kernels.dependencies import versions
from kvopt.version import __version__


@dataclass(frozen=True)
class Task:
    """One instance with its policies.

    Parameters
    ----------
    study
        Name of the study.
    source
        Where the instance comes from.
    policies
        What meets it.
    limits
        For this instance.
    modules
        To import before.
    instance
        What is known of it beforehand; of a game only what was asked for.
    folder
        Of the study, where what is found is kept, and earlier runs are taken from.
    """

    study: str
    source: Source
    policies: tuple[str, ...]
    limits: Limits
    modules: tuple[str, ...]
    instance: StudiedInstance
    folder: Path | None = None

    def key(self, policy: str | None) -> str:
        """Return the key of a record; the failure of the whole is one of all of its policies."""
        wanted = self.instance.hash if policy else f"{self.instance.hash} of {self.policies}"
        return record_key(wanted, policy, self.limits.to_json(), __version__)

    def record(
        self, policy: str | None, instance: StudiedInstance, seconds: float, **found: Any
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
            **found,
        )

    def failure(self, error: str, seconds: float) -> Record:
        """Return the record of an instance that failed as a whole."""
        return self.record(None, self.instance, seconds, outcome="error", error=error)


def tasks_of(study: Study, most: int | None = None) -> Iterator[Task]:
    """Yield the work of a study, each piece once: the first ``most`` draws of each entry.

    Draws that give the same instance are one; so are entries that overlap.
    """
    planned: set[str] = set()
    for entry in study.entries:
        for source in entry.sources(most):
            if source.kind == "game":
                opponents: list[tuple[str, ...]] = [(policy,) for policy in entry.policies]
                known = source.described(None)
            else:
                opponents, known = [entry.policies], source.described(source.instance())
            for limits in study.limits:
                for wanted in opponents:
                    policies = tuple(label for label in wanted if limits.covers(label))
                    task = Task(study.name, source, policies, limits, study.modules, known)
                    new = tuple(p for p in policies if task.key(p) not in planned)
                    planned.update(map(task.key, new))
                    if new:
                        yield replace(task, policies=new)
