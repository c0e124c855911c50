"""CP-SAT as tuned by someone who wants it to win, on the pair model of kvopt.

What helped on draws of 8 to 14 requests, with one worker:

* to begin from a schedule, which is a hint, and with the start windows that it allows;
* two searches: the default one, which finds schedules, for half of the time, and then, from
  the best of them and with its windows, the search that raises the bound (``lb_tree_search``);
* what the volumes v_i say, as rows: the total is at least their bound, and because the requests of
  the first i completions have used all their tokens, sum v_i c_i >= sum over i >= j of v_i v_j / M;
* a symmetry level of 3 and a higher ``presolve_inclusion_work_limit``, which cost nothing.

What did not is in benchmarks/rivals.md.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from kvopt import Schedule, bound
from kvopt.bounds.windows import start_windows
from kvopt.formulations.cpsat import PairModel, pair_model
from rival_models import Offers, Problem

FIRST = 0.5
"""Share of the time of the search for schedules."""


def work(problem: Problem, offers: Offers) -> None:
    """Search for schedules, then for a bound."""
    best, proved = _search(problem, problem.known, FIRST * problem.seconds, offers, bounding=False)
    if not proved:
        _search(problem, best, problem.seconds, offers, bounding=True)


def _search(
    problem: Problem, known: Schedule, until: float, offers: Offers, *, bounding: bool
) -> tuple[Schedule, bool]:
    """Search until so much time has gone by; return the best schedule, and whether it is proved."""
    instance = problem.instance
    built = pair_model(instance, start_windows(instance, known.objective))
    _volume_rows(built, problem)
    built.hint(known)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = problem.threads
    solver.parameters.symmetry_level = 3
    solver.parameters.presolve_inclusion_work_limit = 10**9
    solver.parameters.optimize_with_lb_tree_search = bounding
    solver.best_bound_callback = offers.bound
    problem.stop(solver.stop_search, until)
    status = solver.solve(built.model, _Improvements(built, offers))
    offers.bound(solver.best_objective_bound)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        known = built.schedule(solver.value)
    return known, status == cp_model.OPTIMAL


def _volume_rows(built: PairModel, problem: Problem) -> None:
    instance = problem.instance
    volumes = [r.output * r.prompt + r.output * (r.output + 1) // 2 for r in instance]
    ends = [start + r.output for start, r in zip(built.starts, instance, strict=True)]
    before, pairs = 0, 0
    for volume in volumes:
        before += volume
        pairs += volume * before
    weighted = sum(volume * end for volume, end in zip(volumes, ends, strict=True))
    built.model.add(instance.memory * weighted >= pairs)
    least = bound(instance, "volume").value
    if least is not None:
        arrivals = sum(request.arrival for request in instance)
        built.model.add(sum(ends) >= least + arrivals)


class _Improvements(cp_model.CpSolverSolutionCallback):
    """Offers each schedule that is better than the last."""

    def __init__(self, built: PairModel, offers: Offers) -> None:
        super().__init__()
        self.built, self.offers = built, offers

    def on_solution_callback(self) -> None:
        """Offer it."""
        self.offers.starts(self.built.schedule(self.value).starts)
