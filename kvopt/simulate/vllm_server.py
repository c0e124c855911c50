"""A server that admits the request with the least work left, given what is in the cache."""

from __future__ import annotations

from kvopt.simulate.block_server import VllmServer
from kvopt.simulate.policies.server_policies import LeastWork
from kvopt.simulate.simulator import Workload
from kvopt.timetable.cache import Cache

_LATEST = 1 << 62
"""After all times."""


class WorkServer(VllmServer):
    """The state of one server; see `LeastWork`.

    Its line is sorted when requests have come or gone, as this changes what is cached.
    """

    def __init__(self, workload: Workload, policy: LeastWork) -> None:
        super().__init__(workload, policy)
        self._sorted_at = (-1, -1, -1)
        if self._cache is not None and policy.keeps == "next":
            self._cache = _Foresight(self, self._block, self._total * self._block)
        by_arrival = sorted(range(len(self.arrivals)), key=self.arrivals.__getitem__, reverse=True)
        self._wanting: list[list[int]] = [[] for _ in self.instance.forest.weights]
        for i in by_arrival:  # the first to arrive is the last in each list
            for node in self.instance.forest.paths[i]:
                self._wanting[node].append(i)
        self._token_ns, self._held_ns = 0.0, 1.0  # in rounds only memory counts
        if not self.clock.is_even:
            model = self.clock.batch_time
            self._token_ns = max(line.token_ns for line in model.lines) + model.prompt_ns
            fixed = max(line.round_ns for line in model.lines)
            self._held_ns = model.kv_ns + fixed / self.instance.memory

    def _join(self, i: int) -> None:
        self._waiting.append(self._rank[i])

    def _pop(self) -> None:
        self._waiting.pop(0)

    def _admit(self, budget: int) -> None:
        if budget <= 0 or len(self._running) == self._most:
            return
        if self._sorted_at != (self._left, len(self._running), len(self._waiting)):
            self._drop()
            self._waiting.sort(key=lambda rank: (self._work(rank[-1]), rank))
        super()._admit(budget)
        self._sorted_at = self._left, len(self._running), len(self._waiting)

    def _work(self, i: int) -> float:
        """Return about how long a request takes the machine: prompt, reading, its part of f(0)."""
        request = self.instance.requests[i]
        before = request.prompt + self._produced[i]
        left = max(self.believed[i] - self._produced[i], 1)
        cached = in_use = 0
        if self._cache is not None:
            cached, unused = self._cache.found(i)
            in_use = cached - unused
        read = left * (before - in_use + left / 2)
        return (before - cached + left) * self._token_ns + read * self._held_ns

    def next_use(self, node: int) -> int | None:
        """Return when a node is wanted again, at the earliest now, or None if never."""
        wanting = self._wanting[node]
        while wanting and self._is_done(wanting[-1]):
            wanting.pop()
        first = next((i for i in reversed(wanting) if not self._is_done(i)), None)
        return None if first is None else max(int(self.arrivals[first]), int(self.time))

    def _is_done(self, i: int) -> bool:
        return self._produced[i] == self.instance.requests[i].output


class _Foresight(Cache):
    """A cache that first evicts tokens without a later use, then those whose next use is latest."""

    def __init__(self, server: WorkServer, block: int, memory: int) -> None:
        super().__init__(server.instance.forest, block, memory, block)
        self._server = server

    def _node_used(self, node: int, when: tuple[int, int]) -> tuple[int, int]:
        time = self._server.next_use(node)
        return (-1 if time is None else _LATEST - time), when[1]

    def _private_used(self, when: tuple[int, int], *, pauses: bool) -> tuple[int, int]:
        return when if pauses else (-1, when[1])
