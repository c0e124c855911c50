"""The loops for fleets: workers with a cache, a scheduler and rounds of their own.

Every worker is simulated as a server alone would be.  A router that sends requests to workers when
they arrive needs no more than that all of them have come as far as the arrival.  With one line for
all, workers go from decision to decision in the order of time, and what one of them starts is
withdrawn from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import groupby
from math import inf

from kvopt.errors import InvalidInput, PolicyFault, shown
from kvopt.kernels.compile_clock import working_time
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance
from kvopt.problem.requests import volume_of
from kvopt.simulate.policies.base import Need, Policy
from kvopt.simulate.routers.base import ArrivalRouter, Router
from kvopt.simulate.server import Server
from kvopt.simulate.simulator import MOST_EVICTIONS, Simulation, Stopped
from kvopt.timetable.runs import PolicyRun


class Worker(Simulation):
    """One server of a fleet, which goes on as far as it is told to.

    It stops at rounds that are about to begin: what ended before has completed, and what arrived
    has not joined.

    Attributes
    ----------
    members
        Positions of what it serves.
    requests, volume
        Of these, how many have not finished, and their believed token-rounds.
    is_deciding
        Whether a round is about to begin in which something can change.
    is_called
        Whether another worker took what was waiting here since this one last decided.
    """

    def __init__(
        self, instance: Instance, policy: Policy, clock: Clock, arrivals: list[int]
    ) -> None:
        super().__init__(instance, policy, clock, arrivals)
        self.arriving = []
        self.members: list[int] = []
        self.requests = self.volume = 0
        self.is_deciding = self.is_called = False
        self.expects_more = True
        pairs = zip(self.truth.prompts, self.truth.beliefs.output, strict=True)
        self._volumes = [volume_of(prompt, output) for prompt, output in pairs]
        self._is_over = self._is_known = False
        self._following: tuple[int, int] | None = None  # the next round, and when it begins
        self._seen_at = 0  # the last time that it came to, or was called at
        policy.begin(self.view)

    # ---- what comes and goes ------------------------------------------------------------

    def serve(self, i: int) -> None:
        """Take note that a request runs here and nowhere else."""
        self.members.append(i)
        self.requests += 1
        self.volume += self._volumes[i]

    def deliver(self, i: int) -> None:
        """Let a request arrive here, after those that arrived before."""
        self._is_known &= bool(self.arriving)
        self.arriving.insert(0, i)

    def withdraw(self, i: int, time: int) -> None:
        """Take note that another worker started a request that waits here, or is about to."""
        if i not in self.waiting:
            self.arriving.remove(i)
            self._is_known = False
            return
        self.waiting.remove(i)
        self.policy.withdrawn(self.view, i)
        if not self.is_called:
            self.is_called, self._seen_at, self._is_known = True, time, False

    def tokens(self) -> int:
        """Return the tokens held at the time that it came to."""
        view, active = self.view, len(self.view.active)
        passed = self.clock.due(view, self._prompts, self._seen_at - self.time) - view.now
        return view.next_load + active * (passed - 1) if active else 0

    # ---- time ---------------------------------------------------------------------------

    def next_time(self) -> int | None:
        """Return when there is something to decide next, None if there is nothing."""
        if self.is_deciding:
            return self.time
        if not self._is_known:
            following = None if self._is_over else self._next_round()
            if following is not None and self.limit is not None and following > self.limit:
                self._is_over, following = True, None
            self._following = None if following is None else (following, self._time_at(following))
            self._is_known = True
        return None if self._following is None else self._following[1]

    def come_to(self, time: float) -> None:
        """Decide all that is decided before a time, and complete what ends by then."""
        while (following := self.next_time()) is not None and following <= time:
            if not self.is_deciding:
                self.come()
            elif self.time < time:
                self.decide()
            else:
                break
        if time < inf:
            self._seen_at = int(time)

    def come(self) -> None:
        """Come to the next round to decide something in."""
        assert self._following is not None
        self._advance(*self._following)
        self._seen_at = self.time
        self._complete()
        self.is_deciding = True

    def decide(self) -> None:
        """Let what arrived join, and let the policy evict and start requests."""
        if self.prepare():
            self._admit()

    def prepare(self) -> bool:
        """Let what arrived join, and let the policy evict; return whether it may start requests."""
        self.is_deciding = self._is_known = False
        self._arrive()
        if self._evict() and (self._repeats() or self._fruitless >= MOST_EVICTIONS):
            self._is_over = True
        return not self._is_over

    def take(self) -> list[int]:
        """Let the policy start a request, or several at once; return what it started."""
        self.is_called = self._is_known = False
        return self._admit(is_one_enough=True)

    def _finish(self, i: int, start: int) -> None:
        super()._finish(i, start)
        self.requests -= 1
        self.volume -= self._volumes[i]

    def _next_round(self) -> int | None:
        following = super()._next_round()
        if not self.is_called or not self.waiting:
            return following
        due = self.clock.due(self.view, self._prompts, self._seen_at - self.time)
        due = max(due, self.view.now + 1)
        return due if following is None else min(due, following)

    def _repeats(self) -> bool:
        return not self.expects_more and super()._repeats()


def run_fleet(
    instance: Instance,
    policy: Policy,
    router: Router,
    clock: Clock,
    labels: tuple[str, str],
    should_stop: Callable[[], bool],
) -> PolicyRun:
    """Simulate a scheduler on every worker of a fleet.

    Parameters
    ----------
    instance, policy, clock, should_stop
        As for `kvopt.run`; every worker has a copy of the policy.
    router
        How requests come to workers.
    labels
        What policy and router are called.
    """
    if Need.ARRIVALS in policy.needs:
        raise InvalidInput("plans for one worker, not for a fleet", field=labels[0])
    began = working_time()
    arrivals = clock.arrivals(instance)
    workers = [Worker(instance, deepcopy(policy), clock, arrivals) for _ in range(instance.workers)]
    if isinstance(router, ArrivalRouter):
        route(instance, arrivals, workers[0].truth.beliefs.output, workers, router, should_stop)
        for worker in workers:
            worker.expects_more = False
            worker.come_to(inf)
    else:
        _share(_in_order(arrivals), workers, should_stop)
    return _found(instance, workers, clock, labels, working_time() - began)


def route(
    instance: Instance,
    arrivals: Sequence[int],
    outputs: Sequence[int],
    workers: Sequence[Worker | Server],
    router: ArrivalRouter,
    should_stop: Callable[[], bool],
) -> list[int]:
    """Send every request to a worker when it arrives; return where to.

    Parameters
    ----------
    instance, arrivals, outputs
        What arrives when, and how many tokens it is believed to produce.
    workers, router, should_stop
        As for `run_fleet`.
    """
    sent = [0] * len(instance)
    router.begin(len(workers))
    for i in _in_order(arrivals):
        if should_stop():
            raise Stopped
        for worker in workers:
            worker.come_to(arrivals[i])
        chosen = router.choose(workers, instance.requests[i].prompt, outputs[i])
        if type(chosen) is not int or not 0 <= chosen < len(workers):
            said = f"chose {shown(chosen)}, workers are 0 .. {len(workers) - 1}"
            raise PolicyFault(f"router {router.name}: {said}")
        sent[i] = chosen
        workers[chosen].serve(i)
        workers[chosen].deliver(i)
    return sent


def _in_order(arrivals: Sequence[int]) -> list[int]:
    return sorted(range(len(arrivals)), key=lambda i: (arrivals[i], i))


def _share(arriving: list[int], workers: list[Worker], should_stop: Callable[[], bool]) -> None:
    """Let workers take requests from one line."""
    arrivals = workers[0].arrivals
    free = set(arriving)
    groups = [(time, list(group)) for time, group in groupby(arriving, arrivals.__getitem__)]
    groups.reverse()
    while True:
        if should_stop():
            raise Stopped
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


def _decide(present: list[Worker], workers: list[Worker], free: set[int]) -> None:
    """Let workers start requests that have come to one time, until none would start more.

    The one that will hold the fewest tokens goes first, and again when it has started something.
    """
    for worker in present:
        if not worker.is_deciding:
            worker.come()
    present = [worker for worker in present if worker.prepare()]
    asking = set(present)
    while asking:
        worker = min((each for each in present if each in asking), key=lambda w: w.view.next_load)
        started = worker.take()
        if not started:
            asking.remove(worker)
        for i in started:
            if i in free:  # else it was evicted here
                free.remove(i)
                worker.serve(i)
                for other in workers:
                    if other is not worker:
                        other.withdraw(i, worker.time)
        asking.update(each for each in present if each.is_called)


def _found(
    instance: Instance,
    workers: list[Worker],
    clock: Clock,
    labels: tuple[str, str],
    seconds: float,
) -> PolicyRun:
    """Return what the workers did."""
    served: list[int | None] = [None] * len(instance)
    starts: list[int | None] = [None] * len(instance)
    notes = []
    for number, worker in enumerate(workers):
        for i in worker.members:
            served[i], starts[i] = number, worker.starts[i]
        if worker.note is not None:
            notes.append(f"worker {number}: {worker.note}")
    return PolicyRun(
        instance,
        starts,
        served,
        clock=clock,
        lost=[piece for worker in workers for piece in worker.lost],
        resumed=() if clock.is_even else [worker.resumed for worker in workers],
        policy=labels[0],
        wall_seconds=seconds,
        note="; ".join(notes) or None,
        router=labels[1],
    )
