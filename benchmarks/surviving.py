"""What is left after prices have ruled out starts, for three ways to search it.

    python benchmarks/surviving.py [--family arrival-1] [--n 10 12] [--seeds 0 1 2] [--limit 60]

Each draw gets the best schedule first and prices of five stages.  Then the starts that are left
go to the search forward in time; to HiGHS as the time-indexed program with the inequality of
configurations at each time as a row; and to CP-SAT as the pair model with the windows they leave.
Each has one thread and proves that no schedule is better, or shows the bound at the limit.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice

import numpy as np

from kvopt import Instance, generate, solve
from kvopt.bounds.configurations.bound import rising_bounds
from kvopt.bounds.configurations.evaluation import Evaluation
from kvopt.bounds.configurations.forward_search import ForwardSearch, twins_of
from kvopt.bounds.configurations.states import States
from kvopt.bounds.windows import start_windows
from kvopt.formulations.arrays import ArrayModel, time_indexed_arrays, to_highs
from kvopt.formulations.cpsat import pair_model
from kvopt.formulations.windows import Windows
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.dependencies import load_cp_model, load_highspy
from kvopt.kernels.pipes import ended_by_reader


def main() -> None:
    """Print a row for each draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--family", default="arrival-1")
    parser.add_argument("--n", type=int, nargs="+", default=[10, 12])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--limit", type=float, default=60.0)
    options = parser.parse_args()
    heads = "| instance | optimum | prices | starts | left | forward | highs + rows | cpsat |"
    print(f"{heads}\n{'|---' * 8}|")
    for n in options.n:
        for seed in options.seeds:
            print(row(generate(options.family, n, seed=seed), options.limit), flush=True)


def row(instance: Instance, limit: float) -> str:
    """Return the figures of an instance."""
    best = solve(instance, "exact", time_limit=10 * limit)
    assert best.starts is not None
    assert best.objective is not None
    search = Search(instance)
    search.offer_starts(best.starts, "before")
    _, evaluation = list(islice(rising_bounds(search), 5))[-1]
    states = States.of(instance)
    before = start_windows(instance, best.objective)
    left, windows = surviving(evaluation, best.objective, before)
    model = time_indexed_arrays(instance, windows)
    cells = [
        by_sweep(states, instance, evaluation, best.objective),
        by_highs(model, states, evaluation, best.objective, limit),
        by_cpsat(instance, windows, best.objective, limit),
    ]
    counts = f"{sum(map(len, before)):,} | {left:,}"
    name = f"| {instance.name} | {best.objective} | {evaluation.bound}"
    return f"{name} | {counts} | {' | '.join(cells)} |"


def surviving(evaluation: Evaluation, target: int, before: Windows) -> tuple[int, Windows]:
    """Return how many starts a better schedule may have, and the windows they leave."""
    budget = (target - 1) * evaluation.denominator - evaluation.total
    last = evaluation.reduced_costs.shape[1] - 1
    count, windows = 0, []
    for reduced_costs, window in zip(evaluation.reduced_costs, before, strict=True):
        left = [k for k in window if reduced_costs[min(k, last)] <= budget]
        count += len(left)
        windows.append(range(min(left, default=0), max(left, default=0) + 1))
    return count, tuple(windows)


def by_sweep(states: States, instance: Instance, evaluation: Evaluation, target: int) -> str:
    """Time the search forward in time."""
    began = time.monotonic()
    forward = ForwardSearch(states, twins_of(instance), evaluation, target)
    assert forward.search_exhaustively(10**7) is None
    return f"{time.monotonic() - began:.1f} s ({forward.kept:,})"


def by_highs(
    model: ArrayModel, states: States, evaluation: Evaluation, target: int, limit: float
) -> str:
    """Time HiGHS on the time-indexed program with a row of prices for each time."""
    highspy = load_highspy()
    highs = to_highs(model)
    instance = model.instance
    columns: list[list[int]] = [[] for _ in evaluation.largest]
    values: list[list[float]] = [[] for _ in evaluation.largest]
    for i, (request, window) in enumerate(zip(instance, model.layout.windows, strict=True)):
        for number, k in enumerate(window, int(model.columns[i].min())):
            for t in range(k + 1, min(k + request.output, len(columns) - 1) + 1):
                price = evaluation.prices[t, states.firsts[i] + k + request.output - t]
                if price:
                    columns[t].append(number)
                    values[t].append(float(price) / evaluation.denominator)
    for t, members in enumerate(columns):
        largest = float(evaluation.largest[t]) / evaluation.denominator
        highs.addRow(-highspy.kHighsInf, largest, len(members), np.array(members), values[t])
    every = np.arange(model.num_columns)
    highs.addRow(-highspy.kHighsInf, float(target - 1), len(every), every, model.cost)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("time_limit", limit)
    began = time.monotonic()
    highs.run()
    seconds = time.monotonic() - began
    info = highs.getInfo()
    if seconds < limit:
        return f"{seconds:.1f} s"
    return f"bound {info.mip_dual_bound:.0f}"


def by_cpsat(instance: Instance, windows: Windows, target: int, limit: float) -> str:
    """Time CP-SAT on the pair model with windows."""
    cp_model = load_cp_model()
    built = pair_model(instance, windows)
    outputs = sum(r.output - r.arrival for r in instance)
    built.model.add(sum(built.starts) + outputs <= target - 1)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = limit
    status = solver.solve(built.model)
    if status == cp_model.INFEASIBLE:
        return f"{solver.wall_time:.1f} s"
    return f"bound {solver.best_objective_bound:.0f}"


if __name__ == "__main__":
    with ended_by_reader():
        main()
