"""Run a study of the papers, and compare their claims with its certified intervals.

    python benchmarks/papers/studies.py STUDY DIR [--draws K] [--jobs N]
    python benchmarks/papers/studies.py STUDY DIR --judge

STUDY is a built-in study of ``kvopt study`` that tests claims; DIR is its folder.  The same command
goes on with what is left; ``--judge`` only judges the records of DIR.  The claims on adversaries
are those of ``games.py``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from backlogs import chen, mixed, table_4
from mc_sf import arrivals, equal_prompts, regret
from traffic import errors, protection, table_1, traffic
from verdicts import Verdict

from kvopt import KvoptError
from kvopt.studies import Record, builtin_study, read_records, run_study

CLAIMS: dict[str, Callable[[Sequence[Record]], Iterable[Verdict]]] = {
    "arrival-1": partial(arrivals, name="arrival-1"),
    "arrival-2": partial(arrivals, name="arrival-2"),
    "wang-table-4": table_4,
    "wang-mixed": mixed,
    "wang-7": mixed,
    "chen-1": partial(chen, experiments=(1,)),
    "chen-2": partial(chen, experiments=(2,)),
    "chen-3": partial(chen, experiments=(3,)),
    "chen-6": partial(chen, experiments=(1, 2, 3)),
    "equal-prompts": equal_prompts,
    "regret": regret,
    "v2-5.2-traffic": traffic,
    "v2-5.2-table-1": table_1,
    "v2-5.2-alpha": protection,
    "v2-5.2-errors": errors,
}
"""From the records of a study to verdicts on its claims; none if the records do not suffice."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is left of a study, and print the verdicts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=CLAIMS, metavar="STUDY", help=f"of {', '.join(CLAIMS)}")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--draws", type=int, help="only so many draws of each entry")
    parser.add_argument("--jobs", type=int, default=1, help="instances at a time")
    parser.add_argument("--judge", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    status = 0
    try:
        if options.judge:
            records: Sequence[Record] = read_records(options.folder)
        else:
            study = builtin_study(options.study)
            result = run_study(study, options.folder, jobs=options.jobs, limit=options.draws)
            records, failed = result.records, result.progress.failed
            if failed:
                print(f"{failed} instances failed, see {options.folder}", file=sys.stderr)
                status = 1
            if result.signal_number is not None:
                status = 128 + result.signal_number
        for verdict in CLAIMS[options.study](records):
            print(verdict, flush=True)
    except KvoptError as error:
        print(error, file=sys.stderr)
        return 2
    return status


if __name__ == "__main__":
    sys.exit(main())
