"""The loops for fleets: workers with a cache, a scheduler and rounds of their own.

Every worker is simulated like a single server.  For a router that sends requests to workers on
arrival, all workers are simulated up to the arrival.  With one line for all, workers decide in the
order of time, and a request that one of them starts is withdrawn from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby
from math import inf

from kvopt.errors import PolicyFault, shown
from kvopt.simulate.routers import ArrivalRouter
from kvopt.simulate.simulator import Simulation, Worker, Workload


def route(workload: Workload, workers: Sequence[Worker], router: ArrivalRouter) -> None:
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


def share(workload: Workload, workers: list[Simulation]) -> None:
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
        called = {k for k, beside in enumerate(present) if beside.is_called} if started else set()
        for k in ({place} if started else set()) | called - asking:
            asking.add(k)
            heappush(line, (present[k].view.next_load, k))
