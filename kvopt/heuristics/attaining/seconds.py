"""Runs in seconds in which many requests attain their deadlines.

A server takes requests in a fixed order, passes over a few that do not fit, and puts off what would
be late until all others are done.  Which requests count from the beginning, in which order, and how
late one looks from far away, is tried out: a run takes a few milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kvopt.bounds.seconds_evaluation import shares
from kvopt.heuristics.attaining.rounds import Attaining
from kvopt.kernels.compile_clock import working_time
from kvopt.problem.arrays import Flags, Floats, Integers, columns_of
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.deadlines import Aim
from kvopt.problem.instance import Instance


@dataclass(frozen=True, slots=True)
class Way:
    """A server: costs up to which requests count, their order, and the rest as in `serve`."""

    limit: float = 1.0
    by_deadline: bool = False
    patience: float = 1.0
    care: float = 0.0
    window: int = 8
    noise: int = 0


FIRST_WAY = Way()
"""The way that the others vary."""

_CHOICES: dict[str, tuple[float, ...]] = {
    "limit": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, math.inf),
    "patience": (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5),
    "care": (0.0, 1.1, 1.2, 1.3, 1.4),
    "by_deadline": (False, True),
    "window": (1, 4, 8, 32),
    "noise": tuple(range(9)),
}
"""What is tried, one part of a way after the other."""
_NOISE = 0.05
"""By how much costs and volumes are varied, as a share."""
_TURNS = 4
"""How often each part of the best way is varied, at most."""
_LARGEST = 2**61
"""Nanoseconds that loops in 64 bits can count to."""


def attaining_in_seconds(
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
    """Return the best of some runs of one worker, None where times do not fit into 64 bits.

    Arguments are as of `kvopt.heuristics.attaining.rounds.attaining_in_rounds`, beside the model.
    """
    table = Table.of(instance, model, allowed, costs)
    if table is None:
        return None
    end = working_time() + time_limit
    server = Server(table, instance.memory, model, aim, seed, FIRST_WAY)
    server.search(lambda: should_stop() or working_time() > end)
    return server.best


class Table(NamedTuple):
    """Requests as arrays, in nanoseconds: when they come and are due, and what they cost.

    ``takes`` are the shares of the machine that each takes at least, times the memory.
    """

    arrivals: Integers
    prompts: Integers
    outputs: Integers
    due: Integers
    takes: Floats
    costs: Floats

    @classmethod
    def of(
        cls, instance: Instance, model: BatchTime, allowed: Sequence[int], costs: Floats
    ) -> Table | None:
        """Return those of an instance, None where there are none, or times are too large."""
        arrivals = arrivals_ns(instance)
        part = shares(instance, model, model.lines, object)
        if max(arrivals, default=0) + sum(part.alone) >= _LARGEST or not arrivals:
            return None
        due = [min(a + d, _LARGEST) for a, d in zip(arrivals, allowed, strict=True)]
        takes = shares(instance, model, model.lines, float).takes
        _, prompts, outputs = columns_of(instance)
        return cls(
            np.array(arrivals, dtype=np.int64),
            prompts,
            outputs,
            np.array(due, dtype=np.int64),
            np.asarray(takes, dtype=float),
            costs,
        )

    def some(self, members: Integers) -> Table:
        """Return those of some requests."""
        arrivals, prompts, outputs, due, takes, costs = self
        return Table(
            arrivals[members], prompts[members], outputs[members], due[members], takes[members],
             costs[members],
        )  # fmt: skip


class Server:
    """Serves the requests of a table in several ways, and keeps the best run.

    Attributes
    ----------
    best, way
        The best run so far, and how it came about.
    in_time
        Of each request whether it was kept in that run, and attains.
    most
        How many can attain alone.
    """

    def __init__(
        self, table: Table, memory: int, model: BatchTime, aim: Aim, seed: int,
        way: Way,
    ) -> None:  # fmt: skip
        from kvopt.heuristics.attaining.loops import timed_of  # it loads numba

        self._table, self._seed = table, seed
        self._timed = timed_of(
            memory, model, table.arrivals, table.prompts, table.outputs, table.due,
            first=aim is Aim.FIRST_TOKEN,
        )  # fmt: skip
        self.most = int(np.isfinite(table.costs).sum())
        self.best, self.way = Attaining(-1, ()), way
        self.in_time: Flags = np.zeros(0, dtype=np.bool_)
        self.tried(self.way)

    def search(self, is_over: Callable[[], bool]) -> None:
        """Vary one part of the best way after the other, until nothing improves any more."""
        for _ in range(_TURNS):
            before = self.best.count
            for name, values in _CHOICES.items():
                for value in values:
                    if is_over() or self.best.count == self.most:
                        return
                    changed: dict[str, Any] = {name: value}
                    self.tried(replace(self.way, **changed))
            if self.best.count == before:
                return

    def tried(self, way: Way) -> bool:
        """Run a way; whether it is the best so far."""
        from kvopt.heuristics.attaining.loops import Line, serve

        costs, count = self._table.costs, len(self._table.costs)
        varied = np.ones(count)
        if way.noise:
            random = np.random.default_rng((self._seed, way.noise))
            varied = np.exp(_NOISE * random.standard_normal(count))
        kept = ((costs * varied <= way.limit) & np.isfinite(costs)).astype(np.int64)
        volumes = self._table.takes * varied
        line: Integers = np.argsort(volumes, kind="stable")
        if way.by_deadline:
            line = np.lexsort((volumes, self._table.due))
        ranks = np.empty_like(line)
        ranks[line] = np.arange(count)
        starts, resumed = np.full(count, -1, dtype=np.int64), np.zeros((count + 1, 2), dtype=int)
        lines = Line(
            line, ranks, np.zeros(count + 1, dtype=int), np.zeros((count + 1, 3), dtype=int)
        )
        attained, waits = serve(
            self._timed, lines, kept, way.window, way.patience, way.care, starts, resumed
        )
        if attained <= self.best.count:
            return False
        rows = tuple((number, time, 0) for number, time in resumed[:waits].tolist())
        self.best = Attaining(int(attained), tuple(starts.tolist()), resumed=rows)
        self.way, self.in_time = way, kept == 1
        return True
