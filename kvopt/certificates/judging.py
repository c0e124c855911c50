"""Run policies within the limit of a search, and offer their runs to its incumbent."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from signal import SIGINT

from kvopt.errors import Stopped, TooLarge
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import waiting_within
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.show.summary import counted
from kvopt.simulate.policies.interface import Need, Policy
from kvopt.simulate.policies.server_policies import PausingPolicy
from kvopt.simulate.routers import Router
from kvopt.simulate.run_policy import run
from kvopt.timetable.runs import PolicyRun


def offer_run(search: Search, run: PolicyRun) -> None:
    """Offer the run of a policy as a schedule, in rounds without evicted work."""
    if search.problem.in_seconds:
        search.offer(run, run.policy)
    elif run.schedule is not None:
        search.offer(replace(run.schedule, instance=search.instance), f"policy {run.policy}")


def limit_note(run: PolicyRun, most: int) -> str | None:
    """Return a note on a limit of active requests that a run reached, None if it did not."""
    active = max((max(part.sweep.active, default=0) for part in run.parts), default=0)
    if not run.is_complete or active < most:
        return None
    return (
        f"{run.policy}: reached its limit of {counted(most, 'active request')} on a machine, "
        "which bounds ignore: its ratio has the price of that limit in it"
    )


def refuse_misfit(
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
        run(instance, policy, router=router, clock=clock, label=label, should_stop=lambda: True)


def attempt(
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
            return run(
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
