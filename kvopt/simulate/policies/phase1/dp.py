"""The paper's dynamic program (wang-2025 section 5.1, Algorithm 2).

Least sum of outputs for each number of members k and each sum m of their peaks, up to m = M.
It is exact for batches whose peaks fit together, which is more than phase 1 asks for: with
M = 2 it takes (s, o) = (0, 1) alone, F = 1, though (0, 2) can start beside it, F = 3/4.  Of
equal outputs all complete at once, when all peaks stand together: there the two are the same.

As printed it keeps the smallest k among equal F, against Algorithm 1, which wants the largest:
here the largest wins.

Candidates join from the last in tie order to the first, that is, by descending output, and an
equal sum replaces.  The one that joins is earlier in tie order than all before it, so of equal
batches of one state the lexicographically smallest stays; among states, reading the choices back
keeps all that are still equal until one of them has the earlier member.

The table has an entry for each sum of peaks.  Fronts as in `kvopt.simulate.policies.fronts` take
half the time or less, but for 700 requests of a chat they are more than fit into memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from kvopt.errors import TooLarge
from kvopt.simulate.policies.phase1.batch import Candidate, best_count, peaks_fit
from kvopt.simulate.policies.phase1.swap import swap

LARGEST_TABLE = 2_000_000_000
"""Entries over all candidates beyond which no table is filled: a bit of memory for each."""

_UNREACHED = 2**62
"""Mark of a sum that no batch has."""


def dp(waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Return the batch of least F among those whose peaks fit together.

    Among equal F the larger batch, then the one that is lexicographically first in tie order.
    """
    shortest = [0, *accumulate(candidate.output for candidate in waiting)]
    easy = waiting[: best_count(shortest)]
    if peaks_fit(easy, memory):
        return list(easy)  # the shortest of each count: nothing is better, fitting or not
    known = [0, *accumulate(candidate.output for candidate in swap(waiting, memory))]
    size = best_count(known)  # without its longest members the batch may be better
    total, squared = known[size], size**2
    peaks = accumulate(sorted(candidate.peak for candidate in waiting))
    good = [
        count
        for count, peak in enumerate(peaks, start=1)
        if shortest[count] * squared <= total * count**2 and peak <= memory
    ]
    # Without its longest member, of output o, the best batch of n has no smaller F, which says
    # o <= (2 n - 1) F (the proof of Lemma 3.3).
    most = (2 * good[-1] - 1) * total
    candidates = [candidate for candidate in waiting if candidate.output * squared <= most]
    return _Table(candidates, range(good[0], good[-1] + 1), memory).best()


class _Table:
    """Least sums by count and peaks, with a bit for each entry and candidate that joined."""

    def __init__(self, candidates: list[Candidate], counts: range, memory: int) -> None:
        self.candidates = candidates
        self.counts = counts
        self.width = min(memory, sum(candidate.peak for candidate in candidates)) + 1
        entries = self.width * sum(len(self._rows(place)) for place in range(len(candidates)))
        if entries > LARGEST_TABLE:
            raise TooLarge(f"a table of {entries:,} entries is above {LARGEST_TABLE:,}")
        self.sums = np.full((counts[-1] + 1, self.width), _UNREACHED, dtype=np.int64)
        self.sums[0, 0] = 0
        self.joined: list[npt.NDArray[np.uint8]] = []  # bits by count, last candidate first

    def best(self) -> list[Candidate]:
        """Return the best batch."""
        for place in reversed(range(len(self.candidates))):
            self._join(place)
        least = [
            total if count in self.counts and total < _UNREACHED else None
            for count, total in enumerate(self.sums.min(axis=1).tolist())
        ]
        return self._read_back(best_count(least))

    def _join(self, place: int) -> None:
        """Let a candidate join wherever that is possible and no worse than without it."""
        candidate, rows = self.candidates[place], self._rows(place)
        output, peak = candidate.output, candidate.peak
        joined = np.zeros((len(rows), self.width), dtype=np.bool_)
        for count in reversed(rows):
            total = self.sums[count - 1, : max(self.width - peak, 0)] + output
            before = self.sums[count, peak:]
            np.less_equal(total, before, out=joined[count - rows.start, peak:])
            np.minimum(total, before, out=before)
        self.joined.append(np.packbits(joined, axis=1))

    def _rows(self, place: int) -> range:
        """Return the counts of batches that end with a candidate and are of use.

        With fewer members those that are left could not make up a count that is worthwhile.
        """
        top = min(self.counts[-1], len(self.candidates) - place)
        return range(max(1, self.counts[0] - place), top + 1)

    def _read_back(self, count: int) -> list[Candidate]:
        """Return the lexicographically first batch of a count with the least sum."""
        alive = self.sums[count] == self.sums[count].min()
        batch = []
        for place, bits in enumerate(reversed(self.joined)):
            rows = self._rows(place)
            if count not in rows:
                continue
            row = np.unpackbits(bits[count - rows.start], count=self.width)
            joined = row.view(np.bool_) & alive
            if joined.any():
                batch.append(self.candidates[place])
                peak = self.candidates[place].peak
                alive = np.concatenate((joined[peak:], np.zeros(peak, dtype=np.bool_)))
                count -= 1
        return batch
