"""Quick list schedules: something feasible within moments, for every size.

Policies that scan an order and look ahead (`kvopt.policies`) give the engines a schedule to
start from and to improve.
"""

from __future__ import annotations

from kvopt.model.instance import Instance
from kvopt.policies.base import Policy
from kvopt.policies.fcfs import Fcfs
from kvopt.policies.mc_sf import McSf
from kvopt.policies.mc_sf_total import McSfTotal
from kvopt.policies.svf import Svf
from kvopt.search.incumbent import Search
from kvopt.simulation.running import run
from kvopt.simulation.simulator import Stopped

_POLICIES: tuple[type[Policy], ...] = (Svf, McSf, McSfTotal, Fcfs)
"""List schedules to start from, the usually best one first."""

ONE_AFTER_ANOTHER = "one after another"
"""Name of its schedule in `found_by`."""


def one_after_another(instance: Instance) -> list[int]:
    """Return a schedule that serves one request at a time: poor, but there at once."""
    starts, clock = [0] * len(instance), 0
    requests = instance.requests
    for i in sorted(range(len(instance)), key=lambda i: (requests[i].arrival, requests[i].output)):
        starts[i] = max(clock, requests[i].arrival)
        clock = starts[i] + requests[i].output
    return starts


def offer_list_schedules(search: Search) -> None:
    """Give a search something feasible to start from, whatever its limit is."""
    search.offer_starts(one_after_another(search.instance), ONE_AFTER_ANOTHER)
    for policy in _POLICIES:
        if not _offer(search, policy):
            return


def offer_better_than_one_after_another(search: Search) -> None:
    """Run the usually best policy if nothing but one request at a time is known."""
    if search.found_by == ONE_AFTER_ANOTHER:
        _offer(search, _POLICIES[0])


def _offer(search: Search, policy: type[Policy]) -> bool:
    """Offer what a policy does; return whether it came to its end."""
    try:
        schedule = run(search.instance, policy(), should_stop=search.should_stop).schedule
    except Stopped:
        return False
    assert schedule is not None, "true outputs never overflow"
    search.offer_starts(schedule.starts, f"policy {policy.name}")
    return True
