"""One worker, exhaustively: the best schedule of a few requests, if it is below a target.

Starts are taken in order of time.  Before each round the requests that have not started yet are
bounded from below: their volumes have to fit into what is left beside those that have, and each
of them needs its own outputs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Integers, columns_of
from kvopt.problem.instance import Instance

_ROUND, _NEXT, _DEPTH, _SUM, _TARGET, _FOUND = range(6)  # entries of `Hunt.state`
_STEPS = 100_000
"""Steps between two questions whether to stop."""


class Hunt(NamedTuple):
    """How far the search has got; requests are in order of volume, and of arrival where equal.

    Parameters
    ----------
    memory
        M.
    arrivals, prompts, outputs
        Of each request.
    loads
        Tokens held at each time by those that have started.
    starts
        Of each request, -1 where it has not started.
    stack
        Those that have, in the order of their starts.
    best
        The starts of the least sum of completions so far.
    state
        The round and the request that are tried next, how many have started, the sum of their
        completions, the sum to stay below, and whether there is such a schedule.
    """

    memory: int
    arrivals: Integers
    prompts: Integers
    outputs: Integers
    loads: Integers
    starts: Integers
    stack: Integers
    best: Integers
    state: Integers


class Hunted(NamedTuple):
    """A hunt, and the positions of its requests in the instance."""

    hunt: Hunt
    order: list[int]

    def go_on(self) -> bool:
        """Search for a while, and tell whether that was all."""
        return bool(hunt_on(self.hunt, _STEPS))

    @property
    def starts(self) -> list[int] | None:
        """The best starts below the target, None if there are none."""
        if not self.hunt.state[_FOUND]:
            return None
        starts = [0] * len(self.order)
        for place, start in zip(self.order, self.hunt.best.tolist(), strict=True):
            starts[place] = start
        return starts


def hunt_below(instance: Instance, target: int) -> Hunted:
    """Return the beginning of a search for a total latency below a target."""
    requests = instance.requests

    def key(i: int) -> tuple[int, tuple[int, int], int]:
        return requests[i].volume, requests[i].shape, requests[i].arrival

    order = sorted(range(len(requests)), key=key)
    arrivals, prompts, outputs = columns_of(requests[i] for i in order)
    loads = np.zeros(instance.last_arrival + instance.total_output + 1, dtype=np.int64)
    starts, stack, best = (np.full(len(order), -1, dtype=np.int64) for _ in range(3))
    state = np.array([arrivals.min(), 0, 0, 0, target + arrivals.sum(), 0])
    memory = instance.memory
    hunt = Hunt(memory, arrivals, prompts, outputs, loads, starts, stack, best, state)
    return Hunted(hunt, order)


@compiled
def hunt_on(hunt: Hunt, steps: int) -> bool:
    """Take so many steps, and tell whether everything has been tried."""
    state, count = hunt.state, len(hunt.starts)
    for _ in range(steps):
        if state[_DEPTH] == count:
            state[_TARGET], state[_FOUND] = state[_SUM], 1
            hunt.best[:] = hunt.starts
            _go_back(hunt)
            continue
        if state[_NEXT] == count:
            state[_ROUND] += 1
            state[_NEXT] = 0
        if state[_NEXT] == 0 and state[_SUM] + _bound(hunt) >= state[_TARGET]:
            if state[_DEPTH] == 0:
                return True
            _go_back(hunt)
            continue
        i = state[_NEXT]
        state[_NEXT] += 1
        if _may_start(hunt, i):
            _hold(hunt, i, state[_ROUND], 1)
            hunt.starts[i] = state[_ROUND]
            hunt.stack[state[_DEPTH]] = i
            state[_DEPTH] += 1
            state[_SUM] += state[_ROUND] + hunt.outputs[i]
    return False


@compiled
def _go_back(hunt: Hunt) -> None:
    """Undo the last start; the next request is tried instead of it."""
    state = hunt.state
    state[_DEPTH] -= 1
    i = hunt.stack[state[_DEPTH]]
    start = hunt.starts[i]
    _hold(hunt, i, start, -1)
    hunt.starts[i] = -1
    state[_SUM] -= start + hunt.outputs[i]
    state[_ROUND], state[_NEXT] = start, i + 1


@compiled
def _hold(hunt: Hunt, i: int, start: int, sign: int) -> None:
    for grown in range(1, hunt.outputs[i] + 1):
        hunt.loads[start + grown] += sign * (hunt.prompts[i] + grown)


@compiled
def _may_start(hunt: Hunt, i: int) -> bool:
    """Whether a request can start in this round, and no equal one has to go first."""
    start, output, prompt = hunt.state[_ROUND], hunt.outputs[i], hunt.prompts[i]
    if hunt.starts[i] >= 0 or hunt.arrivals[i] > start or start + output >= len(hunt.loads):
        return False
    if i > 0 and hunt.starts[i - 1] < 0 and hunt.prompts[i - 1] == prompt:
        return bool(hunt.outputs[i - 1] != output) and _fits(hunt, i)
    return _fits(hunt, i)


@compiled
def _fits(hunt: Hunt, i: int) -> bool:
    """Whether a request that starts in this round fits beside those that have."""
    start, output, prompt = hunt.state[_ROUND], hunt.outputs[i], hunt.prompts[i]
    for grown in range(1, output + 1):
        if hunt.loads[start + grown] + prompt + grown > hunt.memory:
            return False
    return True


@compiled
def _bound(hunt: Hunt) -> int:
    """Return a lower bound on the completions of those that have not started."""
    count, now = len(hunt.starts), hunt.state[_ROUND]
    alone = np.empty(count, dtype=np.int64)
    left = 0
    for i in range(count):
        if hunt.starts[i] < 0:
            alone[left] = max(now, hunt.arrivals[i]) + hunt.outputs[i]
            left += 1
    alone[:left].sort()
    bound, rank, time, room = 0, 0, now, 0
    for i in range(count):
        if hunt.starts[i] >= 0:
            continue
        output = hunt.outputs[i]
        room -= hunt.prompts[i] * output + output * (output + 1) // 2
        while room < 0:
            time += 1
            held = hunt.loads[time] if time < len(hunt.loads) else 0
            room += hunt.memory - held
        bound += max(time, alone[rank])
        rank += 1
    return bound
