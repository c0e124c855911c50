"""Check the certificate that the command line names."""

from __future__ import annotations

import argparse
import functools
import os
import signal
import sys
from typing import NoReturn

from kvopt.verify.apart import verify_apart


def main() -> NoReturn:
    """Verify the file named on the command line."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as for other programs
    parser = argparse.ArgumentParser("python -m kvopt.verify", description="Check a certificate.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--budget", type=float, metavar="K", help="allow K times half a minute")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes of a search")
    options = parser.parse_args()
    say = functools.partial(print, file=sys.stderr)
    try:
        verdict = verify_apart(options.file, options.budget, say, jobs=options.jobs)
    except ValueError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        print("interrupted, nothing is known of the file", file=sys.stderr)
        sys.exit(130)
    try:
        print(*verdict.lines, sep="\n", flush=True)
    except OSError as error:  # not the status of a verdict
        say(f"standard output cannot be written: {error.strerror}", flush=True)
        os._exit(2)  # Python would write the rest again
    sys.exit(verdict.exit_status)


if __name__ == "__main__":
    main()
