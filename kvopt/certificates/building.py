"""``certify``: the best schedule and the best proof within a limit, and runs compared with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from signal import SIGINT
from typing import Unpack

from kvopt.errors import InvalidInput, Stopped, TooLarge, one_line
from kvopt.incumbent.certificate import Certificate, Optimum
from kvopt.incumbent.in_time import InTime, attained_in
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import signals_remembered, waiting_within
from kvopt.incumbent.limits import LimitOptions, limits_of
from kvopt.kernels.budget import Budget
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Problem, as_problem
from kvopt.problem.scopes import Scope, least_scope
from kvopt.problem.slo import Slo
from kvopt.search import plan
from kvopt.show.summary import counted
from kvopt.simulate import run_policy
from kvopt.simulate.policies.by_name import policy as policy_from
from kvopt.simulate.policies.interface import Need, Policy
from kvopt.simulate.policies.server_policies import PausingPolicy
from kvopt.simulate.routers import Router
from kvopt.simulate.run_policy import GivenSchedule, given_schedule
from kvopt.timetable.policy_run import Outcome, PolicyRun

GIVEN = "schedule"
"""Name under which a certificate lists a schedule of another program."""

_SHORT = 10.0
"""Seconds of a limit below which policies come before bounds: loading these may take as long."""


class CertifyOptions(LimitOptions, total=False):
    """Options of `certify` besides its limits.

    ``batch_time`` is the model of a clock in seconds, or its name.
    With ``only_slo`` latency gets quick results only, and the limit is for the service level;
    ``reserve`` are seconds of the limit that were used before, or are needed afterwards to write;
    ``command`` is recorded as the command that made it.
    """

    batch_time: BatchTime | str | Path
    only_slo: bool
    reserve: float
    command: str | None


def certify(
    instance: Problem | Instance | str | Path,
    policies: str | Iterable[str | Policy | PolicyRun] = (),
    schedule: GivenSchedule | None = None,
    *,
    clock: Clock | str | None = None,
    router: str | Router = "central",
    scope: Scope | str | None = None,
    slo: Slo | str | None = None,
    **options: Unpack[CertifyOptions],
) -> Certificate:
    """Find the best schedule and the best proof within a limit, and compare policies with them.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from, as for `solve`.
    policies
        Schedulers to compare, ``NAME[:key=value,...]`` as on the command line or objects; or
        earlier runs, which are checked again.
    schedule
        A feasible schedule of another program, in rounds, to compare and to improve, in any form
        that `solve` accepts as a start.
    clock
        How long rounds last, as for `solve`; totals are in its unit.
    router
        How requests are sent to the workers of a fleet when policies run, see `run`.
    scope
        Scope of the optimum; by default the scope that the policies need.  A
        policy that it does not cover is run, and not compared.
    slo
        Also how many requests can attain a service level: ``"ttft=2s,tpot=50ms"``, ``"e2e=40"`` in
        rounds, or ``"own"`` for the limits of each request.
    options
        As of `Limits`; ``time_limit`` is for all of it, without one it works until the optimum is
        proved; and as of `CertifyOptions`.

    Returns
    -------
    Certificate
        Limits and Ctrl-C are ordinary ends: the certificate has the results until then.

    Examples
    --------
    >>> from kvopt import Instance, Request, certify
    >>> found = certify(Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)]), ["mc-sf"])
    >>> found.objective, found.runs[0].objective
    (27, 28)

    On a server where every round lasts 40 ms, in nanoseconds:

    >>> from kvopt import BatchTime, Line
    >>> from kvopt.problem.clocks import Seconds
    >>> clock = Seconds(BatchTime([Line(40_000_000, 0)]))
    >>> certify(found.instance, ["mc-sf"], clock=clock).runs[0].objective
    1120000000
    """
    problem = as_problem(
        instance, clock=clock, model=options.pop("batch_time", None), scope=scope, slo=slo
    )
    instance, clock = problem.instance, problem.clock
    if schedule is not None:
        if not clock.is_even:
            raise InvalidInput("is in rounds, which this clock does not count", field="schedule")
        schedule = given_schedule(instance, schedule, "schedule")
    only_slo, command = options.pop("only_slo", False), options.pop("command", None)
    reserve = options.pop("reserve", 0.0)
    limits = limits_of(options)
    budget = Budget(max(limits.time_limit - reserve, 0.0), ram=limits.ram)
    runs = [] if schedule is None else [PolicyRun.of(schedule, GIVEN)]
    chosen = [policies] if isinstance(policies, str) else policies  # no list of letters
    labelled = [_labelled(instance, choice, clock) for choice in chosen]
    used = [*labelled, *((run.policy, run) for run in runs)]
    needed = []
    for _, one in used:
        may = one.scope(rounds=clock.is_even) if isinstance(one, Policy) else one.scope
        shares = isinstance(one, Policy) and problem.scope.covers(Scope.SHARING)
        needed.append(may.joined(Scope.SHARING) if shares else may)
    if scope is None:
        scope = least_scope([*needed, problem.scope])
    problem = as_problem(problem, scope=scope)
    share = 1 - plan.NARROWER_SHARE * bool(_narrower_scopes(problem.scope, needed))
    search = Search(problem, limits, budget=budget.part(share), checkable=True)
    driver = plan.Driver(search)
    if schedule is not None:
        search.offer(schedule, "given schedule")
    with signals_remembered(budget.interrupt):
        for label, one in labelled:
            if not isinstance(one, PolicyRun):
                _refuse_misfit(instance, one, label, clock, router)
        if is_short := budget.left < _SHORT:
            driver.begin()
            for_bounds = search.budget.part(search.limits.params.portfolio_bound_share)
            runs += _judged(search, labelled, router, for_bounds.left)
        try:
            with search.surviving("service level"):
                in_time = plan.ONLY_IN_TIME if only_slo else plan.IN_TIME
                plan.run(in_time, search, search.budget)
        except Exception as error:  # it adds to a certificate: the rest is kept
            search.note(f"service level: failed, {type(error).__name__}: {one_line(str(error))}")
        rest: tuple[plan.PlanStage, ...] = ()
        with waiting_within(search.granted):
            if not is_short:
                driver.begin()
            rest = _bounded(driver, search)
        if not is_short:
            runs += _judged(search, labelled, router)
        narrower = list[Optimum]()
        with waiting_within(search.granted):
            if not only_slo:
                if rest:
                    driver.run(rest)
                narrower += _narrower(search, runs, budget)
    proved = search.result("certify").certificate()
    limit = None if limits.time_limit == math.inf else limits.time_limit
    return replace(
        proved,
        runs=tuple(runs),
        narrower=tuple(narrower),
        provenance=proved.provenance | {"command": command, "time_limit": limit},
        in_time=_in_time(proved.in_time, runs),
    )


def _bounded(driver: plan.Driver, search: Search) -> tuple[plan.PlanStage, ...]:
    """Compute bounds unless they come late; return the later stages."""
    if plan.bound_share_used_up(search):
        return plan.BOUNDS + plan.SEARCHES
    driver.run(plan.FIRST_RUN + plan.BOUNDS, search.budget)
    return plan.SEARCHES


def _narrower_scopes(covered: Scope, used: Iterable[Scope]) -> list[Scope]:
    """Return the scopes of runs that are narrower than the covered one."""
    needed = {least_scope([scope]) for scope in used}
    return [one for one in Scope if one in needed and not one.covers(covered)]


def _narrower(search: Search, runs: Sequence[PolicyRun], budget: Budget) -> Iterator[Optimum]:
    """Yield both sides of the scopes that suffice for runs, the narrowest first.

    A bound for the narrower scope is useful only above the bound for all schedules.
    """
    problem, ended = search.problem, [run for run in runs if run.objective is not None]
    scopes = _narrower_scopes(problem.scope, [run.scope for run in ended])
    for left, scope in zip(range(len(scopes), 0, -1), scopes, strict=True):
        inner = search.inside(replace(problem, scope=scope), budget.part(1 / left))
        for run in ended:
            if scope.covers(run.scope):
                _offer_run(inner, run)
        if search.best is not None and scope.covers(search.best.scope):
            inner.offer(search.best, search.found_by or "best of all")
        driver = plan.Driver(inner)
        driver.begin()
        driver.run(_bounded(driver, inner))
        search.take_notes(inner)
        if inner.best is not None:
            search.offer(inner.best, inner.found_by or inner.engine)
        proved = -1 if search.checked is None else search.checked.value
        if inner.checked is not None and inner.checked.value >= proved:
            yield Optimum(scope, inner.best, inner.checked)


def _judged(
    search: Search,
    labelled: Iterable[tuple[str, Policy | PolicyRun]],
    router: str | Router,
    reserve: float = 0.0,
) -> Iterator[PolicyRun]:
    """Run the policies until so many seconds remain.

    The caller asked for these runs, so a proved optimum does not skip one.
    """
    search.engine = "policies"
    for label, policy in labelled:
        judged: PolicyRun | str = (
            _attempt(search, policy, label, router, reserve)
            if isinstance(policy, Policy)
            else policy
        )
        if isinstance(judged, str):
            search.note(f"{label}: {judged}")
            yield PolicyRun.unknown(search.instance, label, Outcome.UNFINISHED, search.clock)
            continue
        _offer_run(search, judged)
        if judged.note is not None:
            search.note(f"{label}: {judged.note}")
        if isinstance(policy, PausingPolicy) and (note := limit_note(judged, policy.active_limit)):
            search.note(note)
        judged.measures()  # within the limit
        yield judged


def _offer_run(search: Search, run: PolicyRun) -> None:
    """Offer the run of a policy as a schedule, in rounds without evicted work."""
    if search.problem.in_seconds:
        search.offer(run, run.policy)
    elif run.schedule is not None:
        search.offer(replace(run.schedule, instance=search.instance), f"policy {run.policy}")


def limit_note(run: PolicyRun, limit: int) -> str | None:
    """Return a note on a limit of active requests that a run reached, None if it did not."""
    active = max((max(part.sweep.active, default=0) for part in run.parts), default=0)
    if not run.is_complete or active < limit:
        return None
    return (
        f"{run.policy}: reached its limit of {counted(limit, 'active request')} on a machine, "
        "which bounds ignore: its ratio has the price of that limit in it"
    )


def _refuse_misfit(
    instance: Instance, policy: Policy, label: str, clock: Clock, router: str | Router
) -> None:
    """Refuse, before any work, a policy that does not fit the other options.

    Its run is stopped in the first round.  Policies that plan before it are not tried: their plans
    take long, and nothing refuses them on one worker in rounds.
    """
    plans = Need.ARRIVALS in policy.needs and not isinstance(policy, PausingPolicy)
    if plans and clock.is_even and instance.workers == 1:
        return
    with suppress(Stopped):
        run_policy.run(
            instance, policy, router=router, clock=clock, label=label, should_stop=lambda: True
        )


def _attempt(
    search: Search, policy: Policy, label: str, router: str | Router, reserve: float = 0.0
) -> PolicyRun | str:
    """Run a policy until so many seconds remain; return its run, or why it did not end."""
    budget = search.granted.part(most=search.granted.left - reserve)
    try:
        if not budget.left:
            return "was not run, as the limit came first"
        if budget.over():
            raise Stopped
        with waiting_within(search.granted):
            return run_policy.run(
                search.instance,
                policy,
                router=router,
                clock=search.clock,
                slo=search.problem.slo,
                label=label,
                should_stop=budget.over,
            )
    except KeyboardInterrupt:
        if search.granted.is_interrupted:
            raise  # a second signal ends the work at once
        search.granted.interrupt(SIGINT)
    except Stopped:
        pass
    except MemoryError:
        return "ended, as the machine ran out of memory"
    except TooLarge as error:
        return str(error)
    return "did not finish within the limit"


def _labelled(
    instance: Instance, choice: str | Policy | PolicyRun, clock: Clock
) -> tuple[str, Policy | PolicyRun]:
    """Return a choice with its label; a run of another problem, or a false one, is refused."""
    if not isinstance(choice, PolicyRun):
        policy = policy_from(choice) if isinstance(choice, str) else choice
        label = choice if isinstance(choice, str) else policy.name
        return label, policy
    field = f"policy {choice.policy}"
    if choice.instance.hash != instance.hash:
        raise InvalidInput("is a run on another instance", field=field)
    if choice.clock != clock:
        raise InvalidInput("is a run on another clock", field=field)
    if broken := choice.violations():
        raise InvalidInput(broken[0], field=field)
    return choice.policy, choice


def _in_time(levels: InTime | None, runs: Iterable[PolicyRun]) -> InTime | None:
    """Return the ceiling of a service level, with the number of each run that attain it."""
    if levels is None:
        return None
    return replace(levels, attained=tuple(attained_in(run, levels.slo) for run in runs))
