"""Under which heading a record stands: its family, its file, in seconds also its setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kvopt.experiments.studies.records import Record
from kvopt.families import FAMILIES

_FILE = "file"
"""Key of an instance from a file, for which its name stands."""

_SIZE = "n"
"""Key of a family that says how many requests there are: runs of all sizes stand together."""


def headed(records: Sequence[Record]) -> list[Record]:
    """Return records whose family is the heading under which they stand.

    Traffic at one rate is not comparable with traffic at another; so in seconds the keys of a
    family in which records differ are part of the heading.
    """
    files = {(r.instance.name, _file(r)) for r in records if r.instance.family is None}
    ambiguous = len({name for name, _ in files}) < len(files)
    varied = _varied(records)

    def heading(record: Record) -> str:
        if record.instance.family is None:
            return _file(record) if ambiguous else record.instance.name
        return _setting(record, varied) if record.in_seconds else record.instance.family

    return [
        replace(record, instance=replace(record.instance, family=heading(record)))
        for record in records
    ]


def _file(record: Record) -> str:
    return str(record.instance.parameters.get(_FILE, ""))


def _setting(record: Record, varied: dict[str, list[str]]) -> str:
    family, keys = record.instance.family or "", record.instance.parameters
    found = FAMILIES.get(family)
    stand_in = " (stand-in)" if found and found.source.startswith("stand-in") else ""
    here = [key for key in varied[family] if key in keys]
    settings = [f"{key} {keys[key]}" for key in here if key != _FILE]
    if _FILE in here:
        settings.append(record.instance.name)
    return ", ".join([family + stand_in, *settings])


def _varied(records: Sequence[Record]) -> dict[str, list[str]]:
    """Return the keys in which the records of each family differ."""
    values: dict[str, dict[str, set[str]]] = {}
    for record in records:
        keys = values.setdefault(record.instance.family or "", {})
        for key, value in record.instance.parameters.items():
            keys.setdefault(key, set()).add(repr(value))
    return {
        family: [key for key, found in sorted(keys.items()) if len(found) > 1 and key != _SIZE]
        for family, keys in values.items()
    }
