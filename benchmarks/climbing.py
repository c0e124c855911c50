"""How fast prices climb: the checked bound of the stages alone, without any search.

    python benchmarks/climbing.py [--family arrival-1 arrival-2] [--n 16] [--seeds 0 1 2 3 4]
                                  [--seconds 0.5 1 2] [--stages 1/0.06/2e-3/60 ...]

Prints the mean bound as % of the best schedule after so many seconds of one thread.  The schedule
comes from five seconds of the exact engine, which are not counted.  Stages are written as
refinement/heat/gain/steps; without them they are kvopt's.
"""

from __future__ import annotations

import argparse
import statistics
import time

from kvopt import Instance, generate, solve
from kvopt.bounds.configurations.ascent import Stage
from kvopt.bounds.configurations.bound import STAGES
from kvopt.bounds.configurations.stages import Rising
from kvopt.kernels.pipes import ended_by_reader


def main() -> None:
    """Print a row for each family."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--family", nargs="+", default=["arrival-1", "arrival-2"])
    parser.add_argument("--n", type=int)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--stages", type=stage_of, nargs="+", default=list(STAGES))
    options = parser.parse_args()
    print("| family | " + " | ".join(f"{limit:g} s" for limit in options.seconds) + " |")
    print("|---|" + "---|" * len(options.seconds))
    for family in options.family:
        draws = [generate(family, options.n, seed=seed) for seed in options.seeds]
        shares = [climbed(draw, options.stages, options.seconds) for draw in draws]
        means = [f"{statistics.mean(column):.1%}" for column in zip(*shares, strict=True)]
        print(f"| {family} | " + " | ".join(means) + " |", flush=True)


def stage_of(text: str) -> Stage:
    """Read refinement/heat/gain/steps."""
    refinement, heat, gain, steps = text.split("/")
    return Stage(int(refinement), float(heat), float(gain), int(steps))


def climbed(instance: Instance, stages: list[Stage], limits: list[float]) -> list[float]:
    """Return the bound as a share of the best schedule after so many seconds."""
    schedule = solve(instance, "exact", time_limit=5).schedule
    assert schedule is not None
    began = time.monotonic()

    def seconds() -> float:
        return time.monotonic() - began

    rising = Rising(instance, schedule.makespan, should_stop=lambda: seconds() > limits[-1])
    bounds = [(0.0, 0)]
    for stage in stages:
        evaluation = rising.climb(stage, schedule.objective)
        bounds.append((seconds(), evaluation.bound))
        if seconds() > limits[-1]:
            break
        rising.rule_out(evaluation, schedule.objective)
    return [
        max(bound for moment, bound in bounds if moment <= limit) / schedule.objective
        for limit in limits
    ]


if __name__ == "__main__":
    with ended_by_reader():
        main()
