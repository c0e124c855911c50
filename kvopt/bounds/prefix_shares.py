"""Share out prefixes among their users: constant shares of blocks, and shares over time.

A node of the forest that is used at some time is held once.  If at most K of its users can be
active together, its w tokens are at least w / K for each of those that are.  So active
requests hold at least the sum of u + g + (sum of w / K on the path) over them, with u private
tokens and g of output, and also at least the sum with ``u + sum w / K`` rounded down.  So every
schedule with sharing is feasible without prefixes and with these prompts, and all bounds of that
instance hold.

Nodes on all paths come first: they are held once while anything is active, so they are subtracted
from memory and prompts without any loss (`Instance.without_common_prefix`).

In seconds a node may be in the cache, so a request surely processes only its private tokens.  But
each node is processed at least once: by some user, so not before the first of them arrives, and
before any of them has a token.  So the first user to arrive may count it as part of its prompt,
whichever request processes it, in however many pieces; later ones may not.

Over time each user of a block may count the block by its part of the sum of the weights of those
that have arrived.  Then any active requests hold at least what they count.  Weights follow the
times at which users run: turns of one session are hardly ever active together, so nearly all of a
block is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, takewhile
from math import floor
from typing import Any, NamedTuple

import numpy as np

from kvopt.problem.arrays import Floats, Numbers
from kvopt.problem.instance import Instance
from kvopt.problem.prefixes import Forest


def users_together(instance: Instance, *, chunks: bool = False) -> list[int]:
    """Return for each node a limit of its users that can be active together on a worker.

    Together they hold the path to the node once, and each its private tokens and one more.  With
    ``chunks``, where prompts are processed in pieces, they need not: all of its users can.
    """
    if chunks:
        return [len(users) for users in instance.forest.users]
    forest, limits = instance.forest, list[int]()
    to_node = {
        node: tokens
        for path in forest.paths
        for node, tokens in zip(path, accumulate(forest.weights[v] for v in path), strict=True)
    }
    for node, users in enumerate(forest.users):
        held = accumulate(sorted(forest.private[i] + 1 for i in users), initial=to_node[node])
        # The first sum is of no user.
        fit = sum(1 for _ in takewhile(lambda tokens: tokens <= instance.memory, held)) - 1
        # Never 0, since works are divided by it.
        limits.append(max(1, min(fit, instance.max_active or fit)))
    return limits


def shared_out(instance: Instance, *, chunks: bool = False) -> Instance:
    """Return an instance without prefixes whose bounds hold for the sharing of this one.

    If all share one prefix and nothing else, both have the same schedules; with ``chunks``, where
    prompts are processed in pieces, that prefix need not be complete, and is a node as others are.

    Examples
    --------
    >>> from kvopt import Request
    >>> both = [Request(0, 6, 2, prefix=("a",)), Request(0, 5, 1, prefix=("a",))]
    >>> instance = Instance(9, [*both, Request(0, 1, 1)], block_tokens=4)
    >>> [request.prompt for request in shared_out(instance)]
    [4, 3, 1]
    """
    if not chunks:
        instance = instance.without_common_prefix()
    if "prefix" not in instance.extras:
        return instance
    instance = instance.in_tokens()
    requests = [
        replace(request, prompt=prompt, prefix=())
        for request, prompt in zip(instance, _prompts(instance, chunks), strict=True)
    ]
    return replace(instance, requests=requests)


def _prompts(instance: Instance, chunks: bool) -> Iterator[int]:
    forest = instance.forest
    shares = list(map(Fraction, forest.weights, users_together(instance, chunks=chunks)))
    for private, path in zip(forest.private, forest.paths, strict=True):
        yield private + floor(sum((shares[v] for v in path), Fraction()))


class Processed(NamedTuple):
    """Prompt tokens that are surely processed in seconds.

    Parameters
    ----------
    private
        Private tokens of each request.
    nodes
        For each request the tokens of the nodes whose first user to arrive it is, if these count.
        Some user processes them after its arrival and at the latest in its first round.
    """

    private: Sequence[int]
    nodes: Sequence[Sequence[int]] = ()


def processed(instance: Instance, arrivals: Sequence[int]) -> Processed:
    """Return the tokens that are surely processed for requests with these arrivals."""
    forest, nodes = instance.forest, list[list[int]]([] for _ in instance)
    for weight, users in zip(forest.weights, forest.users, strict=True):
        nodes[min(users, key=arrivals.__getitem__)].append(weight)
    return Processed(forest.private, nodes)


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

        User i counts share_i = weight_i / sum of a node.  By the logarithm of weight_k it changes
        by share_i ([i = k] - share_k), so payments by share_k, times what k pays beyond the mean.

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


def in_periods(lists: Sequence[Sequence[int]], first: Sequence[int], count: int) -> Numbers:
    """Return the weights of a proof in ``count`` periods or more, in integers.

    Each request has a list of them, from the period ``first`` on in which it arrives.
    """
    ends = (start + len(row) for start, row in zip(first, lists, strict=True))
    table = np.zeros((len(lists), max(1, count, *ends)), dtype=object)
    for row, start, values in zip(table, first, lists, strict=True):
        row[start : start + len(values)] = values
    return table
