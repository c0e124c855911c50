"""One loop for every policy, on any clock.

At round t, in this order: what ends at t completes, what has arrived by t joins, the policy
may evict, the policy may start requests.  Memory in the next round must then stay within M,
or the policy is at fault.  Rounds at which nothing can change are skipped.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Hashable

from kvopt.errors import KvoptError, PolicyFault
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import Instance, refuse_blocks
from kvopt.simulate.policies.base import Policy, View
from kvopt.timetable.work import Lost

MOST_EVICTIONS = 200_000
"""Evictions without a completion after which a run counts as a livelock, whatever arrives later."""


class Stopped(KvoptError):
    """Raised when a run was asked to stop before its end."""


class Simulation:
    """The state of one run: the truth, beside what the policy sees.

    Parameters
    ----------
    instance, policy
        What is simulated.
    clock
        How long rounds last, and when requests arrive.
    arrivals
        What the clock says of these, where it was asked before.

    Attributes
    ----------
    truth
        What the policy would see of requests if all had arrived.
    time
        When the current round begins, on the clock.
    resumed
        Rounds at which an idle server began to work, and when that was.
    """

    def __init__(
        self,
        instance: Instance,
        policy: Policy,
        clock: Clock,
        arrivals: list[int] | None = None,
    ) -> None:
        refuse_blocks(instance, "a simulated policy")
        self.policy = policy
        self.clock = clock
        self.arrivals = clock.arrivals(instance) if arrivals is None else arrivals
        self.time = 0
        self.resumed: dict[int, int] = {}
        self.truth = View(instance, policy.prediction_model().beliefs(instance))
        self.view = self.truth.before_arrivals(policy)
        self._columns = list(zip(self.view.columns, self.truth.columns, strict=True))
        self.outputs = [request.output for request in instance]
        self.starts: list[int | None] = [None] * len(instance)
        self.lost: list[Lost] = []
        self.arriving = sorted(range(len(instance)), key=lambda i: (-self.arrivals[i], -i))
        self.ends: list[tuple[int, int, int]] = []  # (completion, request, start); may be stale
        self.waiting: set[int] = set()
        self.seen: set[Hashable] = set()  # states after evictions since the last completion
        self.limit = policy.round_limit(instance)
        if self.limit is not None and not clock.is_even:
            self.limit = policy.round_limit(clock.in_rounds(instance))
        self._idle = True
        self._prompts = 0  # tokens to prefill in the round that begins now
        self._fruitless = 0  # evictions since the last completion

    @property
    def note(self) -> str | None:
        """What a reader should know of the run."""
        if self._fruitless >= MOST_EVICTIONS:
            return f"ended after {MOST_EVICTIONS:,} evictions without a completion"
        return self.policy.note()

    def to_the_end(self, should_stop: Callable[[], bool]) -> None:
        """Go from round to round until everything finished or never will: a livelock."""
        view = self.view
        self.policy.begin(view)
        while self.arriving or self.waiting or view.active:
            following = self._next_round()
            if following is None or (self.limit is not None and following > self.limit):
                return
            self._advance(following, self._time_at(following))
            if should_stop():
                raise Stopped
            self._complete()
            self._arrive()
            if self._evict() and (self._repeats() or self._fruitless >= MOST_EVICTIONS):
                return
            self._admit()

    def _next_round(self) -> int | None:
        """Return the next round at which something can change, None if nothing ever will."""
        view, rounds = self.view, []
        while self.ends and view.active.get(self.ends[0][1]) != self.ends[0][2]:
            heapq.heappop(self.ends)
        if self.ends:
            rounds.append(self.ends[0][0])
            free = view.memory - view.next_load
            rounds.append(view.now + 1 + free // len(view.active))  # memory would pass M
        if self.arriving:
            gap = self.arrivals[self.arriving[-1]] - self.time
            rounds.append(self.clock.due(view, self._prompts, gap))
        wake = self.policy.wake(view)
        if wake is not None:
            rounds.append(max(wake, view.now + 1))
        return min(rounds, default=None)

    def _time_at(self, following: int) -> int:
        """Return when a round begins if nothing changes before."""
        rounds = following - self.view.now
        if self.view.active:
            return self.time + self.clock.passing(self.view, self._prompts, rounds)
        arrival = self.arrivals[self.arriving[-1]] if self.arriving else None
        return self.clock.after_waiting(self.time, rounds, arrival)

    def _advance(self, following: int, time: int) -> None:
        """Let the rounds up to one of them pass."""
        self.time, self._prompts, self.view.now = time, 0, following
        self._idle |= not self.view.active

    def _complete(self) -> None:
        view = self.view
        while self.ends and self.ends[0][0] <= view.now:
            _, i, start = heapq.heappop(self.ends)
            if view.active.get(i) == start:
                self._finish(i, start)

    def _finish(self, i: int, start: int) -> None:
        self.view.stop(i)
        self.starts[i] = start
        self.seen.clear()
        self._fruitless = 0
        self.policy.finished(self.view, i, start)

    def _arrive(self) -> None:
        view = self.view
        while self.arriving and self.arrivals[self.arriving[-1]] <= self.time:
            i = self.arriving.pop()
            self.waiting.add(i)
            for seen, known in self._columns:
                seen[i] = known[i]
            view.arrivals[i] = view.now  # policies count rounds, whatever the clock counts
            self.policy.arrived(view, i)

    def _evict(self) -> bool:
        view, before = self.view, len(self.lost)
        for i in self.policy.evict(view):
            if i not in view.active:
                raise PolicyFault(f"{self.policy.name}: evicts {i}, which is not active")
            start = view.stop(i)
            self.lost.append(Lost(i, start, view.now))
            self.waiting.add(i)
            self.policy.evicted(view, i, start)
        self._fruitless += len(self.lost) - before
        return len(self.lost) > before

    def _repeats(self) -> bool:
        """Whether this very state came up before, so that it comes up for ever."""
        if self.arriving or self.policy.draws:
            return False
        active = frozenset((i, self.view.now - start) for i, start in self.view.active.items())
        state = (active, self.policy.learned())
        known = state in self.seen
        self.seen.add(state)
        return known

    def _admit(self, *, is_one_enough: bool = False) -> list[int]:
        """Let the policy start requests; return them.

        If one is enough a policy that yields them one after the other is left after the first.
        """
        view, started = self.view, []
        named = self.policy.admit(view)
        for i in named:
            if i not in self.waiting:
                raise PolicyFault(f"{self.policy.name}: starts {i}, which is not waiting")
            self.waiting.remove(i)
            view.start(i)
            started.append(i)
            self._prompts += view.prompts[i]
            if self._idle:
                self.resumed[view.now] = self.time
                self._idle = False
            heapq.heappush(self.ends, (view.now + self.outputs[i], i, view.now))
            if is_one_enough and isinstance(named, Generator):
                named.close()
                break
        if view.next_load > view.memory:
            reason = f"holds {view.next_load} tokens at {view.now + 1}, memory is {view.memory}"
            raise PolicyFault(f"{self.policy.name}: {reason}")
        return started
