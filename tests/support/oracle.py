"""Brute force, written from the definition of the problem alone.

Nothing of kvopt is imported: a problem is a number of tokens and plain
``(arrival, prompt, output)`` triples.  Everything is slow and literal on purpose, so that
agreement with the library means something.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations_with_replacement

Triple = tuple[int, int, int]
"""``(arrival, prompt, output)`` of one request."""
Starts = tuple[int, ...]


def load(requests: Sequence[Triple], starts: Sequence[int], time: int) -> int:
    """Return the tokens held at ``time``, request by request."""
    return sum(
        prompt + time - start
        for (_, prompt, output), start in zip(requests, starts, strict=True)
        if start + 1 <= time <= start + output
    )


def active_times(requests: Sequence[Triple], starts: Sequence[int]) -> range:
    """Return every time from the first start to the round after the last completion."""
    return range(min(starts, default=0), makespan(requests, starts) + 2)


def makespan(requests: Sequence[Triple], starts: Sequence[int]) -> int:
    """Return the time of the last completion, 0 without requests."""
    return max((k + o for (_, _, o), k in zip(requests, starts, strict=True)), default=0)


def feasible(memory: int, requests: Sequence[Triple], starts: Sequence[int]) -> bool:
    """Whether nothing starts early and no time holds more than ``memory`` tokens."""
    early = any(k < a for (a, _, _), k in zip(requests, starts, strict=True))
    times = active_times(requests, starts)
    return not early and all(load(requests, starts, time) <= memory for time in times)


def tel(requests: Sequence[Triple], starts: Sequence[int]) -> int:
    """Return the total end-to-end latency, the sum of ``c_i - a_i``."""
    return sum(k + o - a for (a, _, o), k in zip(requests, starts, strict=True))


def last_time(requests: Sequence[Triple]) -> int:
    """Return a time by which every optimal schedule has finished: ``max a + sum o``.

    Suppose nothing is active at a time after the last arrival and something starts there
    or later.  Moving all of that one round earlier keeps every memory sum and saves
    latency, so the schedule was not optimal.  Hence each time from ``max a + 1`` to the
    last completion has an active request, and a request gives only ``o`` such times.
    """
    return max((a for a, _, _ in requests), default=0) + sum(o for _, _, o in requests)


def optimum(memory: int, requests: Sequence[Triple]) -> tuple[int, Starts]:
    """Return the least total latency and starts that reach it."""
    return _optimum(memory, tuple(requests))


@cache  # many tests ask for the same instances
def _optimum(memory: int, requests: tuple[Triple, ...]) -> tuple[int, Starts]:
    end = last_time(requests)
    found = optimum_within(memory, requests, [range(a, end - o + 1) for a, _, o in requests])
    assert found is not None, "a request that does not fit alone makes a problem infeasible"
    return found


def optimum_within(
    memory: int, requests: Sequence[Triple], windows: Sequence[range]
) -> tuple[int, Starts] | None:
    """Return the same over starts taken from ``windows``, None when none are feasible."""
    search = _DepthFirst(memory, requests, windows)
    search.extend(0, 0)
    return None if search.value is None else (search.value, search.starts)


class _DepthFirst:
    """Tries every start of every request, in ascending order.

    Three branches are left out: one whose placed requests alone hold too much at some time
    (a further request only adds tokens), one whose latency so far plus the outputs of the
    others is not below the best value (no request takes less than its output), and one where
    the later of two requests with the same prompt and output starts before the earlier one:
    they may change places, if the window of the later one is the end of the other's.
    """

    def __init__(self, memory: int, requests: Sequence[Triple], windows: Sequence[range]) -> None:
        self.value: int | None = None
        self.starts: Starts = ()
        self._memory = memory
        self._requests = requests
        self._windows = windows
        self._order = sorted(range(len(requests)), key=lambda i: requests[i][::-1])
        outputs = [requests[i][2] for i in self._order]
        self._alike = [self._may_change_places(depth) for depth in range(len(requests))]
        self._rest = [sum(outputs[depth:]) for depth in range(len(requests) + 1)]
        ends = (w[-1] + o for w, (_, _, o) in zip(windows, requests, strict=True) if w)
        self._held = [0] * (max(ends, default=0) + 1)
        self._chosen = [0] * len(requests)

    def extend(self, depth: int, latency: int) -> None:
        """Place the request at ``depth`` of the order, and all after it, in every way."""
        if depth == len(self._order):
            self.value, self.starts = latency, tuple(self._chosen)
            return
        i = self._order[depth]
        arrival, prompt, output = self._requests[i]
        first = self._chosen[self._order[depth - 1]] if self._alike[depth] else arrival
        for start in self._windows[i]:
            if start < first:
                continue
            total = latency + start + output - arrival
            if self.value is not None and total + self._rest[depth + 1] >= self.value:
                return
            if self._fits(prompt, output, start):
                self._chosen[i] = start
                self._add(prompt, output, start, 1)
                self.extend(depth + 1, total)
                self._add(prompt, output, start, -1)

    def _may_change_places(self, depth: int) -> bool:
        """Whether any two starts, the later one first, may be swapped with the one before."""
        if depth == 0:
            return False
        one, other = self._order[depth - 1], self._order[depth]
        ours, theirs = self._windows[one], self._windows[other]
        same = self._requests[one][1:] == self._requests[other][1:]
        return same and ours[-len(theirs) :] == theirs

    def _fits(self, prompt: int, output: int, start: int) -> bool:
        for token in range(1, output + 1):
            if self._held[start + token] + prompt + token > self._memory:
                return False
        return True

    def _add(self, prompt: int, output: int, start: int, sign: int) -> None:
        for token in range(1, output + 1):
            self._held[start + token] += sign * (prompt + token)


def every_problem(
    memory: int, n: int, arrivals: int = 0
) -> Iterator[tuple[int, tuple[Triple, ...]]]:
    """Yield every memory up to the largest with every set of up to n requests that fit alone."""
    for smaller in range(1, memory + 1):
        shapes = [
            (a, s, o)
            for a in range(arrivals + 1)
            for s in range(smaller)
            for o in range(1, smaller - s + 1)
        ]
        for count in range(1, n + 1):
            for requests in combinations_with_replacement(shapes, count):
                yield smaller, requests
