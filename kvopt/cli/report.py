"""``kvopt report``: the page and the table of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from kvopt.cli import common
from kvopt.cli.common import argument, option
from kvopt.cli.outputs import name_of, try_outputs

_EVERY = 100
"""Certificates between two messages of how many are verified."""


def report_command(
    folder: Annotated[Path, argument("DIR", "The folder of a study.")],
    output: Annotated[
        Path | None, option("--output -o", "Default: DIR/report.html.", "FILE.html")
    ] = None,
    table: Annotated[
        Path | None, option("--csv", "Default: the name of the page with .csv.", "FILE")
    ] = None,
    verify: Annotated[
        bool, option("--verify", "Verify every certificate before it is linked.")
    ] = False,
    _modules: common.Modules = None,
) -> None:
    """Write what a study found as a page that needs no network, and its records as CSV.

    The page shows verdicts, ratios, gaps and the worst instances, with links to certificates.
    Exit status: 0, 1 if a certificate is false, 2 for input that is refused.
    """
    from kvopt.experiments.report import write_report
    from kvopt.experiments.report.writing import PAGE

    if output is None and folder.is_dir():
        output = folder / PAGE
    try_outputs(output=output, csv=table)
    written = write_report(folder, output, table, verify=verify, progress=_show)
    for line in (*written.warnings, *written.faults):
        common.say(f"kvopt: warning: {line}")
    names = [name_of(path) for path in (written.page, written.table) if path is not None]
    count = "1 record" if written.records == 1 else f"{written.records:,} records"
    common.say(f"wrote {' and '.join(names)}: {count}")
    common.finish(status=common.FAILED * bool(written.faults))


def _show(done: int, count: int) -> None:
    if done % _EVERY == 0 or done == count:
        common.say(f"verified {done:,} of {count:,} certificates")
