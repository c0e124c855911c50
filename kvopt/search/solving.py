"""``solve``: from an instance to the best checked schedule and the best bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Unpack

from kvopt.errors import InvalidInput
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import signals_interrupt
from kvopt.incumbent.limits import LimitOptions, limits_of
from kvopt.incumbent.proofs import Proof, VolumeProof
from kvopt.incumbent.result import SolveResult
from kvopt.kernels.dependencies import load_cp_model, require_solver, versions
from kvopt.problem.clocks import ROUNDS, Clock, checked_clock
from kvopt.problem.instance import Instance, refuse_blocks, refuse_fleet
from kvopt.problem.instance_files import as_instance
from kvopt.problem.scopes import Scope
from kvopt.search import fleets
from kvopt.search.blocks import solve_in_blocks
from kvopt.search.parts import Divided
from kvopt.search.pausing import solve_with_pauses
from kvopt.search.portfolio import both_sides
from kvopt.search.registry import engines_for
from kvopt.simulate.given import GivenSchedule, given_schedule
from kvopt.timetable.schedule import Schedule


def solve(
    instance: Instance | str | Path,
    engine: str = "auto",
    *,
    start: GivenSchedule | None = None,
    scope: Scope | str = Scope.RUNS,
    prices: Proof | None = None,
    quick_start: bool = True,
    presolve: bool = True,
    pyomo_solver: str = "highs",
    checkable: bool = False,
    clock: Clock = ROUNDS,
    **options: Unpack[LimitOptions],
) -> SolveResult:
    """Look for a schedule of least total latency, and for a proof that none is better.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from.
    engine
        ``exact``, ``highs``, ``cpsat``, ``pyomo``, or ``auto`` for a portfolio that suits the
        size, or one that was registered.
    start
        What to begin from: a feasible schedule or the path of one; a run in rounds, a result or a
        certificate, which hold one; the start of each request; or a policy, or its name.
    scope
        What schedules may do: with ``pauses`` requests may be interrupted and keep their tokens.
        Then ``engine`` is ``auto``, ``highs``, ``cpsat`` or ``pyomo``, and the schedule of the
        result has segments.
    prices
        Prices of tokens to begin from, those of a `BoundResult` say: of the whole, or where idle
        gaps cut it of its parts.  They are evaluated again.  Other proofs and fleets do without.
    quick_start
        Begin from list schedules and the volume bound, which take moments.
    presolve
        Let the solver simplify its model first.
    pyomo_solver
        The solver behind ``pyomo``.
    checkable
        Look for a bound with a proof that `verify` can repeat, even if that takes longer.
    clock
        Rounds; for seconds see `solve_in_seconds`.
    options
        As of `Limits`: ``time_limit`` in seconds, kept within two, and so on.  An engine that would
        take more memory than ``ram`` is refused or stopped, and others go on.

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

    Where requests may pause the optimum of this one is 12, else it is 14.

    >>> pair = Instance(10, [Request(0, 0, 10), Request(6, 5, 1)])
    >>> solve(pair, scope="pauses").segments
    (((1, 6), (8, 11)), ((7, 7),))
    """
    instance, scope = as_instance(instance), Scope.parse(scope)
    if not checked_clock(clock).is_even:
        reason = "is for rounds here: write solve_in_seconds(instance, clock)"
        raise InvalidInput(reason, field="clock")
    given = None if start is None else given_schedule(instance, start, "start")
    work = engine_named(engine, presolve=presolve, pyomo_solver=pyomo_solver, scope=scope)
    limits = limits_of(options)
    if prices is not None:
        refuse_blocks(instance, "a search that begins from prices")
    if scope.covers(Scope.PAUSES):
        refuse_fleet(instance, f"the scope {scope}")
        if prices is not None:
            raise InvalidInput(f"cannot be given with the scope {scope}", field="prices")
        found = solve_with_pauses(
            instance, engine, work, given, limits, quick_start=quick_start, checkable=checkable
        )
        return replace(found, scope=scope)
    if given is not None and given.pauses:
        raise InvalidInput(f"has pauses, which the scope {scope} leaves out", field="start")
    if instance.workers > 1:
        work = fleets.engine_for_fleets(engine, work)
    search = Search(instance, limits, checkable=checkable)
    search.versions = versions()
    with signals_interrupt(search):
        _begin(search, given, quick_start and instance.block_size == 1)
        search.engine = engine
        if instance.block_size > 1:
            solve_in_blocks(search, work, scope)
        else:
            stages = Divided(search, prices if instance.workers == 1 else None)
            stages.work(lambda part, _: None if part.should_stop() else work(part))
    return replace(search.result(engine), scope=scope)


def engine_named(
    name: str,
    *,
    presolve: bool = True,
    pyomo_solver: str = "highs",
    scope: Scope = Scope.RUNS,
) -> Callable[[Any], None]:
    """Return an engine of a scope by name; its solver is imported now, and only its own."""
    work = engines_for(scope).find(name)
    # What is missing is refused now, not when the work begins.
    if name == "pyomo":
        require_solver(pyomo_solver)
    elif name == "cpsat":
        load_cp_model()
    options = {"presolve": presolve, "solver": pyomo_solver}
    known = signature(work).parameters
    return partial(work, **{key: value for key, value in options.items() if key in known})


def _begin(search: Search, start: Schedule | None, quick_start: bool) -> None:
    if start is not None:
        search.offer_starts(start.starts, "given schedule", start.workers)
    if not len(search.instance):
        search.offer_starts((), "empty instance", ())
        search.offer_checked(0, "empty instance", VolumeProof())
    elif quick_start and search.instance.workers > 1:
        fleets.begin(search)
    elif quick_start:
        both_sides(search)
