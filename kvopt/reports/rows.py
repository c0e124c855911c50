"""The records of a study as CSV: one row each."""

from __future__ import annotations

import csv
import io
import json

from kvopt.reports.study import Study
from kvopt.studies.records import Record

COLUMNS = (
    "study", "family", "instance", "seed", "requests", "memory", "parameters", "policy",
    "outcome", "value", "lower", "upper", "ratio_least", "ratio_most", "proved", "evictions",
    "makespan", "peak_memory", "bounded_by", "found_by", "seconds", "limits", "error",
    "certificate", "instance_hash", "key",
)  # fmt: skip

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet take a text for a formula."""


def csv_text(study: Study) -> str:
    """Return the records as CSV; a cell is empty where nothing is known."""
    sink = io.StringIO(newline="")
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in study.records:
        cells = _cells(record)
        writer.writerow([_safe(cells[name]) for name in COLUMNS])
    return sink.getvalue()


def _cells(record: Record) -> dict[str, object]:
    instance = record.instance
    least, most = record.ratio
    known = vars(record) | vars(instance)
    return {name: known.get(name) for name in COLUMNS} | {
        "instance": instance.name,
        "parameters": _json(instance.parameters),
        "ratio_least": least,
        "ratio_most": most,
        "proved": record.proved,
        "limits": _json(record.limits),
        "instance_hash": instance.hash,
    }


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _safe(cell: object) -> object:
    """Put an apostrophe before text that a spreadsheet would run."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
