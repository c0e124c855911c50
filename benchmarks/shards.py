"""Shards of a trace as one study: one process, two processes, and two workers of a Dask cluster.

    python benchmarks/shards.py --data DIR [--trace conv] [--rows 1000] [--shards 8] [--limit 10]

The trace is cut into files of so many rows each, every one is imported with its own arrivals, and
a study certifies all of them.  Printed are shards a second, the share of the processes' time
that was work on shards, and the certified gaps: the least, the median and the largest.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from studies import cluster, timed
from traces import FILES, MEMORY, ROUND_MS

from kvopt import import_trace
from kvopt.experiments.studies import read_records, run_study
from kvopt.experiments.studies.description import Study, read_study
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.instance_files import write_instance

POLICIES = ("svf", "patient", "mc-sf", "fcfs")
HEAD = """
title = "Shards of a trace"
policies = {policies}
[limits]
time_limit = {limit}
"""
ENTRY = """
[[instances]]
file = "{name}"
"""


def main() -> None:
    """Cut a trace, certify the shards in three ways, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--trace", default="conv", choices=("conv", "code"))
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--limit", type=float, default=10.0)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        study = cut(options, folder)
        run_study(replace(study, entries=study.entries[:1]), folder / "warm", jobs=1)  # compiles
        print("| where | shards | seconds | a second | of the time in the work |")
        print("|---|---|---|---|---|")
        timed("1 process", study, folder / "one", 1)
        timed("2 processes", study, folder / "two", 2)
        with cluster(folder) as address:
            timed("Dask, 2 workers", study, folder / "dask", 2, address)
        print(
            "\n| where | best | " + " | ".join(POLICIES) + " |\n|---|---|" + "---|" * len(POLICIES)
        )
        for where in ("one", "two", "dask"):
            print(f"| {where} | " + " | ".join(gaps(folder / where)) + " |")


def cut(options: argparse.Namespace, folder: Path) -> Study:
    """Write the shards and the study of them."""
    file, format_ = FILES[options.trace]
    text = HEAD.format(policies=json.dumps(POLICIES), limit=options.limit)
    with (options.data / file).open() as trace:
        header = next(trace)
        for number in range(options.shards):
            part, name = folder / "part.csv", f"shard-{number}.json"
            part.write_text(header + "".join(islice(trace, options.rows)))
            shard = import_trace(part, format_, MEMORY, round_ms=ROUND_MS)
            write_instance(shard, folder / name)
            text += ENTRY.format(name=name)
    path = folder / "shards.toml"
    path.write_text(text)
    return read_study(path)


def gaps(folder: Path) -> list[str]:
    """Return the range of gaps of the best schedule and of each policy."""
    records = read_records(folder)
    first = [r for r in records if r.policy == POLICIES[0]]
    found = [[1 - r.lower / r.upper for r in first if r.lower and r.upper]]
    for policy in POLICIES:
        runs = [r for r in records if r.policy == policy]
        found.append([1 - r.lower / r.value for r in runs if r.lower and r.value])
    return [f"{min(g):.2%} .. {median(g):.2%} .. {max(g):.2%}" for g in found]


if __name__ == "__main__":
    with ended_by_reader():
        main()
