"""States of active requests, and how many requests can be in each of them at each time.

An active request that holds h tokens and has r more rounds to go is in the state (h, r).  The
sum h + r, its peak, never changes, so states are numbered peak by peak, r upwards.  From start to
completion a request passes neighbouring numbers, in descending order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from kvopt.bounds.configurations.size import longest_of_peaks, most_together
from kvopt.problem.arrays import Flags, Floats, Integers
from kvopt.problem.instance import Instance

Shape = tuple[int, int]
"""Prompt and output."""


class States(NamedTuple):
    """The states that requests of an instance can be in, as compiled loops take them.

    Parameters
    ----------
    memory
        M.
    arrivals, outputs, peaks
        Columns of requests.
    firsts
        For each request the number of the state (peak, 0); its other states follow.
    holds, remaining
        h and r of each state.
    order
        States by r, descending: the order in which the dynamic program adds them.
    together
        Requests that can be active together on one worker.
    workers
        Number of workers, each with a configuration of its own at each time.
    """

    memory: int
    arrivals: Integers
    outputs: Integers
    peaks: Integers
    firsts: Integers
    holds: Integers
    remaining: Integers
    order: Integers
    together: int
    workers: int = 1

    @classmethod
    def of(cls, instance: Instance) -> States:
        """Number the states of an instance."""
        longest = longest_of_peaks(instance)
        numbers = list(accumulate(longest.values(), initial=0))
        first = dict(zip(longest, numbers, strict=False))
        remaining = np.concatenate([np.arange(count) for count in longest.values()])
        holds = np.repeat(list(longest), list(longest.values())) - remaining
        peaks = np.array([request.peak for request in instance])
        return cls(
            memory=instance.memory,
            arrivals=np.array([request.arrival for request in instance]),
            outputs=np.array([request.output for request in instance]),
            peaks=peaks,
            firsts=np.array([first[peak] for peak in peaks.tolist()]),
            holds=holds,
            remaining=remaining,
            order=np.argsort(-remaining, kind="stable"),
            together=most_together(instance),
            workers=instance.used_workers,
        )

    def all_starts(self, last: int) -> Flags:
        """Return which start rounds 0 .. last each request may have; last means any later too."""
        rounds = np.arange(last + 1)
        return np.asarray((rounds >= self.arrivals[:, None]) | (rounds == last))


@dataclass(frozen=True)
class Knots:
    """Times at which prices of states are given; between two of them they are interpolated.

    Parameters
    ----------
    times
        Ascending, from 1 to the last priced time.
    """

    times: Integers

    @classmethod
    def every(cls, spacing: int, last: int) -> Knots:
        """Return a knot every so many rounds, and one at the last time."""
        return cls(np.unique(np.append(np.arange(1, last + 1, spacing), last)))

    @property
    def last(self) -> int:
        """The last priced time."""
        return int(self.times[-1])

    def __len__(self) -> int:
        return len(self.times)

    def copies(self, states: States, starts: Flags) -> Integers:
        """Return for each knot how many requests can be in each state together while it matters.

        A knot matters at the times between its neighbours, where its weight is positive.  That the
        counts limit copies is Claim 3.5 of docs/theory.
        """
        last = self.last
        counts = np.zeros((last + 1, len(states.holds)), dtype=np.int64)
        rows = (column.tolist() for column in (states.arrivals, states.outputs, states.firsts))
        for arrival, output, first, allowed in zip(*rows, starts, strict=True):
            for age in range(1, min(output, last - arrival) + 1):
                begun = allowed[arrival : last + 1 - age]
                counts[arrival + age :, first + output - age] += begun
        befores = np.append(0, self.times[:-1])
        afters = np.append(self.times[1:], self.last + 1)
        parts = [counts[b + 1 : a].max(axis=0) for b, a in zip(befores, afters, strict=True)]
        return np.asarray(np.minimum(parts, states.memory // (states.holds + states.remaining)))

    def copies_by_arrival(self, states: States) -> Integers:
        """Return the copies of each state if all starts remain, without a table of all times.

        Requests that can be in a state at some time can be so at all later ones: the last time at
        which a knot matters has the most of them.
        """
        afters = np.append(self.times[1:], self.last + 1)
        counts = np.zeros((len(self), len(states.holds)), dtype=np.int64)
        for state, left in enumerate(states.remaining.tolist()):
            begins = state - left == states.firsts
            begins &= states.outputs > left
            soonest = np.sort(states.arrivals[begins] + states.outputs[begins] - left)
            counts[:, state] = np.searchsorted(soonest, afters - 1, side="right")
        return np.asarray(np.minimum(counts, states.memory // (states.holds + states.remaining)))

    def weights(self) -> Floats:
        """Return the sum of each knot's weights over all times."""
        between = np.diff(self.times) - 1
        return np.asarray(1 + (np.append(between, 0) + np.append(0, between)) / 2)

    def between(self) -> tuple[Integers, Floats]:
        """Return for each time 0 .. last the knot before it and its share of the way to the next.

        Time 0 is before the first knot, which has no share of it.
        """
        times = np.arange(self.last + 1)
        places = np.maximum(0, np.searchsorted(self.times, times, side="right") - 1)
        gaps = np.diff(self.times, append=self.last + 1)
        shares = np.maximum(0, times - self.times[places]) / gaps[places]
        return places, shares

    def moved_to(self, other: Knots, prices: Floats) -> Floats:
        """Return the prices at other knots, interpolated."""
        columns = [np.interp(other.times, self.times, column) for column in prices.T]
        return np.ascontiguousarray(np.array(columns).T)
