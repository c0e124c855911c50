"""``solve``: from an instance to the best checked schedule and the best bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from kvopt.bounds.prices import bound_by
from kvopt.errors import InvalidInput, shown, unknown_name
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import signals_interrupt
from kvopt.incumbent.limits import LimitOptions, limits_of
from kvopt.incumbent.proofs import PriceProof, Proof, prices_of
from kvopt.incumbent.result import BoundResult, SolveResult
from kvopt.kernels.budget import Budget
from kvopt.kernels.solver_versions import DEFAULT_SOLVER
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import refuse_blocks, refuse_extras
from kvopt.problem.problem import Problem, Source, as_problem
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Slo
from kvopt.search import plan, stages
from kvopt.search.engines import Engine, engine_of
from kvopt.simulate.policies.interface import Policy
from kvopt.simulate.run_policy import GivenSchedule, given_schedule, run
from kvopt.timetable.schedule import Schedule

_ENGINES_WITH_EXTRAS = ("auto", "highs", "cpsat", "pyomo")
"""Engines that support several workers, weights, limits and shared prefixes."""


class SolveOptions(LimitOptions, total=False):
    """Options of `solve` besides its limits.

    ``batch_time`` is the model of a clock in seconds, or its name; ``prices`` are first prices of
    tokens, for example of a `BoundResult`, which are evaluated again (not for fleets);
    ``quick_start`` begins from list schedules and the volume bound, which take moments;
    ``presolve`` lets the solver simplify its model first; ``pyomo_solver`` is the solver behind
    ``pyomo``; ``checkable`` looks for a bound with a proof that `verify` can repeat, even if that
    takes longer.
    """

    batch_time: BatchTime | str | Path
    prices: Proof | BoundResult | None
    quick_start: bool
    presolve: bool
    pyomo_solver: str
    checkable: bool


def solve(
    instance: Source,
    engine: str = "auto",
    *,
    clock: Clock | str | None = None,
    scope: Scope | str | None = None,
    workers: int | None = None,
    slo: Slo | str | None = None,
    start: GivenSchedule | None = None,
    **options: Unpack[SolveOptions],
) -> SolveResult:
    """Search for a schedule of least total latency, and a proof that none is better.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from; a `Problem` has clock, scope and ``slo``.
    engine
        ``exact``, ``highs``, ``cpsat``, ``pyomo``, or ``auto`` for the plan by size.
    clock
        ``rounds``, or ``seconds`` with ``batch_time`` (a model or its name), or a clock.  In
        seconds ``engine`` is ``auto`` and totals are nanoseconds, usually without a proof: only up
        to six requests are searched exhaustively.  By default rounds.
    scope
        Scope of schedules, by default ``runs``: with ``pauses`` requests may be interrupted and
        keep their tokens.  Then ``engine`` is ``auto``, and the schedule of the result has
        segments.
    workers
        Number of machines, instead of the instance's number.
    slo
        Also how many requests can attain a service level, see `certify`; both sides are in
        ``in_time`` of the result.
    start
        First schedule: a feasible schedule or its path; a run, a result or a certificate, which
        have one; the start of each request; or a policy, or its name.
    options
        As of `Limits`: ``time_limit`` in seconds, kept within two, and so on; and as of
        `SolveOptions`.  An engine that would take more memory than ``ram`` is refused or stopped,
        and others continue.

    Returns
    -------
    SolveResult
        Limits and Ctrl-C are ordinary ends: both sides are kept.

    Examples
    --------
    >>> from kvopt import Instance, Request, solve
    >>> instance = Instance(memory=7, requests=[Request(0, 1, o) for o in (1, 2, 3, 4)])
    >>> result = solve(instance)
    >>> result.objective, result.lower_bound, str(result.status)
    (12, 12, 'optimal')

    With pauses the optimum of this instance is 12, otherwise it is 14.

    >>> pair = Instance(10, [Request(0, 0, 10), Request(6, 5, 1)])
    >>> solve(pair, scope="pauses").segments
    (((1, 6), (8, 11)), ((7, 7),))

    On two machines where a round takes 40 ms, and 1 ms for each request, in nanoseconds:

    >>> from kvopt import BatchTime, Line
    >>> model, three = BatchTime([Line(40_000_000, 1_000_000)]), Instance(5, [Request(0, 2, 1)] * 3)
    >>> solve(three, clock="seconds", batch_time=model, workers=2).objective
    172000000
    """
    problem = as_problem(
        instance,
        clock=clock,
        model=options.pop("batch_time", None),
        scope=scope,
        workers=workers,
        slo=slo,
    )
    prices, presolve = options.pop("prices", None), options.pop("presolve", True)
    quick_start, checkable = options.pop("quick_start", True), options.pop("checkable", False)
    solver = options.pop("pyomo_solver", DEFAULT_SOLVER)
    _refuse(problem, engine, prices is not None)
    initial = None if start is None else _first_schedule(problem, start)
    plain = replace(problem, instance=problem.instance.without_common_prefix())
    engines = Scope.RUNS if plain.is_restricted else problem.scope
    work = engine_of(engine, engines, pyomo_solver=solver)
    limits = replace(limits_of(options), presolve=presolve)
    search = Search(problem, limits, checkable=checkable)
    if isinstance(prices, BoundResult):
        prices = None if prices.checked is None else prices.checked.proof
    with signals_interrupt(search):
        if initial is not None:
            search.offer(initial, "given schedule")
        plan.run(plan.IN_TIME, search, search.budget)
        prices = None if problem.is_fleet else prices
        driver = plan.Driver(search, prices)
        if len(search.instance) and (quick_start or problem.is_restricted):
            driver.begin()
        if isinstance(prices, PriceProof) and prices_of(prices) and not driver.is_reduced:
            search.offer_bound(bound_by(search.instance, prices, search.limits.threads))
        search.engine = engine
        _work(driver, search, engine, work)
    return search.result(engine)


def _refuse(problem: Problem, engine: str, has_prices: bool) -> None:
    """Refuse options that exclude each other.

    A prefix of all requests is a matter of every engine, as a reduction takes it away.  Prices that
    are given are of the memory with it.  `engine_of` refuses engines that know no pauses.
    """
    if problem.instance.extras:
        if engine not in _ENGINES_WITH_EXTRAS:
            refuse_extras(problem.instance.without_common_prefix(), f"the engine {engine}")
        if has_prices:
            refuse_extras(problem.instance, "a search that begins from prices")
    if problem.in_seconds:
        for field, is_given in (("engine", engine != "auto"), ("prices", has_prices)):
            if is_given:
                raise InvalidInput("is for rounds, not for seconds", field=field)
        return
    if has_prices:
        refuse_blocks(problem.instance, "a search that begins from prices")
    if problem.has_pauses:
        if has_prices:
            raise InvalidInput(f"cannot be given with the scope {problem.scope}", field="prices")
    elif problem.is_fleet and engine not in _ENGINES_WITH_EXTRAS:
        # Names that no engine has, and solvers that are not installed, have errors of their own.
        engine_of(engine, problem.scope)
        raise unknown_name(engine, _ENGINES_WITH_EXTRAS, "engine for several workers")


def _first_schedule(problem: Problem, start: Any) -> Schedule:
    """Return the first schedule of a search, on its clock and within its scope."""
    if problem.in_seconds:
        if isinstance(start, str | Policy):
            start = run(problem.instance, start, clock=problem.clock)
        schedule = getattr(start, "upper", None) or getattr(start, "schedule", None) or start
        if (
            not isinstance(schedule, Schedule)
            or schedule.clock != problem.clock
            or not schedule.is_complete
        ):
            reason = f"must hold a run on this clock, be one or a policy, got {shown(start)}"
            raise InvalidInput(reason, field="start")
        if schedule.instance.hash != problem.instance.hash:
            raise InvalidInput("is for another instance", field="start")
        if broken := schedule.violations():
            raise InvalidInput(broken[0], field="start")
        return schedule
    schedule = given_schedule(problem.instance, start, "start")
    if schedule.pauses and not problem.has_pauses:
        reason = f"has pauses, which the scope {problem.scope} leaves out"
        raise InvalidInput(reason, field="start")
    return schedule


def _work(driver: plan.Driver, search: Search, engine: str, work: Engine) -> None:
    """Run an engine, in blocks on longer prompts; part by part if idle gaps cut the instance."""
    problem = search.problem
    if problem.in_blocks and not problem.in_seconds:
        search.note(
            f"{problem.instance.in_blocks}: schedules are those that fit if each request holds "
            f"{problem.instance.block_size - 1} tokens more"
        )

    def stage(part: Search, _: Budget) -> None:
        if part.problem.in_seconds or not part.budget.over():  # it always has a bound
            work(part)

    is_restricted = problem.is_restricted and not driver.is_reduced
    if engine != "auto" and (is_restricted or problem.in_blocks):
        driver.run(plan.BOUNDS + plan.POLICIES, search.budget)
        if is_restricted and stages.is_wide(search):
            stages.search_narrower(search, search.budget, lambda inner: stage(inner, inner.budget))
            return
        if problem.in_blocks:
            stages.as_longer_prompts(search, lambda inner: plan.Driver(inner).work(stage))
            plan.run(plan.LAYERS, search)
            return
    driver.work(stage)
