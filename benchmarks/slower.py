"""How much slower a machine may be: real arrivals in seconds, slowed down by some factors.

    python benchmarks/slower.py --data DIR [--requests N] [--stretch F ...] [--limit S]

For the first requests of the Azure conversations, on two A100, with the time between arrivals
multiplied by each factor: the phi of the best schedule found and of schedulers ("no scheduler
on a machine more than phi times slower does as well"), beside the certified gap of their latency.
The certificate is written and verified each time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from seconds_bounds import PRESET, case_instance
from verifying import verified

from kvopt import Certificate, certify, run
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import PRESETS
from kvopt.problem.instance import Instance

JUDGED = ("svf", "mc-sf", "fcfs")
TRIED = ("patient", "patient:window=100,patience=16", "patient:window=100,patience=40")
"""Further ones, the best of which is likely to be the best schedule."""


def row(instance: Instance, limit: float | None) -> list[str]:
    """Certify, verify, and return the cells of a row."""
    clock = Seconds(PRESETS[PRESET])
    began = time.monotonic()
    runs = [run(instance, name, clock=clock) for name in (*JUDGED, *TRIED)]
    simulated = time.monotonic() - began
    began = time.monotonic()
    found = certify(instance, runs, clock=clock, time_limit=limit, slower=True)
    certified = time.monotonic() - began
    took, size = verified(found)
    judged = [cell(found, place) for place in range(-1, len(JUDGED))]
    times = [f"{each:.1f}" for each in (simulated, certified, took)]
    return [*judged, *times, f"{size / 1e6:.1f}"]


def cell(found: Certificate, place: int) -> str:
    """Return phi and the gap of a run, before the first one those of the best schedule."""
    chosen = None if place < 0 else found.runs[place]
    value, lower = found.objective if chosen is None else chosen.objective, found.lower_bound
    gap = "-" if value is None or lower is None else f"{(value - lower) / value:.1%}"
    return f"{found.worded_slower_than(chosen)} ({gap})"


def main() -> None:
    """Print a row for each factor."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--stretch", type=float, nargs="+", default=[4, 5, 6, 7, 8])
    parser.add_argument("--limit", type=float, help="seconds for a certificate")
    given = parser.parse_args()
    head = ["stretch", "best phi (gap)", *(f"{name} phi (gap)" for name in JUDGED)]
    head += ["runs s", "certify s", "verify s", "file MB"]
    print("|", " | ".join(head), "|\n|" + "---|" * len(head))
    for stretch in given.stretch:
        instance = case_instance(given.data, f"conv:{given.requests}:{stretch}")
        print("|", " | ".join([f"{stretch:g}", *row(instance, given.limit)]), "|", flush=True)


if __name__ == "__main__":
    with ended_by_reader():
        main()
