"""CP-SAT on the horizon-free pair model."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

from kvopt.bounds.start_windows import start_windows
from kvopt.errors import Stopped
from kvopt.formulations.cpsat import PairModel, has_few_pairs
from kvopt.formulations.windows import largest_latency
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.kernels.solver_versions import load_cp_model

_NAME = "cpsat"
_LARGEST_LATENCY = 2**45
"""Limit of the latency of a model: bounds are floats, here wrong by less than `_ERROR`."""
_ERROR = 0.1
"""Error of a bound: integers come out as floats such as 0.9999999999999996."""
_SOON = 1.0
"""CP-SAT ends by its own clock; with so few seconds left it has used up its time."""


def run(search: Search) -> None:
    """Work on a search with CP-SAT until it has a proof or must stop."""
    if not has_few_pairs(search.instance):
        search.note(f"{_NAME}: {len(search.instance)} requests make too many pairs for its model")
        return
    with suppress(Stopped):
        _work(search)


def _work(search: Search) -> None:
    """Let CP-SAT work on the model, from the incumbent if there is one."""
    with search.timing("build"):
        windows = start_windows(search.instance, search.objective)
        if largest_latency(search.instance, windows) > _LARGEST_LATENCY:
            search.note(f"{_NAME}: latencies above 2^45 are too large for its bounds, in floats")
            return
        built = PairModel(search.instance, windows, should_stop=search.budget.over)
        if search.schedule is not None:
            built.hint(search.schedule)
        is_valid = not built.model.validate()
    if not is_valid:
        search.note(f"{_NAME}: sums of its model could pass 2^63")
    if search.budget.over() or not is_valid:
        return
    cp_model: Any = load_cp_model()
    solver = cp_model.CpSolver()
    _set_parameters(solver, search)
    solver.best_bound_callback = lambda bound: _offer_bound(search, bound)

    class Improvements(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        """Offer every solution the moment it is found."""

        def on_solution_callback(self) -> None:
            search.offer(built.schedule(self.value), "CP-SAT")

    outcome: list[Any] = []
    with search.timing("solve"):
        ended = run_in_thread(
            search,
            lambda: outcome.append(solver.solve(built.model, Improvements())),
            cancel=solver.stop_search,
        )
    if ended:
        _conclude(cp_model, solver, outcome[0], search)
    else:
        search.note("CP-SAT did not return in time and was left behind")


def _set_parameters(solver: Any, search: Search) -> None:
    solver.parameters.num_workers = search.limits.threads
    solver.parameters.random_seed = search.limits.seed % 2**31
    solver.parameters.cp_model_presolve = search.limits.presolve
    solver.parameters.catch_sigint_signal = False  # kvopt handles signals itself
    if math.isfinite(search.budget.left):
        solver.parameters.max_time_in_seconds = search.budget.left


def _offer_bound(search: Search, bound: float) -> None:
    if math.isfinite(bound):
        search.offer_claimed(math.ceil(bound - _ERROR), "CP-SAT")


def _conclude(cp_model: Any, solver: Any, status: Any, search: Search) -> None:
    """Offer the last bound; a claim that contradicts what is known is a fault.

    Windows keep an optimal schedule, so the model has a solution.  Solutions were offered, so a
    claimed optimum that is right closes the gap.
    """
    if status == cp_model.INFEASIBLE:
        search.fault("CP-SAT claimed that no schedule exists")
    else:
        _offer_bound(search, solver.best_objective_bound)
        # What else could end it, an interrupt or a stop criterion, goes first as a reason; where
        # it was stopped for its memory there is time for others.
        if status in (cp_model.FEASIBLE, cp_model.UNKNOWN) and search.budget.left < _SOON:
            search.granted.expire()
    if status == cp_model.OPTIMAL and not search.proved:
        search.fault(f"CP-SAT claimed an optimum of {round(solver.objective_value)} unproved")
