"""Kinds of requests: equal arrivals, prompts and outputs have equal costs at all prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kvopt.problem.arrays import Floats, Integers, Numbers
from kvopt.problem.instance import Instance

Kind = tuple[int, int, int]
"""Arrival, prompt and output, which requests of one kind share."""


def begun_blocks(prompt: Any, output: Any, block: int) -> tuple[Any, Any]:
    """Return after how many tokens a request begins its first own block, and one after its last.

    It begins one after so many tokens, and after each ``block`` more before the second number.  So
    it holds ``prompt + first`` tokens of whole blocks before its first token, and ``prompt +
    final`` with its last one.  With blocks of one token these numbers are 0 and the output.

    Examples
    --------
    >>> begun_blocks(5, 7, 4), begun_blocks(5, 3, 4), begun_blocks(5, 7, 1)
    ((3, 7), (3, 3), (0, 7))
    """
    first = -prompt % block
    return first, first - (first - output) // block * block


def strided_sums(values: Numbers, stride: int) -> Numbers:
    """Return at each position the sum of its value and every ``stride``-th value before it.

    Examples
    --------
    >>> strided_sums(np.array([1, 2, 3, 4, 5]), 2)
    array([1, 2, 4, 6, 9])
    """
    rows: Numbers = np.zeros((-(-len(values) // stride), stride), dtype=values.dtype)
    rows.reshape(-1)[: len(values)] = values
    return rows.cumsum(axis=0).reshape(-1)[: len(values)]


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kinds of requests of an instance, in columns.

    Parameters
    ----------
    arrivals, prompts, outputs
        The numbers that all requests of a kind share.
    counts
        Number of requests of each kind.
    weights
        How often the latency of a request counts; ascending, 0 where it only has to attain.
    block
        Tokens of a block; whole blocks are held and paid for.
    latest
        The last start of each kind; None if they may start at any time.
    """

    arrivals: Integers
    prompts: Integers
    outputs: Integers
    counts: Integers
    weights: Integers
    block: int = 1
    latest: Integers | None = None

    @classmethod
    def of(cls, instance: Instance) -> Kinds:
        """Return the kinds of an instance by weight, in ascending order."""
        kinds = Counter((request.weight, *request.kind) for request in instance)
        rows = [(*kind, count) for kind, count in sorted(kinds.items())]
        table = np.array(rows, dtype=np.int64).reshape(-1, 5).T.copy()
        return cls(table[1], table[2], table[3], table[4], table[0], instance.block_size)

    def by_weight(self) -> Iterator[tuple[int, slice]]:
        """Yield each weight, and where its kinds are."""
        weights, begins = np.unique(self.weights, return_index=True)
        ends = [*begins[1:].tolist(), len(self)][: len(weights)]
        for weight, begin, end in zip(weights.tolist(), begins.tolist(), ends, strict=True):
            yield weight, slice(begin, end)

    def __len__(self) -> int:
        return len(self.counts)

    def rows(self) -> Iterator[Kind]:
        """Yield the kinds."""
        columns = (self.arrivals, self.prompts, self.outputs)
        return zip(*(column.tolist() for column in columns), strict=True)

    @cached_property
    def last_starts(self) -> Integers:
        """Return the last start of each kind, far beyond all prices if there is none."""
        return np.full(len(self), 2**62) if self.latest is None else self.latest

    @cached_property
    def longest(self) -> int:
        """Return the longest output."""
        return int(self.outputs.max(initial=0))

    def loads(self, starts: Integers, last: int) -> Floats:
        """Return the tokens held at the times ``1 .. last`` when each kind has one start.

        These are the sums of `kvopt.timetable.sweep` in floats and at every time, for prices.
        """
        first, final = begun_blocks(self.prompts, self.outputs, self.block)

        # Entry k is the change from time k to k + 1; what comes after the last time is cut off.
        def at(after: Integers | int, weights: Integers) -> Numbers:
            return np.bincount(np.minimum(starts + after, last), weights, last + 1)

        begun = at(first, self.counts) - at(final, self.counts)
        change: Floats = self.block * strided_sums(begun, self.block)
        change += at(0, self.counts * (self.prompts + first))
        change -= at(self.outputs, self.counts * (self.prompts + final))
        return np.asarray(change.cumsum()[:last])
