"""The answer to whether a request would fit, now and at every later time.

Memory grows between completions, so the believed completions of what is active and that of the
newcomer are all the times that a look-ahead has to visit.  What is held at them follows from one
sum over what is active, which is kept until something starts or leaves.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

import numpy as np


class LookAhead:
    """Active requests by their believed completions.

    Times only move forward: ``now`` must not decrease from call to call.

    Parameters
    ----------
    capacity
        Tokens that may be held at any time.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._ends = array("q")  # believed completions, negated: the last one comes first
        self._offsets = array("q")  # prompt - start: tokens at t are this + t
        self._total = 0  # sum of these
        self._summed_at = -1  # when the sums were made, -1 for none
        self._counts = np.arange(2, 66)  # with a newcomer, of the first, the first two ...

    def __len__(self) -> int:
        return len(self._ends)

    def wait(self, prompt: int, output: int, now: int) -> int:
        """Return 0 if a request fits at ``now``, else how many rounds it must wait at least.

        Starting a round later lowers what it holds at a given time by one token, and times
        before its start no longer matter.  Requests that outlived their believed completion
        are expected to need one more round.
        """
        if not self._ends:
            return int(prompt + output > self._capacity)
        if now != self._summed_at:
            self._sum(now)
        later = bisect_right(self._ends, -now - output, 0, self._alive)
        most = prompt + output
        if later:
            most += self._held.item(later - 1) + later * output
        if self._alive < len(self._ends):
            most = max(most, self._total + len(self._ends) * (now + 1) + prompt + 1)
        wait = int(most > self._capacity)
        if later < self._alive and prompt + (excess := self._excess[later:]).max() > 0:
            least = np.minimum(excess + prompt, self._rest[later:])
            wait = max(wait, int(least.max()))
        return wait

    def _sum(self, now: int) -> None:
        """Sum over those that have not outlived their beliefs.

        For each of them: the rounds to its completion, what is held now by it and by those that
        complete later, and what is held by them then beyond the capacity, with one token a round
        for a newcomer.
        """
        self._alive = count = bisect_left(self._ends, -now)
        while count > len(self._counts):
            self._counts = np.arange(2, 2 * len(self._counts) + 2)
        self._rest = -now - np.frombuffer(self._ends, np.int64, count)
        self._held = (np.frombuffer(self._offsets, np.int64, count) + now).cumsum()
        self._excess = self._held + self._counts[:count] * self._rest - self._capacity
        self._summed_at = now

    def add(self, prompt: int, output: int, now: int) -> None:
        """Add a request that starts at ``now`` and is believed to produce ``output`` tokens."""
        position = bisect_left(self._ends, -now - output)
        self._ends.insert(position, -now - output)
        self._offsets.insert(position, prompt - now)
        self._total += prompt - now
        self._summed_at = -1

    def remove(self, prompt: int, output: int, start: int) -> None:
        """Remove a request that was added with these three numbers."""
        position = bisect_left(self._ends, -start - output)
        while self._offsets[position] != prompt - start:
            position += 1
        del self._ends[position], self._offsets[position]
        self._total -= prompt - start
        self._summed_at = -1
