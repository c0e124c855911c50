"""Any policy in continuous time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kvopt.errors import InvalidInput, PolicyFault
from kvopt.kernels.compiling import working_time
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.batch_time import BatchTime
from kvopt.model.instance import Instance
from kvopt.policies.base import Need, Policy
from kvopt.policies.registry import policy as policy_from
from kvopt.simulation.seconds_clock import BatchClock
from kvopt.simulation.seconds_run import SecondsRun
from kvopt.simulation.simulator import Simulation


def simulate_seconds(
    instance: Instance,
    policy: str | Policy,
    batch_time: BatchTime,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> SecondsRun:
    """Simulate a scheduler on a server whose rounds last as long as their batches.

    The policy is asked at the start of a round, as in `kvopt.run`, and sees what arrived until
    then.

    Parameters
    ----------
    instance
        The problem; its requests have ``arrival_seconds``, or ``round_ms`` says what a round
        of arrival is.
    policy
        ``NAME[:key=value,...]`` as on the command line, or a policy object.
    batch_time
        How long a round lasts.
    should_stop
        Asked at every event; when it turns true, `kvopt.simulation.simulator.Stopped` is raised.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> from kvopt import BatchTime, Line
    >>> from kvopt.simulation.seconds import simulate_seconds
    >>> model = BatchTime([Line(40_000_000, 1_000_000)])
    >>> requests = [Request(0, 10, 2, arrival_seconds=0), Request(0, 5, 1, arrival_seconds=0.06)]
    >>> found = simulate_seconds(Instance(100, requests), "fcfs", model)
    >>> found.starts_ns, found.completions_ns
    ((0, 92000000), (92000000, 138000000))
    """
    scheduler = policy_from(policy) if isinstance(policy, str) else policy
    label = policy if isinstance(policy, str) else policy.name
    arrivals = arrivals_ns(instance)
    if Need.ARRIVALS in scheduler.needs and any(arrivals):
        raise InvalidInput("needs arrivals to come in rounds: only for a backlog", field=label)
    clock = BatchClock(batch_time, arrivals)
    began = working_time()
    simulation = Simulation(instance, scheduler, clock)
    if simulation.limit is not None:
        simulation.limit = scheduler.round_limit(_in_short_rounds(instance, arrivals, batch_time))
    outcome = simulation.to_the_end(should_stop)
    found = SecondsRun(
        instance=instance,
        policy=label,
        batch_time=batch_time,
        arrivals_ns=tuple(arrivals),
        starts=tuple(simulation.starts),
        lost=tuple(simulation.lost),
        resumed=clock.resumed,
        outcome=outcome,
        seconds=working_time() - began,
        note=simulation.note,
    )
    if broken := found.violations():
        raise PolicyFault(f"{label}: {broken[0]}")
    return found


def _in_short_rounds(instance: Instance, arrivals: list[int], batch_time: BatchTime) -> Instance:
    """Return the instance with arrivals in rounds of the shortest length.

    No arrival is seen at a later round than that, so a limit on rounds for this instance is
    none too strict for the run.
    """
    short = batch_time.least_ns
    shifted = [
        replace(request, arrival=arrival // short, arrival_seconds=None)
        for request, arrival in zip(instance, arrivals, strict=True)
    ]
    return Instance(instance.memory, shifted)
