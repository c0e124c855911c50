"""The look-ahead of `kvopt.simulate.policies.lookahead` in compiled loops, for very many requests.

The arrays and what stands in them are the same.  Each question is one loop over part of them,
where the other one takes several steps through numpy.
"""

from __future__ import annotations

from kvopt.kernels.compiled import compiled
from kvopt.kernels.interruptible import interruptible
from kvopt.problem.arrays import Integers
from kvopt.simulate.policies.lookahead import LookAhead


class LoopLookAhead(LookAhead):
    """Tokens that active requests are believed to hold at their believed completions."""

    def wait(self, prompt: int, output: int, now: int) -> int:
        """Return 0 if a request fits at ``now``, else how many rounds it must wait at least."""
        return _wait(
            self._ends, self._offsets, self._loads, self._first, self._stop,
            self._capacity, prompt, output, now,
        )  # fmt: skip

    def add(self, prompt: int, output: int, now: int) -> None:
        """Add a request that starts at ``now`` and is believed to produce ``output`` tokens."""
        if self._stop == len(self._ends):
            self._make_room()
        _add(self._ends, self._offsets, self._loads, self._first, self._stop, prompt, output, now)
        self._stop += 1

    def remove(self, prompt: int, output: int, start: int) -> None:
        """Remove a request that was added with these three numbers."""
        if _remove(
            self._ends, self._offsets, self._loads, self._first, self._stop, prompt, output, start
        ):
            self._first += 1
        else:
            self._stop -= 1


@interruptible
@compiled
def _wait(
    ends: Integers, offsets: Integers, loads: Integers, first: int, stop: int,
    capacity: int, prompt: int, output: int, now: int,
) -> int:  # fmt: skip
    end, past, all_offsets, later, alive, wait = now + output, 0, 0, 0, 0, 0
    for place in range(first, stop):
        all_offsets += offsets[place]
        if ends[place] <= now:
            past += 1
        elif ends[place] < end:
            excess = loads[place] + ends[place] + prompt - now - capacity
            wait = max(wait, min(excess, ends[place] - now))
        if ends[place] >= end:
            later += offsets[place]
            alive += 1
    if later + end * alive + prompt + output > capacity:
        wait = max(wait, 1)
    if past and all_offsets + (stop - first) * (now + 1) + prompt + 1 > capacity:
        wait = max(wait, 1)  # those that outlived their belief need the next round too
    return wait


@interruptible
@compiled
def _add(
    ends: Integers, offsets: Integers, loads: Integers, first: int, stop: int,
    prompt: int, output: int, now: int,
) -> None:  # fmt: skip
    end, offset = now + output, prompt - now
    place, own = stop, prompt + output
    while place > first and ends[place - 1] >= end:
        place -= 1
        own += offsets[place] + end
        ends[place + 1], offsets[place + 1] = ends[place], offsets[place]
        loads[place + 1] = loads[place] + (offset + end if ends[place] == end else 0)
    ends[place], offsets[place], loads[place] = end, offset, own
    for before in range(first, place):
        loads[before] += ends[before] + offset


@interruptible
@compiled
def _remove(
    ends: Integers, offsets: Integers, loads: Integers, first: int, stop: int,
    prompt: int, output: int, start: int,
) -> bool:  # fmt: skip
    """Remove a request and return whether it was the first, so that nothing had to move."""
    end, offset = start + output, prompt - start
    place = first
    while ends[place] < end:
        loads[place] -= ends[place] + offset
        place += 1
    after = place
    while after < stop and ends[after] == end:
        loads[after] -= end + offset
        after += 1
    while offsets[place] != offset:
        place += 1
    if place == first:
        return True
    for each in range(place, stop - 1):
        ends[each], offsets[each] = ends[each + 1], offsets[each + 1]
        loads[each] = loads[each + 1]
    return False
