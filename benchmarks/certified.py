"""Certified gaps on real lengths and arrivals, and what the certificate costs.

    python benchmarks/certified.py --data DIR --cases conv:10000 mixed:10000:arrivals
    python benchmarks/certified.py --data DIR --cases conv:10000:6 --seconds
    python benchmarks/certified.py --data DIR --cases conv:10000 --workers 1 2 4
    python benchmarks/certified.py --data DIR --cases conv:10000 --levels 25 50 75

A case is as in `traces.of_case`, with NAME one of conv, code (Azure), mooncake, mixed (an arXiv
summary to four conversations of the stand-in), chat (the stand-in) and types (its lengths in
multiples of 16).  Seconds are those of two A100.  A limit of e2e is what `svf` attains for so many
percent; then the shares that attain it come as well, and the points up to the ceiling.  Each
certificate is verified by the verifier, which shares no code with what made it.
Gap: (policy - bound) / policy.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from pathlib import Path

from traces import of_case, verified

from kvopt import Certificate, Instance, certify, run
from kvopt.kernels.pipes import writing_output
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.hardware.batch_time_files import PRESETS
from kvopt.problem.slo import Slo

MODEL = "llama-2-70b-2xa100"


def main() -> None:
    """Print one row for each case, number of workers and service level."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", required=True)
    parser.add_argument("--policies", nargs="+", default=["svf", "mc-sf", "fcfs"])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a certificate")
    parser.add_argument("--seconds", action="store_true", help="on the clock of two A100")
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    parser.add_argument("--levels", type=int, nargs="*", default=[], metavar="PERCENT")
    options = parser.parse_args()
    clock: Clock = Seconds(PRESETS[MODEL]) if options.seconds else ROUNDS
    certify(of_case(options.data, "chat:20"), ["svf"], clock=clock, time_limit=2)  # compiles
    gaps = [f"{policy} gap (s)" for policy in options.policies]
    head = ["case", "workers", "bound a request", "best gap", *gaps, "s", "verify s", "MB", "peak"]
    if options.levels:
        head += ["e2e", *options.policies, "best", "ceiling", "points"]
    print("|", " | ".join(head), "|\n|" + "---|" * len(head))
    for case in options.cases:
        whole = of_case(options.data, case)
        for workers in options.workers:
            instance = replace(whole, workers=workers)
            for slo in levels(instance, clock, options.levels):
                cells = row(instance, clock, slo, options)
                print("|", " | ".join([case, str(workers), *cells]), "|", flush=True)


def levels(instance: Instance, clock: Clock, percents: list[int]) -> list[Slo | None]:
    """Return the limits that `svf` attains for so many percent; one None without any."""
    if not percents:
        return [None]
    latencies = sorted(run(instance, "svf", clock=clock).latencies)
    found: list[Slo | None] = []
    for percent in percents:
        after = latencies[len(latencies) * percent // 100 - 1]
        found.append(Slo(e2e=after if clock.is_even else f"{after}ns"))
    return found


def row(
    instance: Instance, clock: Clock, slo: Slo | None, options: argparse.Namespace
) -> list[str]:
    """Run the policies, certify, verify, and return the cells."""
    runs = [run(instance, name, clock=clock) for name in options.policies]
    began = time.monotonic()
    found = certify(instance, runs, clock=clock, slo=slo, time_limit=options.limit)
    seconds = time.monotonic() - began
    took, size = verified(found)
    assert found.lower_bound is not None
    gaps = [f"{gap(r.objective, found.lower_bound)} ({r.wall_seconds:.1f})" for r in runs]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    a_request = found.lower_bound / len(instance) / clock.scale
    cells = [f"{a_request:,.2f}", gap(found.objective, found.lower_bound), *gaps]
    cells += [f"{seconds:.1f}", f"{took:.1f}", f"{size / 1e6:.1f}", f"{peak:.0f}"]
    return cells + ([] if slo is None else attained(found, slo))


def gap(value: int | None, lower: int) -> str:
    return "-" if value is None else f"{(value - lower) / value:.2%}"


def attained(found: Certificate, slo: Slo) -> list[str]:
    """Return the cells of a service level."""
    claim, count = found.in_time, len(found.instance)
    assert claim is not None
    assert claim.best_attained is not None
    numbers = [*(n or 0 for n in claim.attained), claim.best_attained, claim.ceiling]
    points = 100 * (claim.ceiling - claim.best_attained) / count
    return [str(slo.e2e), *(f"{n / count:.2%}" for n in numbers), f"{points:.2f}"]


if __name__ == "__main__":
    with writing_output():
        main()
