"""``kvopt submit``: enter a better schedule or bound into the instance library."""

from __future__ import annotations

from pathlib import Path

from kvopt.cli import common
from kvopt.cli.common import argument, option


def submit_command(
    *,
    file: Path = argument("CERT", "Certificate of an instance of the library."),
    who: str = option("--who", "Who found it, as the table shall say.", "NAME", default=...),
    took: float | None = option(
        "--took", "Seconds that it took; default: as the certificate says.", "S", min=0
    ),
    library: Path = option(
        "--library", "Folder of the library; default: instances.", "DIR", default=Path("instances")
    ),
    budget: float | None = option("--budget", "As for kvopt verify.", "K"),
    json: bool = common.JSON,
) -> None:
    """Enter a better schedule or a better bound into the instance library.

    The certificate is checked as ``kvopt verify`` does.  A better side goes into the table, with
    its finder, the day and the time taken; a bound's certificate is kept if it is small.  Then
    the README and the page of the library are written again.  A certificate that is not valid,
    of no instance of the library, or no better on either side is refused with exit status 2.
    """
    # They load packages that draw pictures.
    from kvopt.experiments.library.page import write_pages
    from kvopt.experiments.library.table import Library

    known = Library(library)
    name, gained = known.submit(file, who, took, budget)
    write_pages(known)
    if json:
        common.print_json({"instance": name, "better": gained, "entry": known.entries[name]})
    else:
        print(*(f"{name}: {line}" for line in gained), sep="\n")
