"""Compare the headline figures of this checkout with those of another one.

    python benchmarks/before_after.py OTHER [--rounds 5] [--warm-up 1] [--only NAME ...]

Each figure is measured in a process of its own, in turn in the one and the other checkout, so that
a machine that changes its pace changes both.  Medians and their ratio are printed.  Everything was
run once before anything counts, since what is compiled at first use is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]

SOLVE = """
from kvopt import generate, solve
times = []
for seed in {seeds}:
    found = solve(generate("arrival-1", {n}, seed=seed), "exact", time_limit=120, threads=1)
    assert found.objective == found.lower_bound
    times.append(found.seconds)
print(sum(times))
"""
GAP = """
from kvopt import generate, solve
print(100 * solve(generate("{family}", seed=3), time_limit=60, threads=1).gap)
"""
CERTIFY = """
from kvopt import certify, generate
found = certify(generate("conversation", 10_000, 16492, seed=1), ["svf"], time_limit={limit})
print(100 * found.gap)
"""
POLICY = """
from kvopt import generate, run
small = generate("conversation", 1000, 16492, seed=1)
run(small, "{policy}")
found = run(generate("conversation", 100_000, 16492, seed=1), "{policy}")
print(found.wall_seconds if hasattr(found, "wall_seconds") else found.seconds)
"""
BUILD = """
import sys
sys.path.insert(0, "benchmarks")
import model_building
print(model_building.measured("{kind}", 145_000)[0])
"""
IMPORT = """
import time
began = time.perf_counter()
import kvopt
print(1000 * (time.perf_counter() - began))
"""

FIGURES = {
    "n = 12, five draws proved, s": SOLVE.format(n=12, seeds="range(5)"),
    "n = 16, five draws proved, s": SOLVE.format(n=16, seeds="range(5)"),
    "n = 20, three draws proved, s": SOLVE.format(n=20, seeds="(1, 3, 4)"),
    "arrival-1 at full size, gap after 60 s, %": GAP.format(family="arrival-1"),
    "arrival-2 at full size, gap after 60 s, %": GAP.format(family="arrival-2"),
    "10,000 requests certified in 30 s, gap, %": CERTIFY.format(limit=30),
    **{
        f"{policy}, 100,000 requests, s": POLICY.format(policy=policy)
        for policy in ("fcfs", "mc-sf", "svf", "a-min")
    },
    "model of 145,000 columns, arrays, s": BUILD.format(kind="arrays"),
    "model of 145,000 columns, Pyomo, s": BUILD.format(kind="pyomo"),
    "import kvopt, ms": IMPORT,
}


def main() -> None:
    """Measure in turn and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=1, help="rounds that do not count")
    parser.add_argument("--only", nargs="+", default=[""], help="words in the names of figures")
    options = parser.parse_args()
    print("| figure | other | here | here / other |\n|---|---|---|---|")
    for name, code in FIGURES.items():
        if not any(word in name for word in options.only):
            continue
        here: list[float] = []
        other: list[float] = []
        for turn in range(options.warm_up + options.rounds):
            for checkout, into in ((options.other, other), (HERE, here)):
                value = measured(checkout, code)
                if turn >= options.warm_up:
                    into.append(value)
        old, new = statistics.median(other), statistics.median(here)
        print(f"| {name} | {old:.4g} | {new:.4g} | {new / old:.3f} |", flush=True)


def measured(checkout: Path, code: str) -> float:
    """Run some code in a checkout and return the number that it prints."""
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve())}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=checkout, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{checkout}: {done.stderr.strip()}")
    return float(json.loads(done.stdout))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader may leave
    main()
