"""Runs in seconds in which many requests attain their deadlines.

A server takes requests in a fixed order, passes over a few that do not fit, and puts off what would
be late until all others are done.  Which requests count from the beginning, in which order, and how
late one looks from far away, is tried out: a run takes a few milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kvopt.bounds.kinds import Floats, Integers
from kvopt.bounds.seconds_evaluation import shares
from kvopt.heuristics.attaining import Attaining
from kvopt.kernels.compiling import working_time
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.batch_time import BatchTime
from kvopt.model.deadlines import Aim
from kvopt.model.instance import Instance


@dataclass(frozen=True, slots=True)
class _Way:
    """A server: costs up to which requests count, their order, and the rest as in `serve`."""

    limit: float = 1.0
    by_deadline: bool = False
    patience: float = 1.0
    window: int = 8
    noise: int = 0


_CHOICES: dict[str, tuple[float, ...]] = {
    "limit": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, math.inf),
    "patience": (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5),
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
    """Return the best of some runs, None where times do not fit into 64 bits.

    Arguments are as of `kvopt.heuristics.attaining.attaining_in_rounds`, beside the model.
    """
    arrivals = arrivals_ns(instance)
    part = shares(instance, model, model.lines, object)
    if max(arrivals, default=0) + sum(part.alone) >= _LARGEST or not arrivals:
        return None
    end = working_time() + time_limit
    server = _Server(instance, model, arrivals, allowed, aim, costs, seed)

    def is_over() -> bool:
        return should_stop() or working_time() > end or server.best.count == server.most

    way = _Way()
    server.tried(way)
    for _ in range(_TURNS):
        before = server.best.count
        for name, values in _CHOICES.items():
            for value in values:
                if is_over():
                    return server.best
                changed: dict[str, Any] = {name: value}
                if server.tried(other := replace(way, **changed)):
                    way = other
        if server.best.count == before:
            break
    return server.best


class _Server:
    """Runs ways on one instance, and keeps the best run."""

    def __init__(
        self, instance: Instance, model: BatchTime, arrivals: Sequence[int],
        allowed: Sequence[int], aim: Aim, costs: Floats, seed: int,
    ) -> None:  # fmt: skip
        from kvopt.heuristics.attaining_loops import Timed  # it loads numba

        times = np.array(arrivals, dtype=np.int64)
        due = np.array([min(a + d, _LARGEST) for a, d in zip(arrivals, allowed, strict=True)])
        self._costs, self._seed = costs, seed
        takes = shares(instance, model, model.lines, float).takes
        self._takes = np.asarray(takes, dtype=float)
        self._timed = Timed(
            instance.memory, times, np.argsort(times, kind="stable"),
            np.array([r.prompt for r in instance], dtype=np.int64),
            np.array([r.output for r in instance], dtype=np.int64),
            due, aim is Aim.FIRST_TOKEN,
            np.array([line.round_ns for line in model.lines], dtype=np.int64),
            np.array([line.token_ns for line in model.lines], dtype=np.int64),
            model.prompt_ns, model.kv_ns,
        )  # fmt: skip
        self.most = int(np.isfinite(costs).sum())
        self.best = Attaining(-1, ())

    def tried(self, way: _Way) -> bool:
        """Run a way; whether it is the best so far."""
        from kvopt.heuristics.attaining_loops import Line, serve

        count = len(self._costs)
        varied = np.ones(count)
        if way.noise:
            random = np.random.default_rng((self._seed, way.noise))
            varied = np.exp(_NOISE * random.standard_normal(count))
        kept = (self._costs * varied <= way.limit) & np.isfinite(self._costs)
        volumes = self._takes * varied
        line: Integers = np.argsort(volumes, kind="stable")
        if way.by_deadline:
            line = np.lexsort((volumes, self._timed.due))
        ranks = np.empty_like(line)
        ranks[line] = np.arange(count)
        starts, resumed = np.full(count, -1, dtype=np.int64), np.zeros((count + 1, 2), dtype=int)
        lines = Line(
            line, ranks, np.zeros(count + 1, dtype=int), np.zeros((count + 1, 3), dtype=int)
        )
        attained, waits = serve(
            self._timed, lines, kept.astype(np.int64), way.window, way.patience, starts, resumed
        )
        if attained <= self.best.count:
            return False
        rows = tuple((number, time) for number, time in resumed[:waits].tolist())
        self.best = Attaining(int(attained), tuple(starts.tolist()), (), rows)
        return True
