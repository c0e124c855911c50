"""Requests of one arrival, prompt and output share everything that prices say about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance

Kind = tuple[int, int, int]
"""Arrival, prompt and output: what requests of one kind have in common."""


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kinds of requests of an instance, in columns.

    Parameters
    ----------
    arrivals, prompts, outputs
        What requests of a kind have in common.
    counts
        How many there are of each.
    """

    arrivals: Integers
    prompts: Integers
    outputs: Integers
    counts: Integers

    @classmethod
    def of(cls, instance: Instance) -> Kinds:
        """Return the kinds of an instance, in ascending order."""
        counts = sorted(Counter(request.kind for request in instance).items())
        rows = [(*kind, count) for kind, count in counts]
        table = np.array(rows, dtype=np.int64).reshape(-1, 4).T.copy()
        return cls(table[0], table[1], table[2], table[3])

    def __len__(self) -> int:
        return len(self.counts)

    def rows(self) -> Iterator[Kind]:
        """Yield the kinds."""
        columns = (self.arrivals, self.prompts, self.outputs)
        return zip(*(column.tolist() for column in columns), strict=True)

    @cached_property
    def longest(self) -> int:
        """Return the longest output."""
        return int(self.outputs.max(initial=0))

    def loads(self, starts: Integers, last: int) -> Floats:
        """Return the tokens held at the times ``1 .. last`` when each kind has one start.

        These are the sums of `kvopt.timetable.sweep` in floats and at every time, for prices.
        """
        begins, ends = np.minimum(starts, last), np.minimum(starts + self.outputs, last)

        def running(weights: Integers) -> Floats:
            begun = np.bincount(begins, weights, last + 1)
            ended = np.bincount(ends, weights, last + 1)
            return np.asarray((begun - ended).cumsum()[:last], dtype=float)

        offsets = self.counts * (self.prompts - starts)  # tokens at t are prompt - start + t
        return running(offsets) + running(self.counts) * np.arange(1, last + 1)
