"""``write_report``: from the folder of a study to its page and its table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kvopt.files.atomic import own_descriptor, write_atomically
from kvopt.reports.checking import check_certificates
from kvopt.reports.context import Context
from kvopt.reports.page import page
from kvopt.reports.rows import csv_text
from kvopt.reports.study import read_study

PAGE = "report.html"


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and what is wrong.

    Parameters
    ----------
    page, table
        The files; the table is None where the page went to a stream.
    records
        How many records they show.
    warnings
        Damaged lines that do not count.
    faults
        Certificates that are false, or say something else than their records.
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
    progress: Callable[[int, int], None] = lambda done, count: None,  # noqa: ARG005
) -> Written:
    """Write the report of a study.

    Parameters
    ----------
    folder
        Folder of the study.
    output
        The page; ``report.html`` in the folder when left out.
    table
        The records as CSV; beside the page, with the suffix ``.csv``, when left out.
    verify
        Verify every certificate and compare it with its records; what is wrong is on the page.
    progress
        Called with how many certificates are verified, and how many there are.

    Returns
    -------
    Written
        Where both are, and what is wrong with the study.

    Raises
    ------
    InvalidInput
        If the folder holds no study, a file in it is not as it was written, or nothing can be
        written.
    """
    study = read_study(Path(folder))
    target = Path(folder) / PAGE if output is None else Path(output)
    rows = Path(table) if table is not None else _beside(target)
    checked = check_certificates(study, progress) if verify else None
    text = page(Context(study, target.parent, rows, checked))
    if rows is not None:
        write_atomically(rows, csv_text(study))
    write_atomically(target, text)
    faults = () if checked is None else checked.faults
    return Written(target, rows, len(study.records), study.warnings, faults)


def _beside(target: Path) -> Path | None:
    """Return where the table goes; a stream has nothing beside it."""
    return None if own_descriptor(target) is not None else target.with_suffix(".csv")
