"""Quick list schedules: a feasible schedule within moments, for every size.

Policies that scan an order and look ahead (`kvopt.simulate.policies`) give the engines a schedule
to start from and to improve.
"""

from __future__ import annotations

from heapq import heapreplace

from kvopt.errors import Stopped
from kvopt.incumbent.incumbent import Search
from kvopt.problem.instance import Instance
from kvopt.simulate.policies.interface import Policy
from kvopt.simulate.policies.order_policies import Fcfs, McSf, McSfTotal, Svf
from kvopt.simulate.run_policy import run
from kvopt.timetable.schedule import Schedule

_POLICIES: tuple[type[Policy], ...] = (Svf, McSf, McSfTotal, Fcfs)
"""First list schedules, the usually best one first."""


def one_after_another(instance: Instance) -> Schedule:
    """Return a schedule in which a worker serves one request at a time: poor, but immediate.

    The next request goes to the worker that is free first.
    """
    starts, workers = [0] * len(instance), [0] * len(instance)
    free = [(0, worker) for worker in range(instance.workers)]
    requests = instance.requests
    for i in sorted(range(len(instance)), key=lambda i: (requests[i].arrival, requests[i].output)):
        clock, workers[i] = free[0]
        starts[i] = max(clock, requests[i].arrival)
        heapreplace(free, (starts[i] + requests[i].output, workers[i]))
    return Schedule(instance, starts, workers)


def offer_list_schedules(search: Search, few_requests: int = 5_000) -> None:
    """Offer a feasible schedule under any limit, and those of good policies, of many only one."""
    instance = search.instance
    search.offer(one_after_another(instance), "one after another")
    tried = _POLICIES if len(instance) <= few_requests else _POLICIES[:1]
    for policy in tried:
        try:
            schedule = run(instance, policy(), should_stop=search.budget.over).schedule
        except Stopped:
            break
        assert schedule is not None, "true outputs never overflow"
        search.offer(schedule, f"policy {policy.name}")
