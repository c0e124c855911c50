"""Good runs in seconds: orders behind routers, then moves and swaps between workers.

In seconds every worker has rounds of its own, which last as long as its batch.  So the gain of a
move is known only after both workers are simulated again.  A run is a set of requests for each
worker, and a *key* for each request: a worker starts waiting requests in ascending order of keys.
The first keys are the start times of the run to improve, so that each worker repeats about its old
run, and a request that moves keeps its time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from heapq import heapreplace
from itertools import product
from random import Random
from typing import Any

from kvopt.bounds.seconds_evaluation import request_times
from kvopt.errors import Stopped
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget, wall_time
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.simulate.policies.interface import Policy
from kvopt.simulate.policies.order_policies import LeastShare
from kvopt.simulate.run_policy import run
from kvopt.timetable.policy_run import PolicyRun

POLICIES = ("svf", "mc-sf", "fcfs")
"""First policies to try."""
ROUTERS = (
    "central", "least-volume", "least-requests", "two-choices", "round-robin", "least-tokens",
    "random",
)  # fmt: skip
"""Routers to try, the usually best ones first."""
_HABITS = ((10, 30), (1, 0))
"""Windows and patience of the orders."""
_NEAR = 8
"""Largest distance in the order of starts of two requests to swap."""
_IDLE_STEPS, _IDLE_WORK = 200, 100_000
"""Moves end after so many steps for each worker without improvement, and after so many requests
times steps; with a time limit ten times as many."""


def orders_of(instance: Instance, clock: Clock) -> dict[str, Sequence[int]]:
    """Return keys of requests by order: share of the machine, volume, output and arrival."""
    model, requests = clock.batch_time, instance.requests
    return {
        "least share": request_times(instance, model, model.lines, object).takes.tolist(),
        "least volume": [request.volume for request in requests],
        "least output": [request.output for request in requests],
        "first come": clock.arrivals(instance),
    }


def policies_for(instance: Instance) -> tuple[str, ...]:
    """Return policies to try first, some of which know shared prefixes."""
    return (*POLICIES, "svf-private", "lpm") if "prefix" in instance.extras else POLICIES


def search_runs(search: Search, _: Budget) -> None:
    """Search for better runs: orders behind routers, then moves between workers."""
    search_routed(search)
    if not search.budget.over():
        search.engine = "moves"
        search_moves(search, search.limits.seed)


def offer_one_by_one(search: Search) -> None:
    """Offer a run in which a worker serves one request at a time: poor, but immediate.

    The next request goes to the worker that is free first.
    """
    instance, model, began = search.instance, search.clock.batch_time, wall_time()
    arrivals, count = search.clock.arrivals(instance), len(instance)
    starts, workers = [0] * count, [0] * count
    resumed: list[dict[int, int]] = [{} for _ in range(instance.workers)]
    free = [(0, worker, 0) for worker in range(instance.workers)]  # its end, and the next round
    for i in sorted(range(count), key=lambda i: (arrivals[i], i)):
        time, worker, number = free[0]
        prompt, output = instance.requests[i].shape
        begin = max(time, arrivals[i])
        # With cached blocks rounds may end earlier than computed here: then all begins are stated.
        if begin > time or not number or instance.extras:
            resumed[worker][number] = begin
        starts[i], workers[i] = number, worker
        end = begin + model.round_ns(1, prompt, prompt + 1)
        end += model.stretch_ns(1, prompt + 2, output - 1)
        heapreplace(free, (end, worker, number + output))
    name, work = "one after another", {"starts": starts, "workers": workers, "resumed": resumed}
    search.offer(joined_run(search, name, began, **work), name)


def offer_policies(search: Search, _: Budget) -> None:
    """Offer the runs of policies."""
    for label in policies_for(search.instance):
        offer_policy(search, label, label)


def search_routed(search: Search) -> None:
    """Offer the runs of orders behind routers."""
    orders = orders_of(search.instance, search.clock).items()
    for router in ROUTERS if search.instance.workers > 1 else ROUTERS[:1]:
        for (name, keys), (window, patience) in product(orders, _HABITS):
            policy = LeastShare(takes=keys, window=window, patience=patience)
            offer_policy(search, policy, f"{router} + {name}", router)


def offer_policy(
    search: Search,
    policy: str | Policy,
    label: str,
    router: str = "central",
    budget: Budget | None = None,
) -> PolicyRun | None:
    """Offer the run of a policy and return it, None if the time is over before it ends."""
    budget = budget or search.budget
    if budget.over():
        return None
    with suppress(Stopped):
        options: Any = {"router": router, "label": label, "should_stop": budget.over}
        ended = run(search.instance, policy, clock=search.clock, **options)
        search.offer(ended, label)
        return ended
    return None


def search_moves(search: Search, seed: int = 0) -> None:
    """Improve the run by moves and swaps between workers and by other keys, while these gain."""
    best, count = search.best, len(search.instance)
    if not isinstance(best, PolicyRun) or count < 2 or best.pauses or best.chunks:
        return
    limit = max(10, min(_IDLE_STEPS * search.instance.workers, _IDLE_WORK // count))
    if search.budget.left < math.inf:
        limit *= 10
    state, random, idle = _Dealt(search, best), Random(seed), 0
    with suppress(Stopped):
        while idle < limit and not search.budget.over():
            idle = 0 if state.step(random) else idle + 1


class _Dealt:
    """The worker and the key of each request, and the run of each worker."""

    def __init__(self, search: Search, best: PolicyRun) -> None:
        self._search, self._began = search, wall_time()
        self._keys = list(best.start_times)
        self._line = sorted(range(len(self._keys)), key=self._keys.__getitem__)
        self._members, self._parts = best.members, list(best.parts)

    def step(self, random: Random) -> bool:
        """Try a move, a swap or another key; keep it if it is better, and return whether it is."""
        place = random.randrange(len(self._line))
        near = min(max(place + random.randint(-_NEAR, _NEAR), 0), len(self._line) - 1)
        i, other = self._line[place], self._line[near]
        source = next(w for w, members in enumerate(self._members) if i in members)
        key, way = self._keys[i], random.random()
        changed = [list(members) for members in self._members]
        touched = {source}
        if len(changed) > 1 and way < 0.7:
            target = random.choice([w for w in range(len(changed)) if w != source])
            changed[source].remove(i)
            if way < 0.35 and other in changed[target]:
                changed[target].remove(other)
                changed[source].append(other)
            changed[target].append(i)
            touched.add(target)
        else:
            self._keys[i] = self._keys[other] + random.choice((-1, 1))
        # Workers have rounds of their own, so that only runs of touched ones change.
        parts = list(self._parts)
        for worker in touched:
            changed[worker].sort()
            parts[worker] = self._alone(changed[worker])
        before = sum(self._parts[worker].objective for worker in touched)
        if sum(parts[worker].objective for worker in touched) >= before:
            self._keys[i] = key
            return False
        self._members, self._parts = changed, parts
        self._offer()
        return True

    def _alone(self, members: list[int]) -> PolicyRun:
        """Simulate one worker with its requests."""
        search = self._search
        policy = LeastShare(takes=[self._keys[i] for i in members], window=1, patience=0)
        part = search.instance.of_one_worker(members)
        return run(part, policy, clock=search.clock, should_stop=search.budget.over)

    def _offer(self) -> None:
        """Offer the runs of all workers as one run."""
        count, label = len(self._line), "moves between workers"
        starts, workers = [0] * count, [0] * count
        for worker, (members, part) in enumerate(zip(self._members, self._parts, strict=True)):
            for i, start in zip(members, part.starts, strict=True):
                starts[i], workers[i] = start, worker
        resumed = [part.resumed[0] for part in self._parts]
        work = {"starts": starts, "workers": workers, "resumed": resumed}
        self._search.offer(joined_run(self._search, label, self._began, **work), label)


def joined_run(search: Search, label: str, began: float, **work: Any) -> PolicyRun:
    """Return a run from the work of all workers, as arguments of a schedule."""
    spent = wall_time() - began
    return PolicyRun(search.instance, clock=search.clock, policy=label, wall_seconds=spent, **work)
