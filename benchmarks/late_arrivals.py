"""Late arrivals and idle gaps: seconds, memory and answers of commands, wherever a clock begins.

python benchmarks/late_arrivals.py [--requests 6] [--time-limit 20]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from kvopt import Instance, generate, write_instance
from kvopt.kernels.pipes import ended_by_reader

COMMANDS = (["solve"], ["bound", "--method", "lp"], ["bound"], ["certify", "--policy", "svf"])


def late(instance: Instance, first: int, gap: int) -> Instance:
    """Return the instance twice, from a round on, with so many idle rounds in between."""
    one = instance.shifted(first)
    two = one.shifted(instance.last_arrival + instance.total_output + gap)
    again = [replace(request, id=f"again {request.id}") for request in two]
    return Instance(instance.memory, [*one, *again])


def measured(command: list[str], path: Path, seconds: float) -> tuple[float, float, str]:
    """Return wall seconds, megabytes at most, and both sides of what a command found."""
    output = ["-o", f"{path}.out"] if command[0] == "certify" else []
    words = [sys.executable, "-m", "kvopt", command[0], str(path), *command[1:], *output]
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen([*words, "--json", "-t", str(seconds)], stdout=said)
        _, _, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - began
        said.seek(0)
        found = json.load(said)
    sides = [found.get(key) for key in ("objective", "upper", "lower_bound", "lower", "value")]
    return wall, usage.ru_maxrss / 1024, "/".join(str(side) for side in sides if side is not None)


def main() -> None:
    """Print a row for each command and clock."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=6)
    parser.add_argument("--time-limit", type=float, default=20.0)
    arguments = parser.parse_args()
    instance = generate("arrival-1", n=arguments.requests, seed=3)
    print(f"{'command':32} {'first':>8} {'gap':>8} {'s':>6} {'MB':>6}  answer")
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            for first, gap in ((0, 0), (10**8, 0), (10**12, 0), (10**12, 10**12)):
                path = Path(folder) / "late.json"
                write_instance(late(instance, first, gap), path)
                wall, most, answer = measured(command, path, arguments.time_limit)
                name = " ".join(command)
                print(f"{name:32} {first:8.0e} {gap:8.0e} {wall:6.1f} {most:6.0f}  {answer}")


if __name__ == "__main__":
    with ended_by_reader():
        main()
