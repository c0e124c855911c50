"""``run``: what a policy does to an instance."""

from __future__ import annotations

from collections.abc import Callable

from kvopt.model.instance import Instance
from kvopt.policies.base import Policy
from kvopt.policies.registry import policy as policy_from
from kvopt.simulation.runs import PolicyRun
from kvopt.simulation.simulator import simulate


def run(
    instance: Instance, policy: str | Policy, *, should_stop: Callable[[], bool] = lambda: False
) -> PolicyRun:
    """Simulate a scheduler.

    Parameters
    ----------
    instance
        The problem.
    policy
        ``NAME[:key=value,...]`` as on the command line, or a policy object.
    should_stop
        Asked every round; when it turns true, `kvopt.simulation.simulator.Stopped` is raised.

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
    """
    if isinstance(policy, str):
        return simulate(instance, policy_from(policy), policy, should_stop)
    return simulate(instance, policy, None, should_stop)
