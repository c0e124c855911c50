"""Would a request fit, now and at every later time?  The incremental answer.

What is active is kept by believed completion, together with the tokens that will be held at
each of those times.  Memory grows between completions, so those times and the completion of
the newcomer are all that a look-ahead has to visit, and adding or removing a request changes
one stretch of the table.

Here numpy goes through that table, in `kvopt.simulate.policies.lookahead_loops` compiled loops,
three times as fast.  But loading them takes 0.7 s, twice as long as `svf` takes for 10,000
requests by numpy.
"""

from __future__ import annotations

import numpy as np

MANY = 50_000
"""Requests from which on compiled loops are worth loading."""


def look_ahead(capacity: int, requests: int) -> LookAhead:
    """Return a look-ahead that suits a run of so many requests."""
    if requests < MANY:
        return LookAhead(capacity)
    from kvopt.simulate.policies.lookahead_loops import LoopLookAhead  # it loads numba

    return LoopLookAhead(capacity)


class LookAhead:
    """Tokens that active requests are believed to hold at their believed completions.

    Times only move forward: ``now`` must not decrease from call to call.

    Parameters
    ----------
    capacity
        Tokens that may be held at any time.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._ends = np.empty(64, dtype=np.int64)  # believed completions, ascending
        self._offsets = np.empty(64, dtype=np.int64)  # prompt - start: tokens at t are this + t
        self._loads = np.empty(64, dtype=np.int64)  # tokens held at each of the completions
        self._first = self._stop = 0  # the part of the arrays in use

    def __len__(self) -> int:
        return self._stop - self._first

    def wait(self, prompt: int, output: int, now: int) -> int:
        """Return 0 if a request fits at ``now``, else how many rounds it must wait at least.

        Starting a round later lowers what it holds at a given time by one token, and times
        before its start no longer matter.  Requests that outlived their believed completion
        are expected to need one more round.
        """
        end = now + output
        first, last = self._first, self._stop
        ends = self._ends[first:last]
        past = int(ends.searchsorted(now, "right"))
        until = int(ends.searchsorted(end, "left"))
        later = self._offsets[first + until : last]
        most = int((later + end).sum()) + prompt + output  # offsets alone may be near -2^53
        if past:
            held = int((self._offsets[first:last] + (now + 1)).sum())
            most = max(most, held + prompt + 1)
        wait = int(most > self._capacity)
        if past < until:
            times = ends[past:until]
            excess = self._loads[first + past : first + until] + times
            excess += prompt - now - self._capacity
            if int(excess.max()) > 0:
                wait = max(wait, int(np.minimum(excess, times - now).max()))
        return wait

    def add(self, prompt: int, output: int, now: int) -> None:
        """Add a request that starts at ``now`` and is believed to produce ``output`` tokens."""
        if self._stop == len(self._ends):
            self._make_room()
        end, offset = now + output, prompt - now
        position = self._first + int(self._ends[self._first : self._stop].searchsorted(end))
        later = self._offsets[position : self._stop]
        own = int((later + end).sum()) + prompt + output
        for array, value in ((self._ends, end), (self._offsets, offset), (self._loads, own)):
            array[position + 1 : self._stop + 1] = array[position : self._stop]
            array[position] = value
        self._stop += 1
        self._loads[self._first : position] += self._ends[self._first : position] + offset
        self._loads[position + 1 : self._after(end)] += offset + end

    def remove(self, prompt: int, output: int, start: int) -> None:
        """Remove a request that was added with these three numbers."""
        end, offset = start + output, prompt - start
        position = self._first + int(self._ends[self._first : self._stop].searchsorted(end))
        while self._offsets[position] != offset:
            position += 1
        until = self._after(end)
        self._loads[self._first : until] -= self._ends[self._first : until] + offset
        if position == self._first:
            self._first += 1
            return
        for array in (self._ends, self._offsets, self._loads):
            array[position : self._stop - 1] = array[position + 1 : self._stop]
        self._stop -= 1

    def _after(self, end: int) -> int:
        """Return where completions after a time begin."""
        return self._first + int(self._ends[self._first : self._stop].searchsorted(end, "right"))

    def _make_room(self) -> None:
        """Move what is in use to the front, of arrays twice as long if they are full."""
        used = slice(self._first, self._stop)
        size = len(self._ends) * 2 if len(self) * 2 > len(self._ends) else len(self._ends)
        for name in ("_ends", "_offsets", "_loads"):
            array = np.empty(size, dtype=np.int64)
            array[: len(self)] = getattr(self, name)[used]
            setattr(self, name, array)
        self._first, self._stop = 0, len(self)
