"""Test that a policy decides by past arrivals, on instances that differ later."""

from __future__ import annotations

from random import Random
from typing import Any

from kvopt.errors import PolicyFault
from kvopt.problem.clocks import ROUNDS
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Prediction, Request
from kvopt.simulate.policies.by_name import policy as policy_from
from kvopt.simulate.policies.interface import Policy
from kvopt.simulate.run_policy import at_fault
from kvopt.simulate.simulator import Simulation, Workload

_LAST = 12
"""Last arrival, and first of those that are changed."""


def check_online(policy: str | Policy, *, tries: int = 300, seed: int = 0) -> None:
    """Raise `PolicyFault` if decisions of a policy depend on later arrivals.

    It runs on pairs of small instances that agree in memory, in the number of requests and in all
    arrivals before some round, and must have started and evicted the same requests until then.

    Parameters
    ----------
    policy
        A policy, or ``NAME[:key=value,...]``.
    tries, seed
        Number of drawn pairs, and the seed.

    Examples
    --------
    >>> check_online("mc-sf")
    >>> check_online("a-switch")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    kvopt.errors.PolicyFault: a-switch: decides otherwise before round 7 if what ...
    """
    chosen = policy_from(policy) if isinstance(policy, str) else policy
    label, rng = policy if isinstance(policy, str) else policy.name, Random(seed)
    for number in range(tries):
        memory, block = rng.randint(2, 20), rng.randint(1, 3) if number % 2 else None
        one = [_drawn(rng, memory, 0, block) for _ in range(rng.randint(2, 8))]
        now = max(1, rng.choice(one).arrival)
        other = [r if r.arrival < now else _drawn(rng, memory, now, block) for r in one]
        pair = [Instance(memory, requests, block_tokens=block) for requests in (one, other)]
        with at_fault(chosen, label):
            first, second = (_decided(chosen, instance, now) for instance in pair)
        if first != second:
            both = " for ".join(str([_shown(r) for r in instance]) for instance in pair)
            fields = f"(arrival, prompt, output{', prefix' if block else ''})"
            raise PolicyFault(
                f"{label}: decides otherwise before round {now} if what arrives from then on is "
                f"another; memory {memory}, {fields} {both}"
            )


def _drawn(rng: Random, memory: int, first: int, block: int | None) -> Request:
    """Draw a request; with blocks its prefix is a path in a tree of three branches."""
    prompt = rng.randrange(memory)
    output = rng.randint(1, memory - prompt)
    interval = Prediction(rng.randint(1, output), rng.randint(output, memory - prompt))
    arrival, path = rng.randint(first, first + _LAST), list[str]()
    for _ in range(rng.randint(0, prompt // block) if block else 0):
        path.append((path[-1] if path else "") + rng.choice("aab"))
    return Request(arrival, prompt, output, predicted=interval, prefix=path)


def _shown(request: Request) -> tuple[object, ...]:
    return (*request.kind, *filter(None, [request.prefix]))


def _decided(policy: Policy, instance: Instance, now: int) -> Any:
    """Return the starts and evictions before a round."""
    workload = Workload(instance, ROUNDS, lambda: False)
    simulation = Simulation(workload, policy)
    for i in workload.in_order:
        simulation.deliver(i)
    simulation.expects_more = False
    simulation.come_to(now)
    return simulation.rows, simulation.lost, simulation.view.active
