"""Certified gaps in seconds on real lengths and arrivals, and which part of the bound gives what.

    python benchmarks/seconds_bounds.py --data DIR [--cases conv:1000 conv:10000:1 ...] [--parts]

A case is NAME:N for a backlog or NAME:N:STRETCH for the arrivals of the trace, slowed down by a
factor.  NAME is one of conv, code (Azure traces), mooncake, mixed, chat as in `traces`.  The model
is the preset of two A100; the certificate is verified each time by the verifier, which shares no
code with what made it.  Gap: (policy - bound) / policy.

With ``--parts`` the bound is compared with those that it contains, as shares of it:

rounds      every round lasts its fixed part, and nothing else is known of it
work        prefill, decoding and reading the cache alone, with unlimited memory
added       both sums of a backlog, each in its own order
rank        by rank, the smallest rest first (the volume bound with what requests take)
line 0, ..  the bound with one line of the roof
alone       each request as if it were alone
weights 1   each request competes, as on a server that is never idle
no company  weights as found, and no request waits for the prompts of others
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from traces import instance as instance_from
from verifying import verified

from kvopt import BatchTime, Instance, Line, certify, run
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.seconds_evaluation import shares, shares_bound
from kvopt.bounds.volume import fluid_completions
from kvopt.kernels.pipes import ended_by_reader
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.problem.hardware.batch_time_files import PRESETS

POLICIES = ("svf", "mc-sf", "fcfs", "sorted-f:phase1=swap")
CASES = ("conv:1000", "code:1000", "chat:1000", "mixed:1000", "conv:1000:1", "code:1000:1")
PRESET = "llama-2-70b-2xa100"


def main() -> None:
    """Print one row for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--limit", type=float, help="seconds for a certificate")
    parser.add_argument("--parts", action="store_true")
    options = parser.parse_args()
    model = PRESETS[PRESET]
    if options.parts:
        head = ["case", "bound s", "rounds", "work", "added", "rank"]
        head += [
            *(f"line {i}" for i in range(len(model.lines))),
            "alone",
            "weights 1",
            "no company",
        ]
    else:
        gaps = [f"{policy} gap (s)" for policy in options.policies]
        head = ["case", "n", "bound s", "best gap", *gaps, "s", "verify s", "file MB"]
    print("|", " | ".join(head), "|\n|" + "---|" * len(head))
    for case in options.cases:
        instance = case_instance(options.data, case)
        cells = parts(instance, model) if options.parts else gaps_of(instance, model, options)
        print("|", " | ".join([case, *cells]), "|", flush=True)


def case_instance(data: Path, case: str) -> Instance:
    """Return the instance of a case, with the trace slowed down where it says so."""
    name, n, *stretch = case.split(":")
    found = instance_from(data, name, int(n), bool(stretch))
    if not stretch:
        return found
    slower = [
        replace(r, arrival_seconds=(r.arrival_seconds or 0.0) * float(stretch[0])) for r in found
    ]
    return Instance(found.memory, slower, name=found.name)


def gaps_of(instance: Instance, model: BatchTime, options: argparse.Namespace) -> list[str]:
    """Certify, verify, and return the gaps."""
    began = time.monotonic()
    clock = Seconds(model)
    runs = {name: run(instance, name, clock=clock) for name in options.policies}
    found = certify(instance, runs.values(), clock=clock, time_limit=options.limit)
    seconds = time.monotonic() - began
    lower, upper = found.lower_bound, found.objective
    assert lower is not None
    assert upper is not None
    gaps = [gap(made.objective, lower) for made in runs.values()]
    times = [f" ({made.wall_seconds:.1f})" for made in runs.values()]
    took, size = verified(found)
    return [
        f"{len(instance):,}", mean(lower, instance), gap(upper, lower),
        *map(str.__add__, gaps, times), f"{seconds:.1f}", f"{took:.1f}", f"{size / 1e6:.1f}",
    ]  # fmt: skip


def gap(value: int | None, lower: int) -> str:
    return "-" if value is None else f"{(value - lower) / value:.2%}"


def mean(total_ns: int, instance: Instance) -> str:
    return f"{total_ns / len(instance) / 1e9:,.2f}"


def parts(instance: Instance, model: BatchTime) -> list[str]:
    """Return the bound, and as shares of it those that it contains."""
    found = seconds_bound(instance, model)
    whole, proof = found.value_ns, found.proof
    nothing = (0,) * len(instance)
    fixed = BatchTime([Line(max(line.round_ns for line in model.lines), 0)])
    boundless = Instance(2**53 - 1, instance.requests)
    values = [
        seconds_bound(instance, fixed).value_ns,
        seconds_bound(boundless, model).value_ns,
        None if any(arrivals_ns(instance)) else added(instance, model),
        by_rank(instance, model),
        *(seconds_bound(instance, with_line(model, i)).value_ns for i in range(len(model.lines))),
        shares_bound(instance, model, replace(proof, weights=nothing, company=())),
        shares_bound(instance, model, replace(proof, weights=(), company=())),
        shares_bound(instance, model, replace(proof, company=())),
    ]
    return [mean(whole, instance), *("-" if v is None else f"{v / whole:.1%}" for v in values)]


def with_line(model: BatchTime, i: int) -> BatchTime:
    """Return the model with one line; what requests last alone is that of one line as well."""
    return BatchTime([model.lines[i]], model.kv_ns, model.prompt_ns)


def added(instance: Instance, model: BatchTime) -> int:
    """Return the sum over k of (n - k + 1) times the k-th smallest of memory and of work."""
    part = shares(instance, model, model.lines, object).takes
    fixed = max(line.round_ns for line in model.lines)
    held = sorted(fixed * r.volume for r in instance)
    work = sorted(x - fixed * r.volume for x, r in zip(part, instance, strict=True))
    pairs = zip(range(len(held), 0, -1), held, work, strict=True)
    total = sum(left * (h + w) for left, h, w in pairs)
    return int(total // instance.memory)


def by_rank(instance: Instance, model: BatchTime) -> int:
    """Return the bound of the fluid that always serves the smallest rest, rank by rank."""
    part = shares(instance, model, model.lines, object)
    when = arrivals_ns(instance)
    jobs = [(a * instance.memory, x) for a, x in zip(when, part.takes.tolist(), strict=True)]
    alone = sorted(a + e for a, e in zip(when, part.alone.tolist(), strict=True))
    fluid = (-(-c // instance.memory) for c in fluid_completions(jobs, 1))
    return int(sum(map(max, fluid, alone))) - sum(when)


if __name__ == "__main__":
    with ended_by_reader():
        main()
