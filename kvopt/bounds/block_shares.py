"""Which part of a block each of its users pays for, over time, in a bound in seconds.

The active users of a block hold it once, and read it once in a round.  Let the users that have
arrived have weights, and let each of them count the block by its part of their sum.  Then any
active requests hold at least what they count.  Weights follow the times at which users run: turns
of one session are hardly ever active together, so nearly all of a block is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvopt.problem.arrays import Floats, Numbers
from kvopt.problem.prefixes import Forest


class BlockUsers:
    """The users of all nodes of a forest: one entry for each node and user."""

    def __init__(self, forest: Forest) -> None:
        pairs = [(v, i) for v, users in enumerate(forest.users) for i in users]
        nodes, users = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        self._users = users
        self._first = np.flatnonzero(np.diff(nodes, prepend=-1))  # entry of each node
        self._sizes = np.diff(self._first, append=len(nodes))
        self._by_user = np.argsort(users, kind="stable")
        self._having = np.flatnonzero(np.diff(users[self._by_user], prepend=-1))
        self._tokens = np.array([forest.weights[v] for v in nodes.tolist()], dtype=object)
        self._private = np.array(forest.private, dtype=object)

    def profile(self, weights: Numbers) -> Numbers:
        """Return the tokens that each request counts in its first round, in each period.

        Parameters
        ----------
        weights
            Of each request in each period: floats, or integers, for which parts are rounded down.
        """
        kind: Any = weights.dtype
        counted = np.repeat(self._private.astype(kind)[:, None] + 1, weights.shape[1], axis=1)
        if len(self._users):
            mine, sums = self._parts(weights)
            tokens = self._tokens.astype(kind)[:, None] * mine
            tokens = tokens / sums if kind.kind == "f" else tokens // sums
            self._add(counted, tokens)
        return counted

    def slope(self, weights: Floats, reads: Floats) -> Floats:
        """Return how payments change with the logarithms of weights.

        Parameters
        ----------
        weights
            As of `profile`, in floats.
        reads
            What each request pays for one token in each period.
        """
        change = np.zeros_like(weights)
        if len(self._users):
            mine, sums = self._parts(weights)
            share, paid = mine / sums, reads[self._users]
            mean = np.repeat(np.add.reduceat(share * paid, self._first), self._sizes, axis=0)
            self._add(change, self._tokens.astype(float)[:, None] * share * (paid - mean))
        return change

    def _parts(self, weights: Numbers) -> tuple[Numbers, Numbers]:
        """Return of each entry the weight of its user, and the sum over the node, 1 at least."""
        mine = weights[self._users]
        sums = np.add.reduceat(mine, self._first)
        sums[sums == 0] = 1
        return mine, np.repeat(sums, self._sizes, axis=0)

    def _add(self, columns: Numbers, entries: Numbers) -> None:
        """Add the entries of each user."""
        ranked = entries[self._by_user]
        columns[self._users[self._by_user][self._having]] += np.add.reduceat(ranked, self._having)


def in_periods(lists: Sequence[Sequence[int]], first: Sequence[int], kind: Any) -> Numbers:
    """Return weights of a proof as a table of requests and periods.

    Parameters
    ----------
    lists
        Of each request its weights, one for each period from that of its arrival on.
    first
        The period in which each request arrives.
    kind
        Kind of the numbers.
    """
    count = max((start + len(row) for start, row in zip(first, lists, strict=True)), default=0)
    table = np.zeros((len(lists), max(1, count)), dtype=kind)
    for row, start, values in zip(table, first, lists, strict=True):
        row[start : start + len(values)] = values
    return table
