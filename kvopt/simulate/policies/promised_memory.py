"""Look-ahead: whether a request would fit, now and at every later time.

Memory grows between completions, so a look-ahead has to check only the believed completions of
active requests and of the new one.  The tokens held at these times do not depend on the current
time: they are stored, and change at starts and ends of requests.

A node of a shared prefix is held until the last believed completion of its users.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

import numpy as np

from kvopt.problem.arrays import Integers

_largest, _sum = np.maximum.reduce, np.add


class LookAhead:
    """Active requests by their believed completions.

    Times only move forward: ``now`` must not decrease from call to call.

    Parameters
    ----------
    capacity
        Tokens that may be held at any time.
    weights
        Tokens of each node of shared prefixes.
    """

    def __init__(self, capacity: int, weights: Sequence[int] = ()) -> None:
        self._capacity, self._weights = capacity, weights
        self._uses: dict[int, list[int]] = {}  # of each node held, the completions of its users
        self._ends: list[int] = []  # believed completions, negated: the last one comes first
        self._times = np.zeros(64, np.int64)  # believed completions
        self._beside = np.zeros(64, np.int64)  # number of requests that complete then or later
        # Their tokens then, and for a new request a token for each round until then.
        self._tops = np.zeros(64, np.int64)
        self._numbers: dict[int, int] = {}  # number of requests of each completion
        self._size = self._total = 0  # requests, and their sum of prompt - start

    def __len__(self) -> int:
        return self._size

    def wait(self, prompt: int, output: int, now: int, path: Sequence[int] = ()) -> int:
        """Return 0 if a request fits at ``now``, else the least number of rounds to wait.

        Its prompt is without the nodes of its path.

        Starting a round later lowers what it holds at a given time by one token, and times
        before its start no longer matter.  Requests that outlived their believed completion
        are expected to need one more round.
        """
        ends = self._ends
        of_path = sum(self._weights[v] for v in path)
        if not ends:
            return int(of_path + prompt + output > self._capacity)
        alive = bisect_left(ends, -now)
        later = bisect_right(ends, -now - output, 0, alive)
        times, shared = self._times[later:alive], of_path
        if self._uses:
            beside = self._beside_path(path, np.append(times, (now + output, 0))) + of_path
            shared = beside.item(-2)
        # What is held at its own completion, and in the next round if some outlived their beliefs.
        peak = prompt + output + self._held(later, now + output) + shared
        if alive < len(ends):
            everything = beside.item(-1) if self._uses else of_path
            peak = max(peak, self._total + self._size * (now + 1) + prompt + 1 + everything)
        wait = int(peak > self._capacity)
        # At an earlier completion ``tops - free`` are too many.  If it starts as many rounds later
        # it holds as many less; if it starts at that completion nothing of it counts.
        if later < alive:
            tops, free = self._tops[later:alive], self._capacity + now - prompt
            tops = tops + beside[:-2] if self._uses else tops + of_path if of_path else tops
            if _largest(tops) > free:
                waits = np.minimum(tops - free, times - now)
                wait = max(wait, int(_largest(waits)))
        return wait

    def _beside_path(self, path: Sequence[int], times: Integers) -> Integers:
        """Return the tokens of nodes off a path at these times; time 0 counts all of them."""
        others = [(uses[-1], self._weights[v]) for v, uses in self._uses.items() if v not in path]
        if not others:
            return np.zeros(len(times), np.int64)
        last, tokens = np.array(sorted(others)).T
        held: Integers = np.append(tokens[::-1].cumsum()[::-1], 0)[np.searchsorted(last, times)]
        return held

    def add(self, prompt: int, output: int, now: int, path: Sequence[int] = ()) -> None:
        """Add a request that starts at ``now`` and is believed to produce ``output`` tokens."""
        end = now + output
        for node in path:
            insort(self._uses.setdefault(node, []), end)
        place = bisect_left(self._ends, -end)
        if end not in self._numbers:
            self._insert(place, end)
        self._numbers[end] += 1
        self._size += 1
        self._total += prompt - now
        self._change(place, 1, prompt - now)

    def remove(
        self, prompt: int, output: int, start: int, now: int, path: Sequence[int] = ()
    ) -> bool:
        """Remove a request that was added with these; return whether it was to stay longer."""
        end = start + output
        for node in path:
            self._uses[node].remove(end)
            if not self._uses[node]:
                del self._uses[node]
        is_early = end > now
        self._numbers[end] -= 1
        self._size -= 1
        self._total -= prompt - start
        if is_early:  # past times are ignored
            self._change(bisect_left(self._ends, -end), -1, start - prompt)
        if not self._numbers[end]:
            self._delete(end)
        return is_early

    def _change(self, place: int, requests: int, offset: int) -> None:
        """Count a request, or one fewer, at its completion and at all before."""
        part = slice(place, len(self._ends))
        beside, tops = self._beside[part], self._tops[part]
        beside += requests
        tops += offset
        _sum(tops, self._times[part] if requests > 0 else -self._times[part], tops)

    def _insert(self, place: int, end: int) -> None:
        """Insert a completion at a place of the arrays."""
        count = len(self._ends)
        if count == len(self._times):
            self._times, self._beside, self._tops = (
                np.resize(column, 2 * count) for column in (self._times, self._beside, self._tops)
            )
        # Later completions come first: their requests are all that is held at this one so far.
        beside = self._beside.item(place - 1) if place else 0
        columns = (
            (self._times, end),
            (self._beside, beside),
            (self._tops, self._held(place, end) + end),
        )
        for column, value in columns:
            column[place + 1 : count + 1] = column[place:count]
            column[place] = value
        self._ends.insert(place, -end)
        self._numbers[end] = 0

    def _delete(self, end: int) -> None:
        place, count = bisect_left(self._ends, -end), len(self._ends)
        del self._numbers[end], self._ends[place]
        if place < count - 1:
            for column in (self._times, self._beside, self._tops):
                column[place : count - 1] = column[place + 1 : count]

    def _held(self, count: int, time: int) -> int:
        """Return the tokens of the last so many completions at a time before these."""
        if not count:
            return 0
        end = -self._ends[count - 1]
        return self._tops.item(count - 1) - end - self._beside.item(count - 1) * (end - time)
