"""Runs of a study by the entries of its description, in their order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from kvopt.show.dataframes import latex
from kvopt.show.summary import spread
from kvopt.studies.intervals import Runs, by_policy
from kvopt.studies.records import COUNTS, Record, grouped
from kvopt.studies.sources import Entry

_ELSEWHERE = ("n", "memory", "file", "requests", *COUNTS)
"""Keys of an instance that other columns show, or that no table has room for."""


@dataclass(frozen=True)
class EntryRuns:
    """The runs of one policy on the instances of one entry.

    Parameters
    ----------
    name, parameters
        Its family, or the name of a file; the keys of the entry in words.
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

    @classmethod
    def of(cls, runs: Runs) -> EntryRuns:
        """Describe the entry of some runs by their instances."""
        instances = [record.instance for record in runs.records]
        first, keys = instances[0], instances[0].parameters
        name = first.name if "file" in keys else first.family or first.name
        words = ", ".join(f"{key} {value}" for key, value in keys.items() if key not in _ELSEWHERE)
        sizes = [one.requests for one in instances], [one.memory for one in instances]
        return cls(name, words, *sizes, runs)


def by_entry(records: Iterable[Record], entries: Sequence[Entry]) -> list[EntryRuns]:
    """Return a row for each policy on each entry.

    Parameters
    ----------
    records
        Records of the study.  Those of none of its entries come last, by their sources.
    entries
        Those of its description.
    """
    places: dict[tuple[str, int | None, str], tuple[int, int]] = {}
    for place, entry in enumerate(entries):
        for source, (rank, policy) in product(entry.sources(), enumerate(entry.policies or ())):
            key = _key(source.name, source.asked)
            places.setdefault((key, source.seed, policy), (place, rank))

    def place_of(record: Record) -> tuple[int, int, str]:
        one = record.instance
        key = _key(one.family or one.name, one.parameters)
        place = places.get((key, one.seed, record.policy or ""))
        return (len(entries), 0, key) if place is None else (*place, "")

    groups = grouped((r for r in records if r.policy is not None), place_of)
    return [EntryRuns.of(runs) for key in sorted(groups) for runs in by_policy(groups[key])]


def _key(name: str, parameters: Mapping[str, Any]) -> str:
    """Return the key of a source: its parameters name a file, otherwise it has a name."""
    keys = {key: value for key, value in parameters.items() if key not in COUNTS}
    return json.dumps([None if "file" in keys else name, keys], sort_keys=True)


def table_for_latex(records: Iterable[Record], entries: Sequence[Entry], title: str) -> str:
    """Return the rows by entry for the package booktabs, with intervals rounded outward."""
    rows = [
        {
            "family": row.name,
            "parameters": row.parameters,
            "n>": spread(row.requests),
            "M>": spread(row.memory),
            "policy": row.runs.policy,
            "scope": row.runs.scope,
            "runs>": len(row.runs.records),
            "completed>": len(row.runs.done),
            "mean x optimum>": row.runs.mean,
            "worst x optimum>": row.runs.worst,
        }
        for row in by_entry(records, entries)
    ]
    columns = list(rows[0]) if rows else []
    for name in ("parameters", "scope"):
        if len({row[name] for row in rows}) == 1:
            columns.remove(name)
    cells = [[str(row[name]) for name in columns] for row in rows]
    return latex(columns, cells, f"{title}\nmultiples of the optimum, certainly inside")
