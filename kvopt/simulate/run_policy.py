"""``run``: simulate a policy on an instance, and read schedules in any form.

Every worker of a fleet, with a cache, a scheduler and rounds of its own, is simulated like a single
server.  For a router that sends requests to workers on arrival, all workers are simulated up to
the arrival.  With one line for all, workers decide in the order of time, and a request that one of
them starts is withdrawn from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from heapq import heapify, heappop, heappush
from itertools import groupby
from math import inf
from pathlib import Path
from typing import Any, Protocol

from kvopt.errors import InvalidInput, PolicyFault, TooLarge, shown
from kvopt.kernels.budget import wall_time
from kvopt.kernels.guarding import blamed
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Problem, as_problem
from kvopt.problem.slo import Slo
from kvopt.show.summary import counted
from kvopt.simulate.block_server import Server
from kvopt.simulate.policies.by_name import policy as policy_from
from kvopt.simulate.policies.interface import Policy
from kvopt.simulate.policies.server_policies import PausingPolicy, ServerPolicy, Sglang
from kvopt.simulate.routers import ArrivalRouter, Router
from kvopt.simulate.routers import router as router_from
from kvopt.simulate.sglang import SglangServer
from kvopt.simulate.simulator import Simulation, Worker, Workload
from kvopt.simulate.vllm_server import VllmServer
from kvopt.timetable.policy_run import PolicyRun
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.schedule_files import read_schedule

_SERVERS: dict[Any, type[Server]] = {
    Sglang: SglangServer,
    ServerPolicy: VllmServer,
}
"""Simulators of schedulers that pause requests; `Simulation` is that of all others."""


def run(
    instance: Problem | Instance | str | Path,
    policy: str | Policy,
    *,
    router: str | Router = "central",
    clock: Clock | str | None = None,
    slo: Slo | str | None = None,
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
        Router of a fleet: ``NAME[:key=value,...]`` or an object.
    clock
        ``rounds``, ``seconds`` of the usual model, or a clock: `kvopt.Seconds` lets
        rounds last as long as their batches.  The policy decides at the start of a round, and sees
        arrivals until then.
    slo
        Service level of requests, as for `kvopt.certify`; the policy ``slo`` knows it.
    label
        Name of the run; that of ``policy`` by default.
    should_stop
        Asked every round; when it turns true, `kvopt.errors.Stopped` is raised.

    Returns
    -------
    PolicyRun
        Last starts, evictions and outcome; memory is checked in integers.

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
    problem = as_problem(instance, clock=clock, slo=slo)
    instance, clock = problem.instance, problem.clock
    if isinstance(policy, (list, tuple)):
        raise InvalidInput("must be a single one; kvopt.compare takes several", field="policy")
    scheduler = policy_from(policy) if isinstance(policy, str) else policy
    label = label or (policy if isinstance(policy, str) else policy.name)
    servers = (server for rules, server in _SERVERS.items() if isinstance(scheduler, rules))
    kind: type[Any] = next(servers, Simulation)
    padding = 0
    if isinstance(scheduler, PausingPolicy):
        scheduler = _in_blocks(scheduler, instance)
    else:
        padding = instance.block_size - 1
    began, fleet = wall_time(), instance.workers > 1
    way = router_from(router) if isinstance(router, str) and fleet else router
    if issubclass(kind, Server) and fleet and not isinstance(way, ArrivalRouter):
        reason = "every server has a line of its own: name a router that sends requests on arrival"
        raise InvalidInput(f"{reason}, such as least-requests", field=label)
    served = instance.inflated() if padding else instance
    workload = Workload(served, clock, should_stop, padding, problem.slo)
    with at_fault(scheduler, label):
        copies = [scheduler, *(deepcopy(scheduler) for _ in range(instance.workers - 1))]
        workers = [kind(workload, one) for one in copies]
        _serve(workload, workers, way)
    notes = [_note(workers)]
    if padding:
        notes.append(f"counts {padding} tokens more for each request, for whole blocks")
    ended = PolicyRun(
        instance,
        **_columns(workload, workers),
        clock=clock,
        policy=label,
        wall_seconds=wall_time() - began,
        note="; ".join(filter(None, notes)) or None,
        router=None if not fleet else router if isinstance(router, str) else router.name,
    )
    if broken := ended.violations():
        raise PolicyFault(f"{label}: {broken[0]}")
    return ended


def _serve(workload: Workload, workers: list[Any], router: object) -> None:
    """Let workers serve all requests."""
    if len(workers) == 1:
        for i in workload.in_order:
            workers[0].deliver(i)
        workers[0].members = workload.in_order
    elif isinstance(router, ArrivalRouter):
        _route(workload, workers, router)
    else:
        _share(workload, workers)
    for worker in workers:
        worker.expects_more = False
        worker.come_to(inf)


def _columns(workload: Workload, workers: list[Worker]) -> dict[str, Any]:
    """Return the work of the workers as arguments of a schedule."""
    served: list[int | None] = [None] * len(workload.instance)
    rows: list[Any] = [None] * len(workload.instance)
    for number, worker in enumerate(workers):
        for i in worker.members:
            served[i], rows[i] = number, worker.rows[i]
    return {
        "starts" if isinstance(workers[0], Simulation) else "segments": rows,
        "workers": served,
        "lost": [piece for worker in workers for piece in worker.lost],
        "chunks": [chunks for worker in workers for chunks in worker.chunks],
        "resumed": () if workload.clock.is_even else [worker.resumed for worker in workers],
    }


def _note(workers: list[Any]) -> str | None:
    """Return notes for readers of the run."""
    if isinstance(workers[0], Simulation):
        names = [f"worker {number}: " if workers[1:] else "" for number in range(len(workers))]
        notes = [(name, worker.note) for name, worker in zip(names, workers, strict=True)]
        return "; ".join(f"{name}{note}" for name, note in notes if note is not None) or None
    pauses = sum(max(len(rows) - 1, 0) for worker in workers for rows in worker.rows)
    words = counted(pauses, "pause")
    if isinstance(workers[0], SglangServer):
        count = sum(worker.retractions for worker in workers)
        return f"{words}, {count:,} of them retractions" if pauses else None
    paused = f"; {words} with tokens kept" if pauses else ""
    return f"{workers[0].policy.limits}{paused}"


def _in_blocks(policy: PausingPolicy, instance: Instance) -> PausingPolicy:
    """Return a server with the blocks of an instance, if that has a block size.

    A server with blocks of another size is refused.
    """
    size, field, stated = instance.block_size, policy.block_field, policy.block_tokens
    if size == 1:
        return policy
    if stated not in (size, getattr(type(policy), field)):
        raise InvalidInput(f"is {stated}, the instance has blocks of {size} tokens", field=field)
    changed = copy(policy)
    setattr(changed, field, size)
    return changed


@contextmanager
def at_fault(policy: Policy, label: str) -> Iterator[None]:
    """Name the policy at fault in errors of the block."""
    try:
        with blamed(label, type(policy)):
            yield
    except TooLarge as error:
        raise TooLarge(f"{label}: {error}") from error


class _Result(Protocol):
    """A schedule, or an object with one: a run, a result, a certificate."""

    @property
    def objective(self) -> int | None: ...


GivenSchedule = _Result | Policy | Iterable[int] | str | Path
"""Values that are accepted as a schedule."""


def given_schedule(instance: Instance, source: GivenSchedule, field: str) -> Schedule:
    """Return a feasible schedule of an instance from a caller's value, else raise.

    Parameters
    ----------
    instance
        The problem.
    source
        A schedule or its path; a run in rounds, a result or a certificate, which have one; the
        start of each request; or a policy, or its name, which is run.
    field
        Its name in errors.
    """
    if isinstance(source, str | Policy):
        source = run(instance, source)
    schedule: Any = read_schedule(source, instance) if isinstance(source, Path) else source
    for held in ("upper", "schedule"):
        schedule = getattr(schedule, held, None) or schedule
    if isinstance(schedule, Iterable):
        schedule = Schedule(instance, tuple(schedule))
    if not (isinstance(schedule, Schedule) and schedule.is_complete and schedule.clock.is_even):
        reason = f"must hold a schedule in rounds, be one, starts or a policy, got {shown(source)}"
        raise InvalidInput(reason, field=field)
    check = schedule.check()
    if schedule.instance.hash != instance.hash or not check.feasible:
        raise InvalidInput((*check.violations, "is for another instance")[0], field=field)
    return schedule


# ---- fleets -------------------------------------------------------------------------------


def _route(workload: Workload, workers: Sequence[Worker], router: ArrivalRouter) -> None:
    """Send every request to a worker when it arrives."""
    router.begin(len(workers))
    for i in workload.in_order:
        for worker in workers:
            worker.come_to(workload.arrivals[i])
        prompt = workload.instance.requests[i].prompt
        chosen = router.send(workers, i, prompt, workers[0].believed[i])
        if type(chosen) is not int or not 0 <= chosen < len(workers):
            reason = f"chose {shown(chosen)}, workers are 0 .. {len(workers) - 1}"
            raise PolicyFault(f"router {router.name}: {reason}")
        workers[chosen].serve(i)
        workers[chosen].deliver(i)


def _share(workload: Workload, workers: list[Simulation]) -> None:
    """Let workers take requests from one line."""
    free = set(workload.in_order)
    groups = [
        (time, list(group))
        for time, group in groupby(workload.in_order, workload.arrivals.__getitem__)
    ]
    groups.reverse()
    while True:
        time = min((t for worker in workers if (t := worker.next_time()) is not None), default=inf)
        if groups and groups[-1][0] <= time:
            for i in groups.pop()[1]:
                for worker in workers:
                    worker.deliver(i)
            continue
        if time == inf:
            return
        for worker in workers:
            worker.expects_more = bool(groups)
        _decide([worker for worker in workers if worker.next_time() == time], workers, free)


def _decide(present: list[Simulation], workers: list[Simulation], free: set[int]) -> None:
    """Let workers at the same time start requests, until none would start more.

    The one that will hold the fewest tokens is first, and is reordered after each start.
    """
    for worker in present:
        if not worker.is_deciding:
            worker.come()
    present = [worker for worker in present if worker.prepare()]
    line = [(worker.view.next_load, place) for place, worker in enumerate(present)]
    heapify(line)  # only the worker that takes requests holds more then
    asking = set(range(len(present)))
    while line:
        _, place = heappop(line)
        asking.remove(place)
        worker = present[place]
        started = worker.take()
        for i in started:
            if i in free:  # else it was evicted on this worker
                free.remove(i)
                worker.serve(i)
                for other in workers:
                    if other is not worker:
                        other.withdraw(i, worker.time)
        # Others whose line lost a request may decide otherwise, so these are asked again.
        called = {k for k, beside in enumerate(present) if beside.is_called} if started else set()
        for k in ({place} if started else set()) | called - asking:
            asking.add(k)
            heappush(line, (present[k].view.next_load, k))
