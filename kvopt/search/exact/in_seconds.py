"""Exhaustive search of tiny fleets in seconds: the best of each set alone, then a partition.

A server goes from round to round.  At each of them it may start any set of requests that will
fit, also one that has not arrived yet: then the round waits for it.  That is every schedule, but
for those that wait for nothing.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations

from kvopt.heuristics.seconds.runs import joined_run
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.compile_clock import working_time
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.search.exact.fleets import best_partition, members_of, places_of

MOST_REQUESTS = 6
"""Limit of requests."""
_MOST_ROUNDS = 500_000
"""Rounds that are looked at in all, some seconds; then the search ends without a proof."""
_DEEPEST = 400
"""Rounds that a run may have; it goes on in two calls for each, of which Python takes 1,000."""
_NAME = "exhaustive search"

Active = tuple[tuple[int, int], ...]
"""Requests and the tokens that they have produced."""


def search_all(search: Search) -> None:
    """Search all runs that are better, where requests and rounds are few; else do nothing.

    That none is better is claimed of runs without pauses and without prompts in pieces.
    """
    instance, count = search.instance, len(search.instance)
    if not 0 < count <= MOST_REQUESTS or search.should_stop():
        return
    if (longest := max(request.output for request in instance)) > _DEEPEST:
        search.note(f"{_NAME}: an output has {longest:,} tokens; the limit is {_DEEPEST:,}")
        return
    began, rounds = working_time(), [0]
    upper = math.inf if search.objective is None else search.objective
    known: dict[int, tuple[int, list[int]]] = {0: (0, [])}
    waits: dict[int, dict[int, int]] = {0: {}}
    everything = (1 << count) - 1
    for bits in range(1 if instance.workers > 1 else everything, everything + 1):
        server = _Server(search, instance.of_one_worker(members_of(bits)), upper, rounds)
        is_complete = server.search()
        if server.starts is not None:
            known[bits], waits[bits] = (int(server.least), server.starts), server.waits
        if not is_complete:
            search.note(f"{_NAME}: ended before all better schedules were ruled out")
            break
    parts = best_partition(instance, known, upper)
    if parts is not None:
        starts, workers = places_of(parts, known, count)
        resumed = [waits.get(bits, {}) for bits in parts]
        search.offer(joined_run(search, _NAME, starts, workers, resumed, began), _NAME)
    if is_complete and search.objective is not None and Scope.RESTARTS.covers(search.problem.scope):
        search.offer_claimed(search.objective, _NAME)


class _Server:
    """All runs of one worker below a limit, round by round.

    Attributes
    ----------
    least, starts, waits
        The best run: its total latency, the round of each start, and when rounds began that
        waited.
    """

    def __init__(self, search: Search, part: Instance, upper: float, rounds: list[int]) -> None:
        clock = search.clock
        self.least, self.waits = upper, dict[int, int]()
        self.starts: list[int] | None = None
        self._search, self._rounds = search, rounds
        self._memory, self._requests = part.memory, part.requests
        self._model, self._arrivals = clock.batch_time, clock.arrivals(part)
        self._alone = cache(self._time_alone)
        self._begun, self._waited = [0] * len(part), dict[int, int]()

    def search(self) -> bool:
        """Look at all runs; return whether it came to the end."""
        return self._go_on(0, 0, (), frozenset(range(len(self._requests))), 0)

    def _go_on(
        self, round_: int, now: int, active: Active, left: frozenset[int], done: int
    ) -> bool:
        """Try everything that may happen from a round on."""
        self._rounds[0] += 1
        if self._rounds[0] > _MOST_ROUNDS or round_ > _DEEPEST or self._search.should_stop():
            return False
        if not active and not left:
            if done < self.least:
                self.least, self.starts, self.waits = done, [*self._begun], {**self._waited}
            return True
        if done + self._at_least(now, active, left) >= self.least:
            return True
        for size in range(len(left) + 1):
            for chosen in combinations(sorted(left), size):
                going = (*active, *((i, 0) for i in chosen))
                if not going or not self._fits(going):
                    continue
                if not self._start(round_, now, going, chosen, left, done):
                    return False
        return True

    def _start(
        self, round_: int, now: int, going: Active, chosen: tuple[int, ...],
        left: frozenset[int], done: int,
    ) -> bool:  # fmt: skip
        """Let a round begin with some requests, and go on after it."""
        requests, arrivals = self._requests, self._arrivals
        begin = max([now, *(arrivals[i] for i in chosen)])
        if is_waiting := begin > now or not round_:
            self._waited[round_] = begin
        for i in chosen:
            self._begun[i] = round_
        prompts = sum(requests[i].prompt for i in chosen)
        held = sum(requests[i].prompt + made + 1 for i, made in going)
        end = begin + self._model.round_ns(len(going), prompts, held)
        stay = tuple((i, made + 1) for i, made in going if made + 1 < requests[i].output)
        over = [i for i, made in going if made + 1 == requests[i].output]
        done += sum(end - arrivals[i] for i in over)
        is_complete = self._go_on(round_ + 1, end, stay, left.difference(chosen), done)
        if is_waiting:
            del self._waited[round_]
        return is_complete

    def _at_least(self, now: int, active: Active, left: frozenset[int]) -> int:
        """Return latency that is still to come at least: that of each request alone."""
        arrivals = self._arrivals
        going = sum(now + self._alone(i, made) - arrivals[i] for i, made in active)
        return going + sum(max(now, arrivals[i]) + self._alone(i, 0) - arrivals[i] for i in left)

    def _time_alone(self, i: int, made: int) -> int:
        """Return how long a request takes alone after it has produced some tokens."""
        prompt, output = self._requests[i].shape
        held = prompt + made + 1
        next_one = self._model.round_ns(1, 0 if made else prompt, held)
        return next_one + self._model.stretch_ns(1, held + 1, output - made - 1)

    def _fits(self, going: Active) -> bool:
        """Whether memory is enough at every completion if nothing else starts."""
        requests = self._requests
        rest = [(requests[i].output - made, requests[i].prompt + made) for i, made in going]
        return all(
            sum(held + ahead for more, held in rest if more >= ahead) <= self._memory
            for ahead, _ in rest
        )
