"""Enter a better schedule or a better bound into the instance library.

    python instances/submit.py CERT --who "Ada Lovelace" [--took S] [--library DIR] [--budget K]

The certificate is checked as ``kvopt verify`` does.  A better side goes into the table, with its
finder, the day and the time taken; a bound's certificate is kept if it is small.  Then the README
and the page of the library are written again.  A certificate that is not valid, of no instance of
the library, or no better on either side is refused with exit status 2.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from library import Library
from library_pages import write_pages

from kvopt import KvoptError


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a certificate and enter it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="CERT")
    parser.add_argument("--who", required=True, help="who found it, as the table shall say")
    parser.add_argument("--took", type=float, help="seconds; by default those of the certificate")
    parser.add_argument("--library", type=Path, default=Path(__file__).parent, metavar="DIR")
    parser.add_argument("--budget", type=float, help="as for kvopt verify")
    options = parser.parse_args(arguments)
    library = Library(options.library)
    try:
        name, gained = library.submit(options.file, options.who, options.took, options.budget)
        write_pages(library)
    except KvoptError as error:
        print(error, file=sys.stderr)
        return 2
    for line in gained:
        print(f"{name}: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
