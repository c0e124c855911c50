"""From a trace file to a report with the commands that a user types, one process each.

    python benchmarks/pipeline.py --data DIR --cases mixed:100000 --limit 200
    python benchmarks/pipeline.py --data DIR --cases conv:19366 conv:19366:arrivals
                                  --steps import certify verify --limit 60

A case is NAME:N or NAME:N:arrivals as in `traces.of_case`.  The Azure and Mooncake traces are
imported from their own files as far as these reach; everything else (a trace that is repeated, the
stand-in, ``types``) is written to a CSV file first, and that is not timed.  Steps:

import    kvopt import: the instance file
run       kvopt run with all policies
bound     kvopt bound with the limit
certify   kvopt certify with all policies and the limit: schedule, bound, proof, gaps
verify    kvopt verify of that certificate
study     kvopt study of the instance file: all of it again, each policy apart, into a folder
report    kvopt report --verify of that folder

Of each step: wall and CPU seconds and the peak memory of its largest process.  Then the certified
gap, (value - bound) / value, of the best schedule and of each policy; ``livelock`` or
``unfinished`` where a policy has none.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from traces import FILES, MEMORY, ROUND_MS, instance

from kvopt.kernels.pipes import writing_output

STEPS = ("import", "run", "bound", "certify", "verify", "study", "report")
DEFAULT_STEPS = ("import", "certify", "verify", "study", "report")
POLICIES = (
    "svf",
    "patient",
    "mc-sf",
    "mc-sf-total",
    "fcfs",
    "alpha-protect:alpha=0.25",
    "alpha-beta:alpha=0.2,beta=0.2",
    "a-min",
)
ROWS = {"conv": 19_366, "code": 8_819, "mooncake": 12_031}
"""Rows of a trace; beyond them it is repeated."""
STUDY = """
title = "{case}"
policies = {policies}
[limits]
time_limit = {limit}
threads = {threads}
[[instances]]
file = "instance.json"
"""


@dataclass(frozen=True)
class Cost:
    """What a command took.

    Parameters
    ----------
    seconds, cpu
        Wall and processor time, with the processes that it began.
    megabytes
        Peak memory of the largest of them.
    output, messages
        What it printed, and what it said on standard error.
    """

    seconds: float
    cpu: float
    megabytes: float
    output: str
    messages: str


def main() -> None:
    """Print the cost of each step of each case, then the gaps."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", required=True)
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=DEFAULT_STEPS)
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--limit", type=float, default=60.0, help="for bound, certify and study")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", type=int, default=MEMORY)
    options = parser.parse_args()
    print("| case | step | s | CPU s | peak MB | load |\n|---|---|---|---|---|---|")
    rows = [line for case in options.cases for line in finished(case, options)]
    if rows:
        head = ["case", "bound", "best", *options.policies]
        print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
        print("\n".join(rows))


def finished(case: str, options: argparse.Namespace) -> Iterator[str]:
    """Carry out a case and yield its row of gaps if there is one."""
    with TemporaryDirectory() as name:
        folder, total = Path(name), 0.0
        for step, command in commands(case, options, folder):
            cost = measured(command)
            total += cost.seconds
            tell(case, step, cost.seconds, f"{cost.cpu:.1f} | {cost.megabytes:.0f}")
            if step == "import":
                assert f": {case.split(':')[1]} requests" in cost.messages, cost.messages
            if step == "certify":
                row = gaps(case, json.loads(cost.output))
                print(row, file=sys.stderr, flush=True)
                yield row
        tell(case, "all", total, " | ")
        for path in sorted(p for p in folder.rglob("*") if p.suffix in (".json", ".html")):
            size = path.stat().st_size / 1e6
            print(f"{path.relative_to(folder)}: {size:.1f} MB", file=sys.stderr)


def tell(case: str, step: str, seconds: float, rest: str) -> None:
    print(f"| {case} | {step} | {seconds:.1f} | {rest} | {os.getloadavg()[0]:.1f} |", flush=True)


def commands(
    case: str, options: argparse.Namespace, folder: Path
) -> Iterator[tuple[str, list[str]]]:
    """Yield the steps that are asked for, each with its command."""
    file, certificate = str(folder / "instance.json"), str(folder / "certificate.json")
    study, report = folder / "study.toml", str(folder / "study")
    chosen = [part for policy in options.policies for part in ("--policy", policy)]
    limits = ["--time-limit", str(options.limit), "--threads", str(options.threads)]
    policies, limit, threads = json.dumps(list(options.policies)), options.limit, options.threads
    study.write_text(STUDY.format(case=case, policies=policies, limit=limit, threads=threads))
    every = {
        "import": ["import", *source(case, options, folder), "-o", file],
        "run": ["run", file, *chosen, "--json"],
        "bound": ["bound", file, "--time-limit", str(limit), "--json"],
        "certify": ["certify", file, *chosen, *limits, "-o", certificate, "--json"],
        "verify": ["verify", certificate],
        "study": ["study", str(study), "--jobs", "1", "--out", report],
        "report": ["report", report, "--verify"],
    }
    for step in STEPS:
        if step in options.steps:
            yield step, every[step]


def source(case: str, options: argparse.Namespace, folder: Path) -> list[str]:
    """Return what to import: the file of a trace, or one that is written now."""
    name, n, *arrivals = case.split(":")
    chosen = ["--memory", str(options.memory), *([] if arrivals else ["--all-at-once"])]
    if int(n) <= ROWS.get(name, 0):
        file, format_ = FILES[name]
        chosen += ["--limit", n, "--round-ms", str(ROUND_MS)]
        return [str(options.data / file), "--format", format_, *chosen]
    path = folder / "trace.csv"
    # In a process of its own: the peak of this one is the least that the commands seem to have.
    writer = multiprocessing.get_context("spawn").Process(
        target=write_trace, args=(options.data, name, int(n), path)
    )
    writer.start()
    writer.join()
    assert writer.exitcode == 0
    return [str(path), "--format", "csv", *chosen]


def write_trace(data: Path, name: str, n: int, path: Path) -> None:
    """Write the requests of a case with their rounds of arrival."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("arrival", "prompt", "output"))
        rows.writerows((r.arrival, *r.shape) for r in instance(data, name, n, True))


def measured(command: Sequence[str]) -> Cost:
    """Run a command of kvopt to its end."""
    with TemporaryFile("w+") as output, TemporaryFile("w+") as messages:
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "kvopt", *command], stdout=output, stderr=messages
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        messages.seek(0)
        said = messages.read()
        assert process.returncode == 0, said
        cpu = usage.ru_utime + usage.ru_stime
        return Cost(seconds, cpu, usage.ru_maxrss / 1024, output.read(), said)


def gaps(case: str, found: dict[str, object]) -> str:
    """Return the row of a certificate from what ``kvopt certify --json`` printed."""
    lower, upper, policies = found["lower"], found["upper"], found["policies"]
    assert isinstance(lower, int)
    assert isinstance(upper, int)
    assert isinstance(policies, list)
    cells = [f"{(upper - lower) / upper:.2%}"]
    for run in policies:
        value = run["value"]
        cells.append(run["outcome"] if value is None else f"{(value - lower) / value:.2%}")
    return f"| {case} | {lower:,} | {' | '.join(cells)} |"


if __name__ == "__main__":
    with writing_output():
        main()
