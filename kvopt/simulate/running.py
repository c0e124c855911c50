"""``run``: what a policy does to an instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from math import inf
from pathlib import Path

from kvopt.errors import InvalidInput, PolicyFault, TooLarge
from kvopt.kernels.compile_clock import working_time
from kvopt.kernels.guarding import blamed
from kvopt.problem.clocks import ROUNDS, Clock, checked_clock
from kvopt.problem.instance import Instance, refuse_blocks, refuse_fleet
from kvopt.problem.instance_files import as_instance
from kvopt.simulate.fleets import route, run_fleet
from kvopt.simulate.policies.base import Need, Policy
from kvopt.simulate.policies.registry import policy as policy_from
from kvopt.simulate.policies.servers import PausingPolicy, ServerPolicy, Sglang
from kvopt.simulate.retraction import Retraction
from kvopt.simulate.routers.base import ArrivalRouter, Router
from kvopt.simulate.routers.registry import router as router_from
from kvopt.simulate.server import Limits, Server
from kvopt.simulate.simulator import Simulation
from kvopt.timetable.runs import PolicyRun


def run(
    instance: Instance | str | Path,
    policy: str | Policy,
    *,
    router: str | Router = "central",
    clock: Clock = ROUNDS,
    label: str | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> PolicyRun:
    """Simulate a scheduler.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from.
    policy
        ``NAME[:key=value,...]`` as on the command line, or a policy object.
    router
        Of a fleet, how requests come to its workers: ``NAME[:key=value,...]`` or an object.
    clock
        How long rounds last: `kvopt.problem.clocks.Seconds` lets them last as long as their
        batches.  The policy is asked at the start of a round, and sees what arrived until then.
    label
        What the run is called; as ``policy`` says when left out.
    should_stop
        Asked every round; when it turns true, `kvopt.simulate.simulator.Stopped` is raised.

    Returns
    -------
    PolicyRun
        Last starts, evictions and how it ended; memory was checked in integers.

    Examples
    --------
    >>> from kvopt import Instance, Request, run
    >>> instance = Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)])
    >>> run(instance, "mc-sf").objective
    28

    On a server where a round lasts 40 ms and 1 ms more for each token that it processes:

    >>> from kvopt import BatchTime, Line
    >>> from kvopt.problem.clocks import Seconds
    >>> clock = Seconds(BatchTime([Line(40_000_000, 1_000_000)]))
    >>> requests = [Request(0, 10, 2, arrival_seconds=0), Request(0, 5, 1, arrival_seconds=0.06)]
    >>> found = run(Instance(100, requests), "fcfs", clock=clock)
    >>> found.start_times, found.completions
    ((0, 92000000), (92000000, 138000000))
    """
    instance = as_instance(instance)
    if isinstance(policy, (list, tuple)):
        raise InvalidInput("must be a single one; kvopt.compare takes several", field="policy")
    checked_clock(clock)
    scheduler = policy_from(policy) if isinstance(policy, str) else policy
    if label is None:
        label = policy if isinstance(policy, str) else policy.name
    if isinstance(scheduler, Sglang):
        refuse_fleet(instance, label)
    if instance.workers > 1 and not isinstance(scheduler, ServerPolicy):
        return _shared(instance, scheduler, router, clock, label, should_stop)
    if instance.block_size > 1 and not clock.is_even:
        refuse_blocks(instance, "a clock of seconds")
    if isinstance(scheduler, PausingPolicy):
        scheduler = _in_blocks(scheduler, instance)
    if isinstance(scheduler, ServerPolicy):
        return _served(instance, scheduler, router, clock, label, should_stop)
    if isinstance(scheduler, Sglang):
        return _retracted(instance, scheduler, clock, label, should_stop)
    if instance.block_size > 1:
        made = run(instance.inflated(), scheduler, label=label, should_stop=should_stop)
        said = f"counts {instance.block_size - 1} tokens more for each request, for whole blocks"
        note = said if made.note is None else f"{made.note}; {said}"
        return _checked(replace(made, instance=instance, note=note))
    return _simulated(instance, scheduler, clock, label, should_stop)


def _simulated(
    instance: Instance, policy: Policy, clock: Clock, label: str, should_stop: Callable[[], bool]
) -> PolicyRun:
    """Simulate one worker; arguments as of `run`."""
    began = working_time()
    with at_fault(policy, label):
        simulation = Simulation(instance, policy, clock)
    if not clock.is_even and Need.ARRIVALS in policy.needs and any(simulation.arrivals):
        raise InvalidInput("needs arrivals to come in rounds: only for a backlog", field=label)
    with at_fault(policy, label):
        simulation.to_the_end(should_stop)
    found = PolicyRun(
        instance,
        simulation.starts,
        lost=simulation.lost,
        clock=clock,
        resumed=() if clock.is_even else [simulation.resumed],
        policy=label,
        wall_seconds=working_time() - began,
        note=simulation.note,
    )
    return _checked(found)


def _shared(
    instance: Instance,
    policy: Policy,
    router: str | Router,
    clock: Clock,
    label: str,
    should_stop: Callable[[], bool],
) -> PolicyRun:
    """Simulate a fleet; arguments as of `run`."""
    way, name = _router(router)
    with at_fault(policy, label):
        return _checked(run_fleet(instance, policy, way, clock, (label, name), should_stop))


def _router(router: str | Router) -> tuple[Router, str]:
    """Return a router, and what it is called."""
    return (router_from(router), router) if isinstance(router, str) else (router, router.name)


def _in_blocks(policy: PausingPolicy, instance: Instance) -> PausingPolicy:
    """Return a server with the blocks of an instance, if that has a block size.

    A server that was given blocks of its own, of another size, is refused.
    """
    size, field = instance.block_size, "page" if isinstance(policy, Sglang) else "block"
    if size == 1:
        return policy
    own = getattr(policy, field)
    if own not in (size, getattr(type(policy), field)):
        raise InvalidInput(f"is {own}, the instance has blocks of {size} tokens", field=field)
    changed = copy(policy)
    setattr(changed, field, size)
    return changed


def _served(
    instance: Instance,
    policy: ServerPolicy,
    router: str | Router,
    clock: Clock,
    label: str,
    should_stop: Callable[[], bool],
) -> PolicyRun:
    """Simulate servers with their limits; arguments as of `run`."""
    way, name = _router(router if instance.workers > 1 else "round-robin")
    if not isinstance(way, ArrivalRouter):
        reason = "every server has a line of its own: name a router that sends requests on arrival"
        raise InvalidInput(f"{reason}, such as least-requests", field=label)
    began, arrivals = working_time(), clock.arrivals(instance)
    limits = Limits(
        policy.block,
        policy.max_seqs,
        policy.budget,
        policy.chunked,
        # In floats, and with the block that is never used, as vLLM counts.
        watermark=int(float(policy.watermark) * (instance.memory // policy.block + 1)),
        asynchronous=policy.asynchronous,
    )
    outputs = policy.prediction_model().beliefs(instance).output
    said = policy.priorities(instance), outputs, should_stop
    servers = [Server(instance, clock, limits, *said) for _ in range(instance.workers)]
    workers = route(instance, arrivals, outputs, servers, way, should_stop)
    for server in servers:
        server.come_to(inf)
    segments = [servers[w].segments[i] for i, w in enumerate(workers)]
    pauses = sum(map(len, segments)) - len(segments)
    found = PolicyRun(
        instance,
        workers=workers,
        segments=segments,
        clock=clock,
        chunks=[chunks for server in servers for chunks in server.chunks],
        resumed=() if clock.is_even else [server.resumed for server in servers],
        policy=label,
        wall_seconds=working_time() - began,
        note=f"{_pauses(pauses)} with tokens kept" if pauses else None,
        router=name if instance.workers > 1 else None,
    )
    return _checked(found)


def _retracted(
    instance: Instance, policy: Sglang, clock: Clock, label: str, should_stop: Callable[[], bool]
) -> PolicyRun:
    """Simulate a server that retracts; arguments as of `run`."""
    if not clock.is_even:
        raise InvalidInput("is simulated in rounds, not in seconds", field=label)
    began = working_time()
    most = policy.prediction_model().beliefs(instance).output
    server = Retraction(
        instance,
        most,
        policy.page,
        policy.max_running,
        policy.prefill,
        policy.conservative,
        policy.mixed,
    )
    made = server.to_the_end(should_stop)
    said = f"{_pauses(made.pauses)}, {server.retractions:,} of them retractions"
    seconds, note = working_time() - began, said if made.pauses else None
    return _checked(PolicyRun.of(made, label, wall_seconds=seconds, note=note))


def _checked(found: PolicyRun) -> PolicyRun:
    if broken := found.violations():
        raise PolicyFault(f"{found.policy}: {broken[0]}")
    return found


@contextmanager
def at_fault(policy: Policy, label: str) -> Iterator[None]:
    """Say which policy could not go on."""
    try:
        with blamed(label, type(policy)):
            yield
    except TooLarge as error:
        raise TooLarge(f"{label}: {error}") from error


def _pauses(count: int) -> str:
    """Return how many pauses, in words."""
    return f"{count:,} pause{'s' * (count != 1)}"
