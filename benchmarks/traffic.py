"""The experiments in continuous time of jaillet-2025-v2 (5.2), wang-2025 (7) and chen-2025 (6).

    python benchmarks/traffic.py [PART ...] [--data DIR]

with the parts speed, latency, table-1, grid, errors, sweeps, memory, wang and chen.

LMSYS-Chat-1M, which the papers draw conversations from, is gated: every figure here is of the
stand-in (``kvopt generate conversation``).  The arXiv half of wang-2025's mixture is the public
table of lengths when its folder is given with ``--data``, else a stand-in too.  Batches take what
the preset llama-2-70b-2xa100 says.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from traces import MEMORY, trace

from kvopt import Instance, Outcome, Request, TooLarge, generate
from kvopt.seconds import SecondsRun, simulate_seconds
from kvopt.seconds.files import PRESETS
from kvopt.seconds.sweep import alpha_grid, smallest_safe_alpha
from kvopt.simulator import Stopped

MODEL = PRESETS["llama-2-70b-2xa100"]
EIGHT = (
    "mc-sf", "fcfs", "alpha-protect:alpha=0.3", "alpha-protect:alpha=0.25",
    "alpha-beta:alpha=0.2,beta=0.2", "alpha-beta:alpha=0.2,beta=0.1",
    "alpha-beta:alpha=0.1,beta=0.2", "alpha-beta:alpha=0.1,beta=0.1",
)  # fmt: skip
PRINTED = (32.112, 46.472, 51.933, 51.046, 50.401, 50.395, 53.393, 50.862)
"""Table 1 of jaillet-2025-v2: mean latencies of the eight."""
EVERY = (
    *EIGHT, "mc-sf-total", "svf", "mc-sf:pred=noise,eps=0.5,alpha=0.1", "sorted-f:phase1=swap",
    "sorted-f:phase1=quantile", "lp-swap", "sorted-lp", "a-max:intervals=buckets",
    "a-min:intervals=buckets", "a-min:intervals=relative,eps=0.5", "a-l:intervals=buckets",
    "a-switch", "a-random", "sorted-f-a-min:phase1=quantile,intervals=relative,eps=0.5",
    "sorted-f:phase1=exact", "h-sf",
)  # fmt: skip
RATES = (50, 10)
ENDLESS = 50_000
"""Rounds after which a run with coins counts as endless; a thousand requests take 1,500."""


def conversation(n: int, rate: float, seed: int) -> Instance:
    return generate("conversation", n=n, seed=seed, parameters={"per_second": rate})


def mean(run: SecondsRun) -> float | None:
    """Return the mean latency in seconds, None for a livelock."""
    return None if run.objective_ns is None else run.objective_ns / 1e9 / max(len(run.starts), 1)


def shown(value: float | None, digits: int = 2) -> str:
    return "loop" if value is None else f"{value:.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
    print()


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    return statistics.linear_regression(xs, ys).slope


def latency(options: argparse.Namespace) -> None:
    """Figure 3: mean latency over the number of requests, its slope, and seconds to simulate."""
    sizes = range(1000, 10_001, 1000)
    for rate in RATES:
        print(f"### Mean latency, {rate} requests a second\n")
        whole = conversation(10_000, rate, options.seed)
        rows = []
        for policy in EIGHT:
            runs = [
                simulate_seconds(Instance(MEMORY, whole.requests[:n]), policy, MODEL) for n in sizes
            ]
            means = [mean(run) for run in runs]
            known = [value for value in means if value is not None]
            rise = slope(sizes, known) if len(known) == len(means) else None
            rows.append(
                [policy, *(shown(value, 1) for value in means), shown(rise, 5),
                 f"{runs[-1].evictions}", f"{runs[-1].seconds:.2f}"]
            )  # fmt: skip
        table(["policy", *map(str, sizes), "slope", "evictions", "s"], rows)


def table_1(options: argparse.Namespace) -> None:
    """Table 1: 50 runs of 1,000 requests at 50 a second."""
    rows = []
    for policy, printed in zip(EIGHT, PRINTED, strict=True):
        found = [
            mean(simulate_seconds(conversation(1000, 50, seed), policy, MODEL))
            for seed in range(options.runs)
        ]
        known = [value for value in found if value is not None]
        average = statistics.mean(known)
        rows.append(
            [policy, shown(average, 3), shown(statistics.stdev(known), 3), shown(max(known), 3),
             shown(min(known), 3), str(len(found) - len(known)), f"{printed:.3f}", "", ""]
        )  # fmt: skip
    best, printed_best = float(rows[0][1]), PRINTED[0]
    for row, printed in zip(rows, PRINTED, strict=True):
        row[-2:] = [f"{float(row[1]) / best:.3f}", f"{printed / printed_best:.3f}"]
    table(
        ["policy", "average", "std", "max", "min", "loops", "printed average", "x mc-sf",
         "printed x mc-sf"],
        rows,
    )  # fmt: skip


def grid(options: argparse.Namespace) -> None:
    """The 0.01 grid: the smallest alpha from which on nothing loops (printed: 0.21, 0.24)."""
    rows = []
    for rate in RATES:
        for n in (1000, 10_000):
            for seed in range(options.seed, options.seed + 3):
                runs = alpha_grid(conversation(n, rate, seed), MODEL)
                loops = [str(float(a)) for a, run in runs if run.outcome is Outcome.LIVELOCK]
                smallest = smallest_safe_alpha(runs)
                safe = "-" if smallest is None else str(float(smallest))
                rows.append([str(rate), str(n), str(seed), safe, " ".join(loops) or "none"])
    table(["requests a second", "n", "seed", "smallest safe alpha", "loops"], rows)


def errors(options: argparse.Namespace) -> None:
    """Figure 5: noisy predictions with a margin of 0.1."""
    sizes = (1000, 2000, 5000, 10_000)
    policies = [
        "mc-sf", *(f"mc-sf:pred=noise,eps={eps},alpha=0.1" for eps in (0.2, 0.5, 0.8)),
        *(f"mc-sf:pred=noise,eps={eps}" for eps in (0.2, 0.5, 0.8)), "fcfs",
    ]  # fmt: skip
    for rate in RATES:
        print(f"### Prediction errors, {rate} requests a second (mean latency; evictions)\n")
        whole = conversation(10_000, rate, options.seed)
        rows = []
        for policy in policies:
            cells = []
            for n in sizes:
                run = simulate_seconds(Instance(MEMORY, whole.requests[:n]), policy, MODEL)
                cells.append(f"{shown(mean(run), 1)} ({run.evictions})")
            rows.append([policy, *cells])
        table(["policy", *map(str, sizes)], rows)


def sweeps(options: argparse.Namespace) -> None:
    """Figures 9, 10, 12 and 13: mean latency over alpha, and over beta."""
    alphas = (0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
    betas = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.9)
    for rate in RATES:
        instance = conversation(options.n, rate, options.seed)

        def cell(alpha: float, beta: float, instance: Instance = instance) -> str:
            run = simulate_seconds(
                instance, f"alpha-beta:alpha={alpha},beta={beta},rounds={ENDLESS}", MODEL
            )
            return f"{shown(mean(run))} ({run.evictions})"

        print(f"### Mean latency (evictions), {rate} requests a second, n = {options.n}\n")
        table(
            ["alpha", *map(str, alphas)],
            [[f"beta {beta}", *(cell(alpha, beta) for alpha in alphas)] for beta in (0.1, 0.2)],
        )
        table(
            ["beta", *map(str, betas)],
            [[f"alpha {alpha}", *(cell(alpha, beta) for beta in betas)] for alpha in (0.1, 0.2)],
        )


def memory(options: argparse.Namespace) -> None:
    """Figures 8, 11 and 4: share of memory in use over time, and tokens a second."""
    for rate in RATES:
        instance, rows = conversation(1000, rate, options.seed), []
        for policy in ("mc-sf", "fcfs"):
            run = simulate_seconds(instance, policy, MODEL)
            seconds, held = run.memory_over_time()
            area = sum(
                (t1 - t0) * (h0 + h1) / 2
                for t0, t1, h0, h1 in zip(seconds, seconds[1:], held, held[1:], strict=False)
            )
            last = (instance.requests[-1].arrival_seconds or 0.0) * 1e9
            done = sum(
                r.prompt + r.output
                for r, end in zip(instance, run.completions_ns, strict=True)
                if end is not None and end <= last
            )
            rows.append(
                [policy, f"{run.peak_memory:,}", f"{area / seconds[-1] / MEMORY:.1%}",
                 f"{run.tokens_per_second:.0f}", f"{done / last * 1e9:.0f}"]
            )  # fmt: skip
        print(f"### Memory and throughput, {rate} requests a second, n = 1,000\n")
        table(
            ["policy", "peak", "mean share of memory", "output tokens/s to the end",
             "tokens/s (in + out) while requests arrive"],
            rows,
        )  # fmt: skip


def backlog_rows(
    sizes: Sequence[int], policies: Sequence[str], whole: Sequence[Request], limit: float
) -> list[list[str]]:
    rows = []
    for policy in policies:
        cells, spent = [], 0.0
        for n in sizes:
            if spent > limit:
                cells.append("-")
                continue
            began = time.monotonic()
            run = simulate_seconds(Instance(MEMORY, whole[:n]), policy, MODEL)
            spent = time.monotonic() - began
            cells.append(shown(mean(run)))
        rows.append([policy, *cells, f"{spent:.1f}"])
    return rows


def wang(options: argparse.Namespace) -> None:
    """wang-2025 figure 8: 1,600 conversations and 400 summaries, all there at once."""
    rng = random.Random(options.seed)
    chat = list(generate("conversation", n=1600, seed=options.seed))
    if options.data is not None:
        papers = rng.sample(trace(options.data, "arxiv").requests, 400)
    else:
        papers = list(generate("summarisation", n=400, seed=options.seed))
    whole = [Request(0, r.prompt, r.output) for r in chat + papers]
    rng.shuffle(whole)
    sizes = (200, 400, 800, 1200, 1600, 2000)
    policies = (
        "fcfs", "mc-sf", "sorted-lp", "lp-swap", "sorted-f:phase1=swap",
        "sorted-f:phase1=quantile", "svf",
    )  # fmt: skip
    print("### Mean latency of the mixture, all at once\n")
    rows = backlog_rows(sizes, policies, whole, options.limit)
    table(["policy", *map(str, sizes), "s for the last"], rows)


def chen(options: argparse.Namespace) -> None:
    """chen-2025 figures 5-7: intervals of three kinds, all there at once."""
    whole = generate("conversation", n=2000, seed=options.seed).requests
    sizes = (200, 400, 800, 1200, 1600, 2000)
    groups = {
        "rough, [1, 1000] (figure 5)": ["intervals=rough"],
        "buckets of 100 (figure 6)": ["intervals=buckets"],
        "[(1-x) o, (1+x) o] (figure 7)": [f"intervals=relative,eps={x}" for x in (0.1, 0.95, 0.99)],
    }
    for title, kinds in groups.items():
        print(f"### Mean latency, {title}\n")
        policies = [f"{name}:{kind}" for kind in kinds for name in ("a-max", "a-min")]
        rows = backlog_rows(sizes, policies, whole, options.limit)
        table(["policy", *map(str, sizes), "s for the last"], rows)
    rows = backlog_rows(sizes, ["h-sf", "mc-sf"], whole, options.limit)
    table(["with true outputs", *map(str, sizes), "s for the last"], rows)


def speed(options: argparse.Namespace) -> None:
    """Processor seconds to simulate 10,000 requests at 50 a second, for every policy."""
    instance = conversation(10_000, 50, options.seed)
    simulate_seconds(conversation(100, 50, 0), "mc-sf", MODEL)  # loads what is loaded when used
    print("| policy | s | mean latency | evictions |\n|---|---|---|---|")
    for policy in EVERY:
        began = time.process_time()

        def late(began: float = began) -> bool:
            return time.process_time() - began > float(options.limit)

        try:
            run = simulate_seconds(instance, policy, MODEL, should_stop=late)
        except (Stopped, TooLarge) as error:
            reason = f"more than {options.limit:.0f}" if isinstance(error, Stopped) else "too large"
            print(f"| {policy} | {reason} | - | - |", flush=True)
            continue
        spent = time.process_time() - began
        cells = f"{spent:.2f} | {shown(mean(run), 1)} | {run.evictions:,}"
        print(f"| {policy} | {cells} |", flush=True)
    print()


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "speed": speed,
    "latency": latency,
    "table-1": table_1,
    "grid": grid,
    "errors": errors,
    "sweeps": sweeps,
    "memory": memory,
    "wang": wang,
    "chen": chen,
}


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=60.0)
    options = parser.parse_args()
    for part in options.parts:
        began = time.monotonic()
        PARTS[part](options)
        print(f"({part}: {time.monotonic() - began:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
