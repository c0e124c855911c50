"""Machine hours of a service level over time: perfect system, formula of planners, best schedule.

    python benchmarks/over_time.py --data DIR [--cases conv:8 code:8 day:20000]
        [--machines llama-3-8b@h100 llama-3-70b@4xh100] [--every 10m] [--seconds 10] [--out DIR]

NAME:K is a trace of Azure, K copies of it, each shifted in a circle by a K-th of its length;
NAME:K:S copies its first S seconds only.
day:N:P has N conversations of Azure, drawn, whose rate is a sine over a day; it is compressed until
the formula makes P machines at its peak, 20 by default, and a window is a sixth of it.
humps:N are N requests of `kvopt generate two-humps` in 20 minutes.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import traces

from kvopt import Instance, Request, Seconds, batch_time, generate
from kvopt.fleets import FleetOverTime, fleet_over_time
from kvopt.fleets.targets import service_rate
from kvopt.kernels.pipes import writing_output
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.slo import Slo

MEMORY = {"llama-3-8b@h100": 426_784, "llama-3-70b@4xh100": 448_280}
"""Tokens of a machine, as `kvopt hardware capacity` computes them."""
SLO = "ttft=2s,tpot=50ms"
SWING = 0.8
"""Amplitude of the rate of a day, as a share of its mean."""
WINDOWS = 6


def main() -> None:
    """Print a row for each case and machine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=["conv:8", "code:8", "day:20000"])
    parser.add_argument("--machines", nargs="+", default=[*MEMORY])
    parser.add_argument("--every", default="10m")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--policies", nargs="+", default=[])
    parser.add_argument("--routers", nargs="+", default=[])
    parser.add_argument("--scope", default="pauses+chunks")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    print("| case, machine | formula | proved | sufficient | machine hours | by | processor s |")
    print("|---|---|---|---|---|---|---|")
    for case in given.cases:
        for machine in given.machines:
            instance, every = of_case(given.data, case, machine, given.every)
            began = time.process_time()
            found = fleet_over_time(
                instance,
                every,
                slo=SLO,
                clock=Seconds(batch_time(machine)),
                scope=given.scope,
                policies=given.policies,
                routers=given.routers,
                time_limit=given.seconds,
                out=given.out and given.out / f"{case}-{machine}".replace(":", "-"),
                observer=lambda text: print(f"\r{text:70}", end="", flush=True),
            )
            print(f"\r{row(case, machine, found, time.process_time() - began)}", flush=True)


def row(case: str, machine: str, found: FleetOverTime, seconds: float) -> str:
    """Return the row of a result: numbers of machines by windows, and the three sums."""
    columns = (
        " ".join(
            "-" if (size := getattr(window, name)) is None else str(size)
            for window in found.windows
        )
        for name in ("formula", "proved", "sufficient")
    )
    proved, formula = found.worded(found.proved, up=False), found.worded(found.formula, up=True)
    upper = found.worded(found.sufficient, up=True)
    named = f"{case}, {len(found.problem.problem.instance):,} requests, {machine}"
    missed = f"misses in {found.formula_misses} windows"
    sums = f"proved {proved}, formula {formula} ({missed}), sufficient {upper}"
    return f"| {named} | {' | '.join(columns)} | {sums} | {found.scheduler} | {seconds:.0f} |"


def of_case(data: Path, case: str, machine: str, every: str) -> tuple[Instance, str]:
    """Return the instance of a case, and the length of its windows."""
    name, size, *more = case.split(":")
    if name == "day":
        peak = int(more[0]) if more else 20
        return day(traces.trace(data, "conv"), int(size), machine, peak)
    if name == "humps":
        return generate("two-humps", int(size), MEMORY[machine], seed=1), every
    whole = replace(traces.trace(data, name), memory=MEMORY[machine], round_ms=None)
    if more:
        first = [r for r in whole if (r.arrival_seconds or 0.0) < float(more[0])]
        whole = replace(whole, requests=first)
    return superposed(whole, int(size)), every


def superposed(whole: Instance, copies: int) -> Instance:
    """Return copies of a trace at the same time, each shifted in a circle."""
    span = max(request.arrival_seconds or 0.0 for request in whole)
    requests = [
        replace(
            request,
            id=f"{copy}-{request.id}",
            arrival=0,
            arrival_seconds=((request.arrival_seconds or 0.0) + span * copy / copies) % span,
        )
        for copy in range(copies)
        for request in whole
    ]
    return replace(whole, requests=sorted(requests, key=lambda r: r.arrival_seconds or 0.0))


def day(whole: Instance, count: int, machine: str, peak: int) -> tuple[Instance, str]:
    """Return a drawn day whose peak needs so many machines by the formula, and its windows."""
    rng = random.Random(1)
    shapes = [request.shape for request in rng.choices(whole.requests, k=count)]
    plain = Instance(MEMORY[machine], [Request(0, s, o) for s, o in shapes])
    clock = Seconds(batch_time(machine))
    rate = service_rate(plain, clock, Slo.parse(SLO).levels(plain, rounds=False)) * NANOSECONDS
    span = math.ceil((1 + SWING) * count / (peak * float(rate)) / WINDOWS) * WINDOWS
    times = sorted(drawn_times(rng, count, span))
    requests = [
        Request(0, s, o, arrival_seconds=round(t, 6))
        for t, (s, o) in zip(times, shapes, strict=True)
    ]
    return replace(plain, requests=requests), f"{span // WINDOWS}s"


def drawn_times(rng: random.Random, count: int, span: float) -> Iterator[float]:
    """Yield times with the density 1 - a cos(2 pi t / span), by rejection."""
    while count:
        t = rng.random() * span
        if rng.random() * (1 + SWING) <= 1 - SWING * math.cos(2 * math.pi * t / span):
            count -= 1
            yield t


if __name__ == "__main__":
    with writing_output():
        main()
