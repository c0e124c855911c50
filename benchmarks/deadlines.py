"""How many requests can be done in time: the bracket from the best run found to the ceiling.

    python benchmarks/deadlines.py --data DIR [--n 10000] [--limit 60]

The first Azure conversations, as a backlog and with the arrivals of the trace, in rounds of 50 ms
and in seconds on two A100, each at the deadlines that `svf` attains for 25, 50 and 75%.  Each
certificate is written and checked by the verifier, which shares no code with what made it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from traces import instance as instance_from
from verifying import verified

from kvopt import certify, run
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.deadlines import Aim, Deadline
from kvopt.problem.hardware.batch_time_files import PRESETS
from kvopt.problem.instance import Instance

SHARES = (25, 50, 75)
POLICIES = ("svf", "mc-sf", "fcfs")


def main() -> None:
    """Print one row for each clock, arrivals and deadline."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a certificate")
    options = parser.parse_args()
    clocks: dict[str, Clock] = {"rounds": ROUNDS, "seconds": Seconds(PRESETS["llama-2-70b-2xa100"])}
    head = ["case", "deadline", *POLICIES, "best", "ceiling", "points", "s", "verify s"]
    print("|", " | ".join(head), "|\n|" + "---|" * len(head))
    for arrivals in (False, True):
        instance = instance_from(options.data, "conv", options.n, arrivals)
        for name, clock in clocks.items():
            latencies = sorted(run(instance, "svf", clock=clock).latencies)
            for share in SHARES:
                after = latencies[len(latencies) * share // 100 - 1]
                case = f"{'arrivals' if arrivals else 'backlog'}, {name}"
                cells = row(instance, clock, after, options.limit)
                print("|", " | ".join([case, *cells]), "|", flush=True)


def row(instance: Instance, clock: Clock, after: int, limit: float) -> list[str]:
    """Certify, verify, and return the cells of a row."""
    rounds, began = clock.is_even, time.monotonic()
    lengths = (after, None) if rounds else (None, after)
    deadline = Deadline(Aim.COMPLETION, *lengths)
    found = certify(instance, POLICIES, clock=clock, deadline=deadline, time_limit=limit)
    seconds = time.monotonic() - began
    claim = found.in_time
    assert claim is not None
    assert claim.best_attained is not None
    took, _ = verified(found)
    count = len(instance)
    shares = [f"{100 * (n or 0) / count:.2f}%" for n in (*claim.attained, claim.best_attained)]
    points = 100 * (claim.ceiling - claim.best_attained) / count
    shown = f"{after:,} rounds" if rounds else f"{after / 1e9:,.1f} s"
    ceiling = f"{100 * claim.ceiling / count:.2f}%"
    return [shown, *shares, ceiling, f"{points:.2f}", f"{seconds:.1f}", f"{took:.1f}"]


if __name__ == "__main__":
    with ended_by_reader():
        main()
