"""What it costs a bound to cover more: pauses in rounds, prompts in pieces in seconds.

    python benchmarks/scopes.py FILE... [--seconds S] [--batch-time MODEL]

Each FILE is an instance, or a run that ``kvopt import-run`` wrote.  Bounds in seconds need arrivals
in seconds, or none.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kvopt import InvalidInput, bound, read_instance
from kvopt.bounds.seconds import seconds_bound
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.hardware.batch_time_files import batch_time
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.timetable.run_files import read_run


def read(path: Path) -> Instance:
    """Return the instance of a file, or of a run."""
    schema = json.loads(path.read_text(encoding="utf-8"))["schema"]
    return read_run(path).instance if schema.startswith("kvopt.run/") else read_instance(path)


def row(name: str, what: str, narrow: int | None, wide: int | None) -> str:
    """Return both bounds, and by how much the second is below the first."""
    if not narrow or wide is None:
        return f"| {name} | {what} | {narrow} | {wide} | - |"
    return f"| {name} | {what} | {narrow:,} | {wide:,} | {1 - wide / narrow:.2%} |"


def main() -> None:
    """Print a row for each file and clock."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each bound in rounds")
    parser.add_argument("--batch-time", default="llama-2-70b-2xa100")
    given = parser.parse_args()
    model = batch_time(given.batch_time)
    print("| instance | unit and scopes | bound of the narrower | of the wider | lower by |")
    print("|---|---|---|---|---|")
    for path in given.files:
        instance = read(path)
        rounds = [
            bound(instance, scope=scope, time_limit=given.seconds).value
            for scope in (Scope.RUNS, Scope.PAUSES)
        ]
        print(row(path.stem, "rounds, runs, pauses", *rounds))
        try:
            nanoseconds = [
                seconds_bound(instance, model, scope=scope).value_ns
                for scope in (Scope.PAUSES, Scope.PAUSES_AND_CHUNKS)
            ]
        except InvalidInput as error:
            print(f"{path}: no bound in seconds: {error}")
            continue
        print(row(path.stem, "nanoseconds, pauses, pauses+chunks", *nanoseconds))


if __name__ == "__main__":
    with ended_by_reader():
        main()
