"""Runs of a study by the sources of their instances."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvopt.studies.intervals import Runs, by_policy
from kvopt.studies.records import COUNTS, Record, grouped, natural

_ELSEWHERE = ("n", "memory", "file", "requests", *COUNTS)
"""Keys of an instance that other columns show, or that no table has room for."""


@dataclass(frozen=True)
class SourceRuns:
    """The runs of one policy on the instances of one source.

    Parameters
    ----------
    name, parameters
        Its family, or the name of a file; its parameters in words.
    requests, memory
        Sizes of its instances, which a family may draw.
    runs
        The runs.
    """

    name: str
    parameters: str
    requests: Sequence[int]
    memory: Sequence[int]
    runs: Runs

    @property
    def names(self) -> tuple[str, str, str]:
        """Name, parameters and policy, by which rows are sorted."""
        return self.name, self.parameters, self.runs.policy

    @classmethod
    def of(cls, runs: Runs) -> SourceRuns:
        """Describe the source of some runs by their instances."""
        instances = [record.instance for record in runs.records]
        first, keys = instances[0], instances[0].parameters
        name = first.name if "file" in keys else first.family or first.name
        words = ", ".join(f"{key} {value}" for key, value in keys.items() if key not in _ELSEWHERE)
        sizes = [one.requests for one in instances], [one.memory for one in instances]
        return cls(name, words, *sizes, runs)


def by_source(records: Iterable[Record]) -> list[SourceRuns]:
    """Return a row for each source of instances and each policy on it, by the names of both."""
    groups = grouped((record for record in records if record.policy is not None), _source)
    rows = [SourceRuns.of(runs) for group in groups.values() for runs in by_policy(group)]
    rows.sort(key=lambda row: [*map(natural, (row.name, row.parameters, row.runs.policy))])
    return rows


def _source(record: Record) -> str:
    """Return the key of the source of an instance: a family or a file with its parameters."""
    name, parameters = record.instance.family or record.instance.name, record.instance.parameters
    keys = {key: value for key, value in parameters.items() if key not in COUNTS}
    return json.dumps([None if "file" in keys else name, keys], sort_keys=True)
