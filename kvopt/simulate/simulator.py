"""One loop for every policy, on any clock.

At round t, in this order: requests that end at t complete, those that arrived join, the policy
may evict, the policy may start requests.  Memory in the next round must then stay within M,
or the policy is at fault.  Rounds at which nothing can change are skipped.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from kvopt.errors import InvalidInput, PolicyFault, Stopped
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance, refuse_extras
from kvopt.problem.requests import volume_of
from kvopt.problem.slo import Levels, Slo
from kvopt.simulate.policies.interface import Need, Policy, View
from kvopt.timetable.prefix_cache import Cache
from kvopt.timetable.work_intervals import Chunks, Lost

MAX_EVICTIONS = 200_000
"""Evictions without a completion after which a run counts as a livelock, despite later arrivals."""


@dataclass(frozen=True)
class Workload:
    """The requests of servers.

    Parameters
    ----------
    instance, clock
        The requests, and how long rounds last.
    padding
        Tokens by which prompts of the instance are longer than they are, to fit in whole blocks.
    slo
        Service level of requests.
    should_stop
        Asked every round; `Stopped` is raised when it turns true.
    """

    instance: Instance
    clock: Clock
    should_stop: Callable[[], bool]
    padding: int = 0
    slo: Slo | None = None

    @cached_property
    def levels(self) -> Levels | None:
        """Limits of each request."""
        rounds = self.clock.is_even
        return None if self.slo is None else self.slo.levels(self.instance, rounds=rounds)

    @cached_property
    def arrivals(self) -> list[int]:
        """Arrivals of requests."""
        return self.clock.arrivals(self.instance)

    @cached_property
    def in_order(self) -> list[int]:
        """The positions of the requests, in order of arrival."""
        return sorted(range(len(self.arrivals)), key=lambda i: (self.arrivals[i], i))


class Worker(ABC):
    """A server in the view of routers, under any policy.

    Parameters
    ----------
    workload
        Requests that it may get.
    believed
        Believed outputs of requests, for routers.

    Attributes
    ----------
    members
        Positions of the requests that it serves.
    requests, volume
        Number of unfinished ones, and their believed token-rounds.
    unprocessed
        Tokens that were sent here and are not processed yet: prompts, and what evictions lost.
    time
        Begin of the current round, on the clock.
    rows
        For each request the round of its last start, or its segments with pauses.
    lost, chunks
        Work lost in evictions, and work on prompts that yielded no token.
    resumed
        Rounds at which an idle server began to work, and their times.
    """

    def __init__(self, workload: Workload, believed: Sequence[int]) -> None:
        self.instance, self.clock = workload.instance, workload.clock
        self.arrivals, self.should_stop = workload.arrivals, workload.should_stop
        self.believed = believed
        self.members: list[int] = []
        self.requests = self.volume = self.unprocessed = self.time = 0
        self._uses = [0] * len(self.instance.forest.weights)
        self.rows: list[Any] = [None] * len(self.instance)
        self.lost: list[Lost] = []
        self.chunks: list[Chunks] = []
        self.resumed: dict[int, int] = {}

    def serve(self, i: int) -> None:
        """Record that a request runs on this worker."""
        self.members.append(i)
        self.unprocessed += self.instance.requests[i].prompt
        self._count(i, 1)

    def _count(self, i: int, sign: int) -> None:
        if self.instance.workers == 1:
            return  # a single worker
        self.requests += sign
        self.volume += sign * volume_of(self.instance.requests[i].prompt, self.believed[i])
        for node in self.instance.forest.paths[i]:
            self._uses[node] += sign

    def matched(self, i: int) -> int:
        """Return the tokens of a request's prefix that unfinished requests here use."""
        forest = self.instance.forest
        return sum(forest.weights[v] for v in forest.paths[i] if self._uses[v])

    @abstractmethod
    def deliver(self, i: int) -> None:
        """Let a request arrive here, after those that arrived before."""

    @abstractmethod
    def tokens(self) -> int:
        """Return the tokens held at its current time."""

    @abstractmethod
    def come_to(self, time: float) -> None:
        """Take all decisions before a time, and complete the requests that end by then."""


