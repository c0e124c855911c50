"""``write_report``: from the folder of a study to its page and its table.

The page is one file that needs no other file and no network.  Its content security policy allows
only its own style sheet and its own script, by their digests.  So content of a study cannot run as
code, even if the escaping failed.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kvopt.files.atomic import own_descriptor, write_atomically
from kvopt.studies.report import pictures, tables
from kvopt.studies.report.findings import (
    FamilyFindings,
    Findings,
    check_certificates,
    read_findings,
)
from kvopt.studies.report.pages import TEXTS, Context, pieces, rendered
from kvopt.studies.report.pictures import times_of
from kvopt.studies.report.worst import worst

if TYPE_CHECKING:
    from markupsafe import Markup

PAGE = "report.html"

COLUMNS = (
    "study", "family", "instance", "seed", "requests", "memory", "parameters", "policy",
    "outcome", "value", "lower", "upper", "ratio_least", "ratio_most", "proved", "evictions",
    "makespan", "peak_memory", "bounded_by", "found_by", "seconds", "limits", "error",
    "certificate", "instance_hash", "key", "time_unit", "rate", "left_out",
)  # fmt: skip

SECONDS_COLUMNS = (
    "mean_s", "median_s", "p99_s", "first_token_mean_s", "first_token_median_s",
    "first_token_p99_s", "tokens_per_second", "mean_memory",
    "requests_completed", "ended_s",
)  # fmt: skip
"""Further columns of a study in seconds, whose latencies in other columns are nanoseconds."""

SLO_COLUMNS = ("slo", "attain", "attained", "best_attained", "ceiling", "verdict")
"""Further columns of a study with a service level."""

WHOLE: dict[str, Callable[[Context], str]] = {
    "overview": tables.overview,
    "by-memory": partial(pictures.along_axis, name="by-memory"),
    "by-rate": partial(pictures.along_axis, name="by-rate"),
    "by-workers": partial(pictures.along_axis, name="by-workers"),
    "latency": pictures.latency,
    "volume": partial(pictures.along_axis, name="volume"),
    "schedulers": tables.schedulers,
    "service-levels": tables.service_levels,
    "worst": worst,
    "failures": tables.failures,
    "provenance": tables.provenance,
}
"""Functions that make a section, empty without data."""

BY_FAMILY: dict[str, Callable[[Context, FamilyFindings], Sequence[Markup]]] = {
    "ranking": pictures.ranking,
    "runs": pictures.runs,
}
"""Functions that draw a family for a section."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Begins of texts that a spreadsheet reads as formulas; an apostrophe before them makes texts."""


@dataclass(frozen=True, slots=True)
class Written:
    """Written files, and faults.

    Parameters
    ----------
    page, table
        The files; the table is None if the page went to a stream.
    records
        Number of the records.
    warnings
        Damaged lines, which are ignored.
    faults
        Certificates that are false, or differ from their records.
    """

    page: Path
    table: Path | None
    records: int
    warnings: tuple[str, ...]
    faults: tuple[str, ...]


def write_report(
    folder: str | Path,
    output: str | Path | None = None,
    table: str | Path | None = None,
    *,
    verify: bool = False,
) -> Written:
    """Write the report of a study.

    Parameters
    ----------
    folder
        Folder of the study.
    output
        The page; by default ``report.html`` in the folder.
    table
        The records as CSV; by default next to the page, with the suffix ``.csv``.
    verify
        Verify every certificate and compare it with its records; faults are on the page.

    Returns
    -------
    Written
        Paths of both, and faults of the study.

    Raises
    ------
    InvalidInput
        If the folder has no study, a file in it has other than its original content, or nothing
        can be written.
    """
    study = read_findings(Path(folder))
    target = Path(folder) / PAGE if output is None else Path(output)
    rows = None if table is None else Path(table)
    if rows is None and own_descriptor(target) is None:  # a stream has no folder for a second file
        rows = target.with_suffix(".csv")
    checked = check_certificates(study) if verify else None
    context = Context(study, target.parent, rows, checked)
    title = None if study.title == study.name else study.title
    source = "from the records of the study"
    page = rendered("kvopt study", study.name, title, _sections(context), source)
    if rows is not None:
        write_atomically(rows, _csv(study))
    write_atomically(target, page)
    faults = () if checked is None else checked.faults
    return Written(target, rows, len(study.records), study.warnings, faults)


def _sections(context: Context) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the address, the title and the content of each section that has data."""
    for name, row in TEXTS.items():
        if draw := BY_FAMILY.get(name):
            body = context.gallery(name, {f.name: draw(context, f) for f in context.study.families})
        else:
            body = WHOLE[name](context)
        if body:
            lead = pieces.paragraphs([context.text(name)]) if row.get("led") else ""
            yield name, (row["title"], lead + body)


def _csv(study: Findings) -> str:
    """Return the records as CSV; a cell is empty if unknown."""
    sink = io.StringIO(newline="")
    columns = [*COLUMNS, *(SECONDS_COLUMNS if study.in_seconds else ())]
    if any(record.limits.get("slo") for record in study.records):
        columns += SLO_COLUMNS
    writer = csv.DictWriter(sink, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for record in study.records:
        instance, (lower, upper) = record.instance, record.ratio
        cells = {
            **times_of(record),
            **vars(instance),
            **vars(record),
            "instance": instance.name,
            "parameters": json.dumps(instance.parameters, sort_keys=True),
            "ratio_least": lower,
            "ratio_most": upper,
            "proved": record.proved,
            "slo": record.limits.get("slo"),
            "attain": record.limits.get("attain"),
            "verdict": record.verdict,
            "limits": json.dumps(record.limits, sort_keys=True),
            "instance_hash": instance.hash,
            "time_unit": "ns" if record.in_seconds else "rounds",
            "rate": instance.parameters.get("rate", 1),
            "left_out": instance.parameters.get("left_out", 0),
        }
        for name, cell in cells.items():
            if isinstance(cell, str) and cell.startswith(_FORMULA):
                cells[name] = f"'{cell}"
        writer.writerow(cells)
    return sink.getvalue()
