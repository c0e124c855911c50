"""Runs in seconds in which many requests attain their service levels.

A server takes requests in a fixed order, passes over a few that do not fit, and postpones requests
that would be late until all others are done.  The initial requests, their order, and the estimate
of lateness are varied: a run takes a few milliseconds.

With several workers each request is assigned to the one that would be done first.  Then each worker
searches for better parameters by itself, and a request that one postpones moves to another one
where it attains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from kvopt.bounds.seconds_evaluation import request_times
from kvopt.bounds.slo_prices import Span
from kvopt.heuristics.attaining.in_rounds import AttainingSets
from kvopt.kernels.budget import Budget
from kvopt.kernels.magnitudes import LARGEST_SUM, fits
from kvopt.problem.arrays import Flags, Floats, Integers, columns_of
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance

_RUNS_IN_TIME = 0.4
"""Share of the time for moves between workers, after each worker has searched by itself."""


class Way(NamedTuple):
    """Parameters of a server: limit of costs, order, and the others as in `serve`."""

    limit: float = 1.0
    by_due: bool = False
    patience: float = 1.0
    care: float = 0.0
    window: int = 8
    noise: int = 0


_CHOICES: dict[str, tuple[float, ...]] = {
    "limit": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, math.inf),
    "patience": (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5),
    "care": (0.0, 1.1, 1.2, 1.3, 1.4),
    "by_due": (False, True),
    "window": (1, 4, 8, 32),
    "noise": tuple(range(9)),
}
"""Values to try, one parameter after the other."""
_NOISE = 0.05
"""Relative variation of costs and volumes."""
_TURNS = 4
"""Limit of the variations of each of the best parameters."""
_LIMITS = (1.0, 0.8, math.inf)
"""Up to this cost a request counts as load of its worker in the assignment."""
_BESIDE = 0.7
"""Probability that a request near a late one moves instead of it."""
_IDLE = 20
"""The search ends after so many moves in a row, for each request, without an improvement."""


def attaining_in_seconds(
    instance: Instance,
    model: BatchTime,
    spans: Mapping[int, Span],
    costs: Floats,
    *,
    seed: int = 0,
    budget: Budget | None = None,
) -> AttainingSets | None:
    """Return the best of some runs, None if times do not fit into 64 bits.

    The other arguments are those of `kvopt.heuristics.attaining.in_rounds.attaining_in_rounds`.
    """
    table = ServingTable.of(instance, model, spans, costs)
    if table is None:
        return None
    budget, workers = budget or Budget(), instance.workers
    # Moves between workers have the time that each worker by itself leaves.
    alone = budget.part(1.0 - _RUNS_IN_TIME) if workers > 1 else budget
    first = budget.part(_RUNS_IN_TIME)

    def served(members: Integers, way: Way) -> AttainingServer:
        return AttainingServer(table.of_requests(members), instance.memory, model, seed, way)

    best: _Fleet | None = None
    for limit in _LIMITS:
        fleet = _Fleet(_dealt(table, instance, limit), workers, served)
        if best is None or fleet.count > best.count:
            best = fleet
        if workers == 1 or first.over() or best.count == best.most:
            break
    assert best is not None, "there is a limit at least"
    for left, server in zip(range(workers, 0, -1), best.servers, strict=True):
        server.search(alone.part(1 / left))
    if workers > 1:
        best.move(table, np.random.default_rng(seed), budget)
    return best.together()


class ServingTable(NamedTuple):
    """Requests as arrays, in nanoseconds.

    ``early`` and ``due`` are when the first and the last token are due, ``rest`` limits the time
    between the two, and ``takes`` is the least machine time of each, times the memory.
    """

    arrivals: Integers
    prompts: Integers
    outputs: Integers
    early: Integers
    due: Integers
    rest: Integers
    takes: Floats
    costs: Floats

    @classmethod
    def of(
        cls, instance: Instance, model: BatchTime, spans: Mapping[int, Span], costs: Floats
    ) -> ServingTable | None:
        """Return the requests of an instance, None if there are none, or times are too large."""
        arrivals = arrivals_ns(instance)
        part = request_times(instance, model, model.lines, object)
        if not arrivals or not fits(max(arrivals) + sum(part.alone)):
            return None
        limits = np.full((3, len(arrivals)), -1, dtype=np.int64)
        for i, span in spans.items():
            ends = arrivals[i] + span.early, arrivals[i] + span.end, span.rest
            limits[:, i] = [int(min(end, LARGEST_SUM)) for end in ends]
        takes = request_times(instance, model, model.lines, float).takes
        _, prompts, outputs = columns_of(instance)
        begins = np.array(arrivals, dtype=np.int64)
        early, due, rest = limits
        takes = np.asarray(takes, dtype=float)
        return cls(begins, prompts, outputs, early, due, rest, takes, costs)

    def of_requests(self, members: Integers) -> ServingTable:
        """Return the table of some of the requests."""
        return ServingTable._make(column[members] for column in self)


class AttainingServer:
    """Serves the requests of a table with several parameters, and keeps the best run.

    Attributes
    ----------
    best, way
        The best run so far, and its parameters.
    in_time
        Whether each request was kept in that run and attains.
    most
        Number of requests that can attain alone.
    """

    def __init__(
        self, table: ServingTable, memory: int, model: BatchTime, seed: int, way: Way
    ) -> None:
        from kvopt.heuristics.attaining.serving import ServiceDue, timed_of  # it loads numba

        self._table, self._seed = table, seed
        self._timed = timed_of(
            memory,
            model,
            table.arrivals,
            table.prompts,
            table.outputs,
            ServiceDue(table.early, table.due, table.rest),
        )
        self.most = int(np.isfinite(table.costs).sum())
        self.best, self.way = AttainingSets(-1, ()), way
        self.in_time: Flags = np.zeros(0, dtype=np.bool_)
        self._try(self.way)

    def search(self, budget: Budget) -> None:
        """Vary one of the best parameters after the other, until nothing improves any more."""
        for _ in range(_TURNS):
            before = self.best.count
            for name, values in _CHOICES.items():
                for value in values:
                    if budget.over() or self.best.count == self.most:
                        return
                    changed: dict[str, Any] = {name: value}
                    self._try(self.way._replace(**changed))
            if self.best.count == before:
                return

    def _try(self, way: Way) -> None:
        """Run with some parameters, and keep the run if it is the best so far."""
        from kvopt.heuristics.attaining.serving import ServiceLine, serve

        costs, count = self._table.costs, len(self._table.costs)
        varied = np.ones(count)
        if way.noise:
            random = np.random.default_rng((self._seed, way.noise))
            varied = np.exp(_NOISE * random.standard_normal(count))
        kept = ((costs * varied <= way.limit) & np.isfinite(costs)).astype(np.int64)
        volumes = self._table.takes * varied
        line: Integers = np.argsort(volumes, kind="stable")
        if way.by_due:
            line = np.lexsort((volumes, self._table.early, self._table.due))
        ranks = np.empty_like(line)
        ranks[line] = np.arange(count)
        starts, resumed = np.full(count, -1, dtype=np.int64), np.zeros((count + 1, 2), dtype=int)
        lines = ServiceLine(
            line, ranks, np.zeros(count + 1, dtype=int), np.zeros((count + 1, 3), dtype=int)
        )
        attained, waits = serve(
            self._timed, lines, kept, way.window, way.patience, way.care, starts, resumed
        )
        if attained > self.best.count:
            rows = tuple((number, time, 0) for number, time in resumed[:waits].tolist())
            self.best = AttainingSets(int(attained), tuple(starts.tolist()), resumed=rows)
            self.way, self.in_time = way, kept == 1


def _dealt(table: ServingTable, instance: Instance, limit: float) -> Integers:
    """Assign each request, as it arrives, to the worker that would complete its others first.

    Requests that cost more than a limit add no load: they are likely to be postponed.  Times are
    counted as in ``takes``, in nanoseconds times the memory.
    """
    free, workers = np.zeros(instance.workers), np.zeros(len(instance), dtype=np.int64)
    for i in np.argsort(table.arrivals, kind="stable"):
        np.maximum(free, float(table.arrivals[i]) * instance.memory, out=free)
        workers[i] = free.argmin()
        if table.costs[i] <= limit:
            free[workers[i]] += table.takes[i]
    return workers


class _Fleet:
    """Workers, each with its best run, and the worker of each request."""

    def __init__(
        self, on: Integers, workers: int, served: Callable[[Integers, Way], AttainingServer]
    ) -> None:
        self._on, self._served = on, served
        self.servers = [served(self._members(worker), Way()) for worker in range(workers)]

    def _members(self, worker: int) -> Integers:
        return np.flatnonzero(self._on == worker)

    @property
    def count(self) -> int:
        """Return how many attain."""
        return sum(server.best.count for server in self.servers)

    @property
    def most(self) -> int:
        """Return how many can attain alone."""
        return sum(server.most for server in self.servers)

    def move(self, table: ServingTable, random: np.random.Generator, budget: Budget) -> None:
        """Move late requests and some near them, unless fewer attain then."""
        idle = 0
        while idle < _IDLE * len(self._on) and self.count < self.most and not budget.over():
            before, is_late = self.count, np.isfinite(table.costs)
            for worker, server in enumerate(self.servers):
                is_late[self._members(worker)] &= ~server.in_time
            # Fewer attain than can, so one is late.  It moves, or one whose span meets its own.
            i = int(random.choice(np.flatnonzero(is_late)))
            if random.random() < _BESIDE:
                members = self._members(self._on[i])
                near = table.arrivals[members] <= table.due[i]
                near &= table.due[members] >= table.arrivals[i]
                i = int(random.choice(members[near]))
            self._move(i, int(random.integers(len(self.servers))))
            idle = idle + 1 if self.count == before else 0

    def _move(self, i: int, worker: int) -> None:
        """Move a request to a worker if at least as many attain then."""
        on, source = self._on, int(self._on[i])
        if source == worker:
            return
        before, servers = self.count, [*self.servers]
        self._on = np.where(np.arange(len(on)) == i, worker, on)
        for place in (worker, source):
            self.servers[place] = self._served(self._members(place), servers[place].way)
        if self.count < before:
            self._on, self.servers = on, servers

    def together(self) -> AttainingSets:
        """Return the runs of all workers as one."""
        starts = np.zeros(len(self._on), dtype=np.int64)
        resumed: list[tuple[int, int, int]] = []
        for worker, server in enumerate(self.servers):
            starts[self._members(worker)] = server.best.starts
            resumed += ((number, time, worker) for number, time, _ in server.best.resumed)
        return AttainingSets(
            self.count, tuple(starts.tolist()), tuple(self._on.tolist()), tuple(resumed)
        )
