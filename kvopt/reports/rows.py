"""The records of a study as CSV: one row each."""

from __future__ import annotations

import csv
import io
import json

from kvopt.experiments.studies.records import Record
from kvopt.experiments.studies.times import Times
from kvopt.reports.study import Study

COLUMNS = (
    "study", "family", "instance", "seed", "requests", "memory", "parameters", "policy",
    "outcome", "value", "lower", "upper", "ratio_least", "ratio_most", "proved", "evictions",
    "makespan", "peak_memory", "bounded_by", "found_by", "seconds", "limits", "error",
    "certificate", "instance_hash", "key",
)  # fmt: skip

SECONDS_COLUMNS = (
    "mean_s", "median_s", "p99_s", "first_token_mean_s", "first_token_median_s",
    "first_token_p99_s", "tokens_per_second", "arriving_tokens_per_second", "mean_memory",
    "requests_completed", "ended_s",
)  # fmt: skip
"""Further columns of a study in seconds, whose latencies in other columns are nanoseconds."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet take a text for a formula."""


def csv_text(study: Study) -> str:
    """Return the records as CSV; a cell is empty where nothing is known."""
    sink = io.StringIO(newline="")
    writer = csv.writer(sink, lineterminator="\n")
    columns = (*COLUMNS, *SECONDS_COLUMNS) if study.in_seconds else COLUMNS
    writer.writerow(columns)
    for record in study.records:
        cells = (_times(record.times) if record.times else {}) | _cells(record)
        writer.writerow([_safe(cells.get(name)) for name in columns])
    return sink.getvalue()


def _cells(record: Record) -> dict[str, object]:
    instance = record.instance
    least, most = record.ratio
    return (
        vars(instance)
        | vars(record)
        | {
            "instance": instance.name,
            "parameters": json.dumps(instance.parameters, sort_keys=True),
            "ratio_least": least,
            "ratio_most": most,
            "proved": record.proved,
            "limits": json.dumps(record.limits, sort_keys=True),
            "instance_hash": instance.hash,
        }
    )


def _times(times: Times) -> dict[str, object]:
    return {
        **vars(times),
        **{f"{name}_s": value for name, value in times.latency.items()},
        **{f"first_token_{name}_s": value for name, value in times.first_token.items()},
        "requests_completed": times.completed,
        "ended_s": times.ended,
    }


def _safe(cell: object) -> object:
    """Put an apostrophe before text that a spreadsheet would run."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
