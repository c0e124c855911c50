"""Shared prefixes: shares of a block, and the instance without prefixes that follows.

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
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, takewhile
from math import floor
from typing import NamedTuple

from kvopt.problem.instance import Instance


def most_together(instance: Instance, *, chunks: bool = False) -> list[int]:
    """Return for each node how many of its users can be active together on a worker.

    Together they hold the path to the node once, and each its private tokens and one more.  With
    ``chunks``, where prompts are processed in pieces, they need not: all of its users can.
    """
    if chunks:
        return [len(users) for users in instance.forest.users]
    forest, most = instance.forest, list[int]()
    to_node = {
        node: tokens
        for path in forest.paths
        for node, tokens in zip(path, accumulate(forest.weights[v] for v in path), strict=True)
    }
    for node, users in enumerate(forest.users):
        held = accumulate(sorted(forest.private[i] + 1 for i in users), initial=to_node[node])
        fit = sum(1 for _ in takewhile(lambda tokens: tokens <= instance.memory, held)) - 1
        most.append(max(1, min(fit, instance.max_active or fit)))
    return most


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
    shares = list(map(Fraction, forest.weights, most_together(instance, chunks=chunks)))
    for private, path in zip(forest.private, forest.paths, strict=True):
        yield private + floor(sum((shares[v] for v in path), Fraction()))


class Processed(NamedTuple):
    """Prompt tokens that are surely processed in seconds.

    Parameters
    ----------
    own
        Private tokens of each request.
    nodes
        For each request the tokens of the nodes whose first user to arrive it is.  Some user
        processes them after its arrival and at the latest in its first round.
    """

    own: Sequence[int]
    nodes: Sequence[Sequence[int]]


def processed(instance: Instance, arrivals: Sequence[int]) -> Processed:
    """Return the tokens that are surely processed for requests with these arrivals."""
    forest, nodes = instance.forest, list[list[int]]([] for _ in instance)
    for weight, users in zip(forest.weights, forest.users, strict=True):
        nodes[min(users, key=arrivals.__getitem__)].append(weight)
    return Processed(forest.private, nodes)
