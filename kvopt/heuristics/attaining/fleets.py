"""Runs of a fleet in seconds in which many requests attain their deadlines.

Requests are dealt to workers, each of which serves its own as in
`kvopt.heuristics.attaining.seconds`.  Each is dealt to the worker that would be done first.  Then
each worker looks for a better way by itself, and what one puts off moves to another one where it
attains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from kvopt.heuristics.attaining.rounds import Attaining
from kvopt.heuristics.attaining.seconds import FIRST_WAY, Server, Table, Way
from kvopt.kernels.compile_clock import working_time
from kvopt.problem.arrays import Flags, Floats, Integers
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.deadlines import Aim
from kvopt.problem.instance import Instance

_LIMITS = (1.0, 0.8, math.inf)
"""Costs up to which a request counts as load of its worker when it is dealt."""
_BESIDE = 0.7
"""Probability that a request beside a late one moves in its place."""
_IDLE = 20
"""Moves in a row, for each request, without one that helps, after which the search ends."""
_ALONE_SHARE = 0.4
"""Share of the time in which each worker looks for a better way."""


def attaining_on_workers(
    instance: Instance,
    model: BatchTime,
    allowed: Sequence[int],
    aim: Aim,
    costs: Floats,
    *,
    seed: int = 0,
    time_limit: float = math.inf,
    should_stop: Callable[[], bool] = lambda: False,
) -> Attaining | None:
    """Return the best of some runs, None where times do not fit into 64 bits.

    Arguments are as of `kvopt.heuristics.attaining.seconds.attaining_in_seconds`.
    """
    table = Table.of(instance, model, allowed, costs)
    if table is None:
        return None
    began = working_time()

    def is_over(share: float = 1.0) -> bool:
        return should_stop() or working_time() > began + share * time_limit

    def served(members: Integers, way: Way = FIRST_WAY) -> Server:
        return Server(table.some(members), instance.memory, model, aim, seed, way)

    best: _Fleet | None = None
    for limit in _LIMITS:
        fleet = _Fleet(_dealt(table, instance, limit), instance.workers, served)
        if best is None or fleet.count > best.count:
            best = fleet
        if is_over(_ALONE_SHARE) or best.count == best.most:
            break
    assert best is not None, "there is a limit at least"
    for place, server in enumerate(best.servers):
        share = (1.0 - _ALONE_SHARE) * (place + 1) / len(best.servers)
        server.search(partial(is_over, share))
    best.move(table, np.random.default_rng(seed), is_over)
    return best.together()


def _dealt(table: Table, instance: Instance, limit: float) -> Integers:
    """Deal each request, as it arrives, to the worker that would be done with the others first.

    Those that cost more than a limit take nothing: they are likely to be put off.
    """
    free = np.zeros(instance.workers)
    found = np.zeros(len(instance), dtype=np.int64)
    for i in np.argsort(table.arrivals, kind="stable"):
        np.maximum(free, float(table.arrivals[i]) * instance.memory, out=free)
        found[i] = free.argmin()
        if table.costs[i] <= limit:
            free[found[i]] += table.takes[i]
    return found


class _Fleet:
    """Workers with their requests, each with the best run that it found."""

    def __init__(self, on: Integers, workers: int, served: Callable[..., Server]) -> None:
        self._on, self._served = on, served
        self._members = [np.flatnonzero(on == worker) for worker in range(workers)]
        self.servers = [served(own) for own in self._members]

    @property
    def count(self) -> int:
        """Return how many attain."""
        return sum(server.best.count for server in self.servers)

    @property
    def most(self) -> int:
        """Return how many can attain alone."""
        return sum(server.most for server in self.servers)

    def move(self, table: Table, random: np.random.Generator, is_over: Callable[[], bool]) -> None:
        """Move requests that are late, and some beside them, as long as no fewer attain."""
        idle = 0
        while idle < _IDLE * len(self._on) and self.count < self.most and not is_over():
            before = self.count
            late = np.flatnonzero(~self._in_time() & np.isfinite(table.costs))
            i = int(random.choice(late))
            if random.random() < _BESIDE:
                own = self._members[self._on[i]]
                near = table.arrivals[own] <= table.due[i]
                near &= table.due[own] >= table.arrivals[i]
                i = int(random.choice(own[near]))
            self._moved(i, int(random.integers(len(self.servers))))
            idle = idle + 1 if self.count == before else 0

    def _in_time(self) -> Flags:
        """Return of each request whether it attains."""
        found = np.zeros(len(self._on), dtype=np.bool_)
        for own, server in zip(self._members, self.servers, strict=True):
            found[own] = server.in_time
        return found

    def _moved(self, i: int, worker: int) -> None:
        """Move a request to a worker if as many attain then."""
        old = int(self._on[i])
        if old == worker:
            return
        more = np.sort(np.append(self._members[worker], i))
        fewer = self._members[old][self._members[old] != i]
        there = self._served(more, self.servers[worker].way)
        here = self._served(fewer, self.servers[old].way)
        known = sum(self.servers[each].best.count for each in (old, worker))
        if there.best.count + here.best.count < known:
            return
        for each, own, server in ((worker, more, there), (old, fewer, here)):
            self._members[each], self.servers[each] = own, server
        self._on[i] = worker

    def together(self) -> Attaining:
        """Return the runs of all workers as one."""
        starts = np.zeros(len(self._on), dtype=np.int64)
        resumed: list[tuple[int, int, int]] = []
        for worker, (own, server) in enumerate(zip(self._members, self.servers, strict=True)):
            starts[own] = server.best.starts
            resumed += ((number, time, worker) for number, time, _ in server.best.resumed)
        return Attaining(
            self.count, tuple(starts.tolist()), tuple(self._on.tolist()), tuple(resumed)
        )
