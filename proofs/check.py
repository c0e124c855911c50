"""Check certificates twice: by ``kvopt.verify``, then by the program that is proved in Coq.

    make proofs
    make check-proved FILES="a.cert.json b.cert.json"

The exit status is that of the worst file: 0 if both accept it, 1 if it is invalid, 2 if it is
unreadable or of a kind that the program does not cover.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
PROGRAM = FOLDER / "build" / "kvopt-proved"


def checked_twice(path: Path, program: Path) -> int:
    """Print what both say of a file; return the exit status."""
    print(f"{path}: checked by kvopt.verify:", flush=True)
    command = [sys.executable, "-m", "kvopt.verify", path.absolute()]
    if status := subprocess.run(command, cwd=FOLDER.parent, check=False).returncode:
        return status
    print("checked again by the program that is proved in Coq:", flush=True)
    return subprocess.run([program, path], check=False).returncode


def main() -> None:
    """Check the files of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", type=Path, default=PROGRAM, help="default: %(default)s")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options = parser.parse_args()
    if not options.program.is_file():
        parser.error(f"{options.program} is not there: run `make proofs` first")
    statuses = [checked_twice(path, options.program) for path in options.files]
    # A program that a signal ended has a negative status: it gave no verdict.
    sys.exit(max(2 if status < 0 else status for status in statuses))


if __name__ == "__main__":
    main()