class Simulation(Worker):
    """A server under a policy: true data, and the view of the policy.

    It stops before a round: requests that ended have completed, and arrivals have not joined.

    Parameters
    ----------
    workload, policy
        The problem to simulate.

    Attributes
    ----------
    truth
        The data of all requests, arrived or not.
    is_deciding
        Whether decisions are possible in the next round.
    is_called
        Whether another worker has taken a waiting request since its last decision.
    expects_more
        Whether more requests may arrive.
    """

    def __init__(self, workload: Workload, policy: Policy) -> None:
        instance, clock = workload.instance, workload.clock
        if Need.ARRIVALS in policy.needs:
            if instance.workers > 1:
                raise InvalidInput("plans for one worker, not for a fleet", field=policy.name)
            if not clock.is_even and any(workload.arrivals):
                reason = "needs arrivals to come in rounds: only for a backlog"
                raise InvalidInput(reason, field=policy.name)
        self.truth = View(instance, policy.prediction_model().beliefs(instance))
        super().__init__(workload, self.truth.beliefs.output)
        self.policy = policy
        self.view = self.truth.before_arrivals(policy)
        self.view.padding, self.view.clock = workload.padding, clock
        self._levels = workload.levels
        self.waiting = self.view.waiting
        if instance.forest.weights and not clock.is_even:
            self.view.cache = Cache(instance.forest, instance.block_tokens or 1, instance.memory)
        self._columns = list(zip(self.view.columns, self.truth.columns, strict=True))
        self.outputs = [request.output for request in instance]
        self.arriving: deque[int] = deque()
        self.ends: list[tuple[int, int, int]] = []  # (completion, request, start); may be stale
        self.seen: set[Hashable] = set()  # states after evictions since the last completion
        self.limit = policy.round_limit(instance)
        if self.limit is not None and not clock.is_even:
            self.limit = policy.round_limit(clock.in_rounds(instance))
        self.is_deciding = self.is_called = False
        self.expects_more = True
        self._idle = True
        self._prompts = 0  # tokens to prefill in the round that begins now
        self._fruitless = 0  # evictions since the last completion
        self._is_known = False
        self._ending: str | None = None  # why it ended with waiting requests
        self._following: tuple[int, int] | None = None  # the next round, and its begin
        self._seen_at = 0  # its last time, or that of its last call
        policy.begin(self.view)

    @property
    def note(self) -> str | None:
        """Notes for readers of the run: those of the policy, and why it did not complete."""
        ending, waiting = self._ending, len(self.waiting)
        if ending is None and waiting:
            which = "the only waiting request" if waiting == 1 else f"any of {waiting:,} requests"
            ending = f"does not start {which}, and nothing else happens"
        return "; ".join(filter(None, (self.policy.note(), ending))) or None

    # ---- arrivals and completions -------------------------------------------------------

    def matched(self, i: int) -> int:
        """Return the tokens of a request's prefix that are cached or in use by unfinished ones."""
        cache = self.view.cache
        return max(super().matched(i), 0 if cache is None else cache.matched(i))

    def deliver(self, i: int) -> None:
        """Let a request arrive here, after those that arrived before."""
        self._is_known &= bool(self.arriving)
        self.arriving.append(i)

    def withdraw(self, i: int, time: int) -> None:
        """Record that another worker starts a request that waits here."""
        if i not in self.waiting:
            self.arriving.remove(i)
            self._is_known = False
            return
        self.waiting.remove(i)
        self.policy.withdrawn(self.view, i)
        if not self.is_called:
            self.is_called, self._seen_at, self._is_known = True, time, False

    def tokens(self) -> int:
        """Return the tokens held at its current time."""
        view, active = self.view, len(self.view.active)
        return view.next_held + active * (self._due(self._seen_at) - view.now - 1) if active else 0

    # ---- time ---------------------------------------------------------------------------

    def next_time(self) -> int | None:
        """Return the time of the next decision, or None."""
        if self.is_deciding:
            return self.time
        if not self._is_known:
            following = None if self._ending else self._next_round()
            if following is not None and self.limit is not None and following[0] > self.limit:
                self._ending, following = f"ended at its limit of {self.limit:,} rounds", None
            self._following, self._is_known = following, True
        return None if self._following is None else self._following[1]

    def come_to(self, time: float) -> None:
        """Take all decisions before a time, and complete the requests that end by then.

        Those at that time itself are left: requests may still arrive then.
        """
        while (following := self.next_time()) is not None and following <= time:
            if not self.is_deciding:
                self.come()
            elif self.time < time:
                if self.prepare():
                    self._admit()
            else:
                break
        if time < inf:
            self._seen_at = int(time)

    def come(self) -> None:
        """Advance to the round of the next decision, and complete the requests that end by then."""
        assert self._following is not None
        view = self.view
        (now, self.time), self._prompts = self._following, 0
        if view.cache is not None:
            view.cache.make_room(view.next_load + len(view.active) * (now - view.now - 1))
        view.now, view.time = now, self.time
        self._idle |= not view.active
        self._seen_at, self.is_deciding = self.time, True
        if self.should_stop():
            raise Stopped
        while self.ends and self.ends[0][0] <= view.now:
            _, i, start = heapq.heappop(self.ends)
            if view.active.get(i) == start:
                self._finish(i, start)

    def prepare(self) -> bool:
        """Let arrived requests join, and the policy evict; return whether it may start requests."""
        self.is_deciding = self._is_known = False
        self._arrive()
        if self._evict():
            if self._repeats():
                self._ending = f"repeats itself for ever from round {self.view.now:,} on"
            elif self._fruitless >= MAX_EVICTIONS:
                self._ending = f"ended after {MAX_EVICTIONS:,} evictions without a completion"
        return self._ending is None

    def take(self) -> list[int]:
        """Let the policy start one or several requests; return them."""
        self.is_called = self._is_known = False
        return self._admit(is_one_enough=True)

    def _due(self, time: int) -> int:
        """Return the first round to begin at a time or later if nothing changes before."""
        return self.clock.due(self.view, self._prompts, time - self.time)

    def _next_round(self) -> tuple[int, int] | None:
        """Return the next round at which something can change and its time, None for none."""
        view, rounds = self.view, []
        while self.ends and view.active.get(self.ends[0][1]) != self.ends[0][2]:
            heapq.heappop(self.ends)
        if self.ends:
            rounds.append(self.ends[0][0])
            free = view.memory - view.next_load
            rounds.append(view.now + 1 + free // len(view.active))  # the last round within M
        wake = self.policy.wake(view)
        if wake is not None:
            rounds.append(max(wake, view.now + 1))
        if self.is_called and self.waiting:
            rounds.append(max(self._due(self._seen_at), view.now + 1))
        if self.arriving:
            arrival = self.arrivals[self.arriving[0]]
            due = self._due(arrival)
            if not view.active and due < min(rounds, default=due + 1):
                return due, max(arrival, self.time)  # an idle server begins at once
            rounds.append(due)
        if not rounds:
            return None
        passing = (following := min(rounds)) - view.now
        if view.active:
            return following, self.time + self.clock.passing(view, self._prompts, passing)
        # Idle rounds, after which a policy wants to decide again, are the shortest ones.
        return following, self.time + passing * self.clock.batch_time.least_ns

    # ---- a round ------------------------------------------------------------------------

    def _finish(self, i: int, start: int) -> None:
        self.view.stop(i)
        self.rows[i] = start
        self.seen.clear()
        self._fruitless = 0
        self._count(i, -1)
        self.policy.finished(self.view, i, start)

    def _arrive(self) -> None:
        view = self.view
        while self.arriving and self.arrivals[self.arriving[0]] <= self.time:
            i = self.arriving.popleft()
            self.waiting.add(i)
            for seen, believed in self._columns:
                seen[i] = believed[i]
            view.arrivals[i] = view.now  # policies count rounds, on any clock
            if self._levels is not None:
                view.due[i] = self._levels.due(i, self.arrivals[i])
            self.policy.arrived(view, i)

    def _evict(self) -> bool:
        view, before = self.view, len(self.lost)
        for i in self.policy.evict(view):
            if i not in view.active:
                raise PolicyFault(f"{self.policy.name}: evicts {i}, which is not active")
            start = view.stop(i)
            self.lost.append(Lost(i, start, view.now))
            self.unprocessed += self.instance.requests[i].prompt
            self.waiting.add(i)
            self.policy.evicted(view, i, start)
        self._fruitless += len(self.lost) - before
        return len(self.lost) > before

    def _repeats(self) -> bool:
        """Whether this state is a repetition, so that it repeats for ever.

        Without arrivals, draws and caches decisions follow from ages and what was learned.
        """
        if self.arriving or self.expects_more or self.policy.draws or self.view.cache is not None:
            return False
        active = frozenset((i, self.view.now - start) for i, start in self.view.active.items())
        state = (active, self.policy.learned())
        is_repeated = state in self.seen
        self.seen.add(state)
        return is_repeated

    def _admit(self, *, is_one_enough: bool = False) -> list[int]:
        """Let the policy start requests; return them.

        If one is enough, a policy that yields them one by one is stopped after the first.
        """
        view, started, limit = self.view, list[int](), self.instance.max_active
        if len(view.active) == limit:
            return started
        named = self.policy.admit(view)
        for i in named:
            if len(view.active) == limit:
                refuse_extras(self.instance, f"{self.policy.name}, which starts several at once")
            if i not in self.waiting:
                raise PolicyFault(f"{self.policy.name}: starts {i}, which is not waiting")
            self.waiting.remove(i)
            self._prompts += view.start(i)
            self.unprocessed -= self.instance.requests[i].prompt
            started.append(i)
            if self._idle:
                self.resumed[view.now] = self.time
                self._idle = False
            heapq.heappush(self.ends, (view.now + self.outputs[i], i, view.now))
            is_full = len(view.active) == limit
            if (is_one_enough or is_full) and isinstance(named, Generator):
                named.close()
                break
        if view.next_load > view.memory:
            reason = f"holds {view.next_load} tokens at {view.now + 1}, memory is {view.memory}"
            raise PolicyFault(f"{self.policy.name}: {reason}")
        return started
