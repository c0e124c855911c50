"""The dynamic program that `exact` and `dp` share: least sum of outputs by count and weight.

Candidates join from the last in tie order to the first, that is, by descending output.  For
each number of members c and each total weight W the table keeps the least sum of outputs.
Each of the two programs says what a candidate weighs and how heavy a batch may be when it
joins as the c-th member.

An equal sum replaces.  The candidate that joins is earlier in tie order than all before it, so
of equal batches of one state the lexicographically smallest stays; among states, reading the
choices back keeps all that are still equal until one of them has the earlier member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kvopt.errors import TooLarge
from kvopt.policies.phase1.batch import Candidate, best_count
from kvopt.policies.phase1.swap import swap

LARGEST_TABLE = 2_000_000_000
"""Entries over all candidates beyond which no table is filled: a bit of memory for each."""

_UNREACHED = 2**62


class Rule(NamedTuple):
    """What a candidate adds to a batch, and when it may join.

    Parameters
    ----------
    weight
        What the candidate adds to the weight of a batch.
    room
        Heaviest weight of a batch that it joins as the last of so many members.
    fits
        Whether a whole batch keeps the rule.
    """

    weight: Callable[[Candidate], int]
    room: Callable[[Candidate, int], int]
    fits: Callable[[Sequence[Candidate]], bool]


def least_f(waiting: Sequence[Candidate], memory: int, rule: Rule) -> list[Candidate]:
    """Return the batch that keeps the rule and has the least F.

    Among equal F the larger batch, then the one that is lexicographically first in tie order.
    The batch of the swap search must keep the rule; it says how good a batch must be.
    """
    shortest = [0, *accumulate(candidate.output for candidate in waiting)]
    easy = waiting[: best_count(shortest)]
    if rule.fits(easy):
        return list(easy)  # the shortest of each count: nothing is better, fitting or not
    known = _best_start(swap(waiting, memory))
    counts = _worthwhile_counts(shortest, waiting, known, rule)
    return _Table(_worthwhile(waiting, counts, known), counts, rule).best()


def _best_start(batch: list[Candidate]) -> list[Candidate]:
    """Return the best of the batches that leave out the longest members of a batch."""
    return batch[: best_count([0, *accumulate(candidate.output for candidate in batch)])]


def _worthwhile_counts(
    shortest: list[int], waiting: Sequence[Candidate], known: list[Candidate], rule: Rule
) -> range:
    """Return the counts that a batch with an F up to that of a known one can have."""
    total, squared = sum(candidate.output for candidate in known), len(known) ** 2
    weights = accumulate(sorted(map(rule.weight, waiting)))
    good = [
        count
        for count, weight in enumerate(weights, start=1)
        if shortest[count] * squared <= total * count**2 and weight <= rule.room(waiting[0], count)
    ]
    return range(good[0], good[-1] + 1)


def _worthwhile(
    waiting: Sequence[Candidate], counts: range, known: list[Candidate]
) -> list[Candidate]:
    """Leave out what is too long for any batch with an F up to that of a known one.

    Without its longest member, of output o, the best batch of n has no smaller F, which says
    ``o <= (2 n - 1) F`` (the proof of Lemma 3.3).
    """
    total, squared = sum(candidate.output for candidate in known), len(known) ** 2
    most = (2 * counts[-1] - 1) * total
    return [candidate for candidate in waiting if candidate.output * squared <= most]


class _Table:
    """The table, with a bit for each entry and candidate that says whether it joined."""

    def __init__(self, candidates: list[Candidate], counts: range, rule: Rule) -> None:
        self.candidates = candidates
        self.counts = counts
        self.rule = rule
        self.weights = [rule.weight(candidate) for candidate in candidates]
        self.width = min(rule.room(candidates[0], 1), sum(self.weights)) + 1
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
        candidate, weight = self.candidates[place], self.weights[place]
        rows = self._rows(place)
        joined = np.zeros((len(rows), self.width), dtype=np.bool_)
        for count in reversed(rows):
            stop = min(self.rule.room(candidate, count) + 1, self.width)
            if stop <= weight:
                continue
            total = self.sums[count - 1, : stop - weight] + candidate.output
            before = self.sums[count, weight:stop]
            np.less_equal(total, before, out=joined[count - rows.start, weight:stop])
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
                weight = self.weights[place]
                alive = np.concatenate((joined[weight:], np.zeros(weight, dtype=np.bool_)))
                count -= 1
        return batch
